//! Every workload in its short form: answers, trips and what is made of them. No time is looked at.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use onetrip_lab::tune::{Prefetch, Task, check};
use onetrip_lab::workload::{AxisValue, Engine, Extent, Workload, find};
use onetrip_lab::{Cell, LabError, NO_VERDICT, RunOptions, Samples, run, text, write_files, write_page};

fn short(name: &str) -> Samples {
    let workload = find(name).unwrap();
    let samples = measure(&workload, &[]).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    assert!(samples.left_out.iter().all(|left_out| left_out.contains("--clients")), "{:?}", samples.left_out);
    let directory = tempfile::tempdir().unwrap();
    write_files(directory.path(), &samples).unwrap();
    write_page(directory.path(), &workload, &samples).unwrap();
    // The short form has other distances: charts of those that it leaves out are not drawn.
    let has_all =
        |(axis, value): (&String, &String)| samples.cells.iter().any(|cell| cell.on(axis) == Some(value));
    for chart in workload.charts.iter().filter(|chart| chart.only.iter().all(has_all)) {
        let file = format!("{name}-{}.svg", chart.name);
        assert!(directory.path().join(&file).exists(), "nothing is drawn for {file}");
    }
    assert_ne!(samples.verdict, NO_VERDICT, "{name}");
    assert!(text(&samples).ends_with(&format!("\n{}\n", samples.verdict)));
    samples
}

fn measure(workload: &Workload, engines: &[Engine]) -> Result<Samples, LabError> {
    let options = RunOptions { extent: Extent::Short, engines: engines.to_vec(), ..RunOptions::default() };
    run(workload, &options, &AtomicBool::new(false), &|_| ())
}

/// What runs programs of real drivers on one engine.
fn with_clients(engine: Engine) -> RunOptions {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    RunOptions { extent: Extent::Short, engines: vec![engine], clients: Some(root), ..RunOptions::default() }
}

fn cell<'s>(samples: &'s Samples, at: &[(&str, &str)]) -> &'s Cell {
    let is_there = |cell: &&Cell| at.iter().all(|(axis, value)| cell.on(axis) == Some(value));
    samples.cells.iter().find(is_there).unwrap_or_else(|| panic!("no cell at {at:?}"))
}

#[test]
fn a_loop_takes_a_trip_for_each_row_and_its_cures_take_one_or_two() {
    let samples = short("loop");
    let trips = |engine, way| cell(&samples, &[("engine", engine), ("way", way)]).trips;
    let on_postgresql = |way| trips("postgresql", way);
    assert_eq!((on_postgresql("as is"), on_postgresql("ANY"), on_postgresql("JOIN")), (203, 2, 1));
    let on_mariadb = |way| trips("mariadb", way);
    assert_eq!((on_mariadb("as is"), on_mariadb("IN"), on_mariadb("JOIN")), (201, 2, 1));
    let gateway = cell(&samples, &[("way", "through the gateway")]);
    assert!(gateway.trips < 60 && gateway.removed > 140, "{} {}", gateway.trips, gateway.removed);
}

#[test]
fn rows_fetched_in_pieces_take_a_trip_for_each_piece_and_hold_only_that() {
    let samples = short("fetch");
    let at = |fetch| cell(&samples, &[("engine", "postgresql"), ("fetch", fetch), ("way", "portal")]);
    assert_eq!([at("10").trips, at("100").trips, at("0").trips], [53, 8, 3]);
    let embedded = cell(&samples, &[("engine", "embedded"), ("fetch", "100"), ("way", "portal")]);
    assert_eq!(embedded.trips, 8);
    let by = |fetch, way| cell(&samples, &[("engine", "postgresql"), ("fetch", fetch), ("way", way)]);
    assert_eq!([by("10", "cursor").trips, by("100", "cursor").trips], [55, 10]);
    for way in ["portal, through gateway", "cursor, through gateway"] {
        let cell = by("10", way);
        assert!(cell.trips < 25 && cell.removed > 20, "{way}: {} {}", cell.trips, cell.removed);
    }
    assert!(by("auto", "auto").trips <= 4 && by("auto", "auto").rows == 500);
}

#[test]
fn a_wrong_answer_or_a_wrong_count_has_no_time() {
    let mut workload = find("fetch").unwrap();
    workload.ways[0].expect.sum = Some(onetrip_lab::workload::Formula::Number(1));
    let error = measure(&workload, &[Engine::Embedded]).unwrap_err();
    assert!(matches!(error, LabError::WrongAnswer { .. }), "{error}");
    let mut workload = find("fetch").unwrap();
    workload.ways[0].expect.trips = Some(onetrip_lab::workload::Formula::Number(9));
    let error = measure(&workload, &[Engine::Embedded]).unwrap_err();
    assert!(matches!(error, LabError::WrongAnswer { .. } | LabError::WrongTrips { .. }), "{error}");
}

#[test]
fn a_server_that_a_workload_has_no_tables_for_is_answered_with_those_that_it_has() {
    let error = measure(&find("fetch").unwrap(), &[Engine::Derby]).unwrap_err();
    assert_eq!(error.to_string(), "workload fetch: it runs on embedded, postgresql, mariadb");
}

#[test]
fn a_run_that_is_stopped_ends_at_once() {
    let options =
        RunOptions { extent: Extent::Full, engines: vec![Engine::Embedded], ..RunOptions::default() };
    let stopped = run(&find("fetch").unwrap(), &options, &AtomicBool::new(true), &|_| ());
    assert!(matches!(stopped, Err(LabError::Stopped)), "{stopped:?}");
}

#[test]
fn lines_take_a_trip_each_or_one_for_all_and_the_session_s_buffer_gives_the_same() {
    let samples = short("lines");
    for engine in samples.cells.iter().filter_map(|cell| cell.on("engine")) {
        let trips = |way| cell(&samples, &[("engine", engine), ("way", way)]).trips;
        assert_eq!((trips("one by one"), trips("at once")), (11, 2), "{engine}");
        assert_eq!((trips("one by one, uncached"), trips("one by one, fetch size 10")), (11, 13), "{engine}");
    }
}

#[test]
fn a_batch_takes_a_trip_for_each_statement_and_another_session_waits_beside_it() {
    let samples = short("batch");
    let at = |rows, way| cell(&samples, &[("rows_per_statement", rows), ("way", way)]);
    assert_eq!([at("1", "commit each").trips, at("10", "commit each").trips], [1000, 100]);
    assert_eq!([at("1", "one commit").trips, at("10", "one commit").trips], [1002, 102]);
    assert!(at("1", "one commit").beside_ns.iter().all(|wait| *wait > 0));
    assert!(at("1", "commit each").wal_bytes.iter().all(|bytes| *bytes > 0));
    assert!(at("1000", "commit each").memory_max > at("1", "commit each").memory_max);
}

#[test]
fn a_large_object_takes_two_trips_one_or_none_by_what_comes_with_its_row() {
    let samples = short("lob");
    for store in ["large object", "bytea"] {
        let trips = |way| cell(&samples, &[("store", store), ("share", "1"), ("way", way)]).trips;
        let found = ["nothing", "length", "half", "whole"].map(trips);
        assert_eq!(found, [87, 47, 47, 7], "{store}");
    }
    let part = |way| cell(&samples, &[("store", "bytea"), ("share", "0.1"), ("way", way)]).trips;
    assert_eq!([part("nothing"), part("whole")], [15, 7]);
}

#[test]
fn very_large_objects_take_as_many_trips_as_others() {
    let samples = short("lob-large");
    let at = |way| cell(&samples, &[("store", "large object"), ("way", way)]);
    assert_eq!([at("nothing").trips, at("8000").trips, at("whole").trips], [24, 14, 4]);
    assert!(at("whole").memory_max > 640_000 && at("nothing").memory_max < 640_000);
}

#[test]
fn every_session_that_asks_for_a_value_takes_its_own_trips_on_every_server() {
    let workload = find("values").unwrap();
    let samples = measure(&workload, &[]).unwrap();
    assert!(samples.left_out.iter().all(|why| why.starts_with("derby needs")), "{:?}", samples.left_out);
    for engine in ["embedded", "postgresql", "mariadb", "echo"] {
        for way in ["VALUES (1)", "100 characters"] {
            let at = |sessions| cell(&samples, &[("engine", engine), ("sessions", sessions), ("way", way)]);
            assert_eq!([at("1").trips, at("2").trips], [50, 100], "{engine} {way}");
            assert_eq!([at("1").rows, at("2").rows], [50, 100], "{engine} {way}");
            assert_eq!(at("2").server_cpu_ns.len(), 1, "{engine} {way}");
        }
    }
}

#[test]
fn an_echo_carries_as_many_bytes_as_postgresql_does_for_the_same_answers() {
    let samples = measure(&find("values").unwrap(), &[Engine::Postgresql, Engine::Echo]).unwrap();
    let bytes = |engine, way| {
        let cell = cell(&samples, &[("engine", engine), ("sessions", "1"), ("way", way)]);
        (cell.bytes_sent, cell.bytes_received)
    };
    let [short, long] = ["VALUES (1)", "100 characters"].map(|way| {
        let (of_database, of_echo) = (bytes("postgresql", way), bytes("echo", way));
        (of_database.0 - of_echo.0, of_database.1 - of_echo.1)
    });
    // PostgreSQL's also have a login and one Parse, and their answers are the same for both.
    assert!(short.0 < 300 && long.0 < 300, "{short:?} {long:?}");
    assert!(short.1 == long.1 && short.1 < 600, "{short:?} {long:?}");
}

#[test]
fn derby_takes_a_trip_for_each_value_and_one_for_its_commit_and_tells_what_it_allocates() {
    let options = with_clients(Engine::Derby);
    let mut workload = find("values").unwrap();
    // Each cell starts Java twice.
    workload.ways.retain(|way| way.name == "100 characters");
    let samples = run(&workload, &options, &AtomicBool::new(false), &|_| ()).unwrap();
    assert!(samples.left_out.is_empty(), "{:?}", samples.left_out);
    let at = |sessions| cell(&samples, &[("sessions", sessions)]);
    assert_eq!([at("1").trips, at("2").trips], [100, 200]);
    assert_eq!([at("1").rows, at("2").rows], [50, 100]);
    assert!(at("1").allocated.unwrap().bytes > 0);
}

#[test]
fn statements_in_pipelines_share_trips_whatever_they_are() {
    let samples = short("pipeline-read");
    let trips = |way| cell(&samples, &[("sessions", "2"), ("way", way)]).trips;
    assert_eq!([trips("blocking"), trips("16 in a trip"), trips("all in a trip")], [128, 8, 2]);
    assert_eq!(trips("non-blocking"), 128);
    let samples = short("pipeline-dml");
    for (sessions, times) in [("1", 1), ("2", 2)] {
        let trips = |way| cell(&samples, &[("sessions", sessions), ("way", way)]).trips / times;
        let found = ["blocking", "non-blocking", "a unit in a trip", "all in a trip"].map(trips);
        assert_eq!(found, [17, 17, 5, 1]);
        assert!(trips("through the gateway") <= 17);
    }
    let samples = short("pipeline-oltp");
    let trips = |way| cell(&samples, &[("sessions", "2"), ("way", way)]).trips;
    let found = ["blocking", "non-blocking", "10 in a trip"].map(trips);
    assert_eq!(found, [40, 40, 4]);
    assert!(trips("through the gateway") <= 40);
    assert!(samples.cells.iter().all(|cell| cell.server_cpu_ns.len() == 1));
}

/// Java's connectors read and write in pieces as the workloads say.
#[test]
fn connectors_on_mariadb_take_a_trip_for_each_piece_and_each_batch() {
    let on_mariadb = |name, axis, kept: &str, size: &str| {
        let mut workload = find(name).unwrap();
        workload.ways.retain(|way| way.name == kept);
        // Each cell starts Java twice.
        let sizes = workload.axes.iter_mut().find(|known| known.name == axis).unwrap();
        sizes.short.as_mut().unwrap().retain(|value| *value == AxisValue::Number(size.parse().unwrap()));
        let options = with_clients(Engine::Mariadb);
        let samples = run(&workload, &options, &AtomicBool::new(false), &|_| ()).unwrap();
        assert!(samples.left_out.is_empty(), "{:?}", samples.left_out);
        cell(&samples, &[(axis, size)]).trips
    };
    assert_eq!(on_mariadb("fetch", "fetch", "Connector/J, MariaDB", "100"), 7);
    assert_eq!(on_mariadb("batch", "rows_per_statement", "commit each, MariaDB", "10"), 100);
    assert_eq!(on_mariadb("batch", "rows_per_statement", "one commit, MariaDB", "10"), 101);
}

#[test]
fn real_drivers_run_the_statements_of_the_workload_and_take_their_trips() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let options = RunOptions { extent: Extent::Short, clients: Some(root), ..RunOptions::default() };
    let mut workload = find("pipeline-oltp").unwrap();
    // The others are compiled by scripts/lab.
    let drivers = ["psycopg 3", "pgjdbc", "asyncpg"];
    workload.ways.retain(|way| drivers.iter().any(|driver| way.name.starts_with(driver)));
    let samples = run(&workload, &options, &AtomicBool::new(false), &|_| ()).unwrap();
    assert!(samples.left_out.is_empty(), "{:?}", samples.left_out);
    let trips = |way| cell(&samples, &[("sessions", "1"), ("way", way)]).trips;
    let found = ["psycopg 3, blocking", "asyncpg, blocking", "pgjdbc, blocking", "pgjdbc, batch"].map(trips);
    assert_eq!(found, [22, 22, 20, 16]);
    assert!(trips("psycopg 3, pipeline") <= 12);
    assert!(samples.cells.iter().all(|cell| cell.rows == 14));
}

#[test]
fn what_tune_predicts_of_trips_is_what_the_gateway_counts() {
    let task = Task {
        rows: 60,
        row_bytes: 20,
        lob_bytes: 4_000,
        share_percent: 50,
        rtt: Duration::from_micros(100),
        bits_per_second: 1_000_000_000,
        memory: 100_000,
    };
    let choice = task.choose();
    assert_eq!((choice.fetch, choice.prefetch), (20, Prefetch::Whole));
    let checked = check(&task, &choice, None, &AtomicBool::new(false), &|_| ()).unwrap();
    assert_eq!((checked.rows, checked.times.len()), (60, 9));
    assert!(checked.regret_percent(&choice).is_some());
    for (fetch, prefetch, _) in &checked.times {
        let way = ["nothing", "length", "whole"][*prefetch as usize];
        let found = cell(&checked.samples, &[("fetch", &fetch.to_string()), ("way", way)]).trips;
        assert_eq!(found, task.predict(*fetch, *prefetch).trips, "{fetch} {way}");
    }
}
