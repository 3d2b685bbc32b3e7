//! Programs of many shapes, unaware of what happens, on a virtual clock: what they get is what the server gives, and
//! what it costs is within the law.

mod common;

use common::*;
use std::time::Duration;

use onetrip_loops::{Column, Edges, Form};

/// R: employees (emp_no, name, status, dept); T: salaries of one employee.
const PARENTS: u32 = 1;
const SALARIES: u32 = 2;
const TITLES: u32 = 3;

fn row(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|cell| (!cell.is_empty()).then(|| (*cell).to_owned())).collect()
}

fn parents(rows: i64) -> Rows {
    let mut result = Rows::new(&[INT4_TEXT, TEXT, TEXT, INT4_TEXT]);
    for n in 0..rows {
        let status = if n % 3 == 0 { "left" } else { "here" };
        let dept = (n * 7 % 9 + 1).to_string();
        result = result.with(&row(&[&(10_001 + n).to_string(), &format!("name {n}"), status, &dept]));
    }
    result
}

/// Answers R with so many rows; any other template with rows made from its values.
fn company(rows: i64) -> impl Fn(u32, &[Owned]) -> Rows {
    let parents = parents(rows);
    move |template, values| match template {
        PARENTS => parents.clone(),
        _ => {
            let key = values.first().map_or(0, integer);
            let mut result = Rows::new(&[INT4_TEXT, INT4_TEXT, TEXT]);
            for year in 0..3 {
                result = result.with(&row(&[&(key * 31 % 977).to_string(), &(1990 + year).to_string(), "x"]));
            }
            result
        }
    }
}

fn sim(rows: i64) -> Sim {
    Sim::new(Edges::new(), 13 * MS, company(rows))
}

/// The plain loop, once.
fn story(sim: &mut Sim) {
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
}

#[test]
fn ten_thousand_rows_wait_for_thirty_flights_at_most() {
    let mut sim = sim(10_000);
    story(&mut sim);
    println!("{:?} {:?} {:?} flights {}", sim.told, sim.counters(), sim.now, sim.flights.len());
    assert!(sim.told.waits <= 30, "{:?}", sim.told);
    assert!(sim.counters().hits >= 9_990 && sim.counters().wasted == 0, "{:?}", sim.counters());
}

#[test]
fn a_pair_known_from_another_session_starts_with_its_first_statement() {
    let mut first = sim(200);
    story(&mut first);
    let mut second = Sim::new(first.predictor.edges().clone(), 13 * MS, company(10_000));
    story(&mut second);
    println!("{:?} {:?}", second.told, second.counters());
    assert!(second.told.waits <= 15, "{:?}", second.told);
    assert_eq!(second.told.real, 2, "R and the first T");
    assert_eq!(second.counters().wasted, 0);
}

#[test]
fn every_form_and_width_of_a_parameter_is_foreseen() {
    let forms: [fn(i64) -> Owned; 4] = [|n| text(n), int8, number, |n| quoted(&n.to_string())];
    for column in [INT4_TEXT, INT4] {
        for form in forms {
            let server = move |template: u32, _: &[Owned]| match template {
                PARENTS => {
                    let mut rows = Rows::new(&[column]);
                    for n in 1..=100_i32 {
                        let cell = match column == INT4 {
                            true => n.to_be_bytes().to_vec(),
                            false => n.to_string().into_bytes(),
                        };
                        rows.rows.push(vec![Some(cell)]);
                    }
                    rows
                }
                _ => Rows::new(&[TEXT]).with(&row(&["y"])),
            };
            let mut sim = Sim::new(Edges::new(), 13 * MS, server);
            let employees = sim.query(PARENTS, &[]);
            for n in 0..employees.len() {
                sim.query(SALARIES, &[form(employees.integer(n, 0))]);
            }
            sim.commit();
            assert!(sim.counters().hits >= 97, "{column:?} {:?} {:?}", form(1), sim.counters());
        }
    }
}

#[test]
fn text_keys_with_quotes_are_foreseen_and_backslashes_left_to_the_program() {
    let names: Vec<String> =
        (0..60).map(|n| if n % 10 == 9 { format!("a\\{n}") } else { format!("O'Hara {n}") }).collect();
    let listed = names.clone();
    let server = move |template: u32, _: &[Owned]| match template {
        PARENTS => listed.iter().fold(Rows::new(&[TEXT]), |rows, name| rows.with(&[Some(name.clone())])),
        _ => Rows::new(&[TEXT]).with(&row(&["y"])),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    let people = sim.query(PARENTS, &[]);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(people.text(n, 0), Some(name.as_str()));
        sim.query(SALARIES, &[quoted(name)]);
    }
    sim.commit();
    assert!(sim.counters().hits >= 45, "{:?}", sim.counters());
    assert_eq!(sim.counters().wasted, 0);
    assert!(sim.sent.iter().all(|(_, values)| !values[0].bytes.as_deref().unwrap().contains(&b'\\')));
}

#[test]
fn a_parameter_that_stays_is_sent_as_it_was() {
    let mut sim = sim(300);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0)), text("en"), null()]);
    }
    sim.commit();
    assert!(sim.counters().hits >= 290 && sim.counters().wasted == 0, "{:?}", sim.counters());
}

#[test]
fn a_loop_that_breaks_off_wastes_no_more_than_it_hit() {
    for stop in [1, 2, 3, 4, 7, 20, 100] {
        let mut sim = sim(1000);
        let employees = sim.query(PARENTS, &[]);
        for n in 0..stop {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
        sim.commit();
        sim.assert_law(1);
    }
}

#[test]
fn loops_that_break_off_early_are_learnt() {
    let mut sim = sim(1000);
    story(&mut sim);
    for _ in 0..40 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..6 {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
        sim.commit();
    }
    let before = sim.counters();
    for _ in 0..10 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..6 {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
        sim.commit();
    }
    let after = sim.counters();
    assert_eq!(after.wasted, before.wasted, "nothing is guessed behind the usual end");
    assert!(after.hits - before.hits >= 40, "{before:?} {after:?}");
}

#[test]
fn a_filter_that_skips_rows_by_a_value_is_learnt() {
    let mut sim = sim(2000);
    let employees = sim.query(PARENTS, &[]);
    let mut asked = 0;
    for n in 0..employees.len() {
        if employees.text(n, 2) == Some("here") {
            asked += 1;
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits * 10 >= asked * 9, "{:?} of {asked}", sim.counters());
    assert!(sim.counters().wasted <= 32, "{:?}", sim.counters());
}

#[test]
fn rows_with_null_are_never_guessed() {
    let server = |template: u32, _: &[Owned]| match template {
        PARENTS => (0..200).fold(Rows::new(&[INT4_TEXT]), |rows, n| {
            rows.with(&[(n % 4 != 1).then(|| (500 + n).to_string())])
        }),
        _ => Rows::new(&[TEXT]).with(&row(&["y"])),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    let parents = sim.query(PARENTS, &[]);
    for n in (0..parents.len()).filter(|n| n % 4 != 1) {
        sim.query(SALARIES, &[text(parents.integer(n, 0))]);
    }
    sim.commit();
    assert!(sim.sent.iter().all(|(_, values)| values[0].bytes.is_some()));
    assert!(sim.counters().hits >= 140 && sim.counters().wasted == 0, "{:?}", sim.counters());
}

#[test]
fn an_identity_map_asks_once_for_each_value() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    let mut known = std::collections::HashSet::new();
    for n in 0..employees.len() {
        let dept = employees.integer(n, 3);
        if known.insert(dept) {
            sim.query(SALARIES, &[text(dept)]);
        }
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert_eq!(known.len(), 9);
    sim.assert_law(1);
    assert!(sim.counters().hits >= 5, "{:?}", sim.counters());
}

#[test]
fn a_program_without_an_identity_map_is_served_again_from_memory() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 3))]);
    }
    sim.commit();
    println!("{:?} {:?} {:?}", sim.told, sim.counters(), sim.buffer.counters());
    assert!(sim.told.waits <= 15, "{:?}", sim.told);
    assert!(sim.counters().guesses <= 9, "{:?}", sim.counters());
}

#[test]
fn two_statements_in_each_iteration_are_both_foreseen() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.query(TITLES, &[text(employees.integer(n, 0)), text(employees.text(n, 1).unwrap())]);
    }
    sim.commit();
    println!("{:?} {:?} flights {}", sim.told, sim.counters(), sim.flights.len());
    assert!(sim.told.waits <= 40, "{:?}", sim.told);
    assert!(sim.counters().hits >= 1980 && sim.counters().wasted == 0, "{:?}", sim.counters());
}

#[test]
fn guesses_leave_in_the_order_of_the_program() {
    let mut sim = sim(300);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.query(TITLES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
    let rows_of = |template: u32| -> Vec<i64> {
        sim.sent.iter().filter(|(sent, _)| *sent == template).map(|(_, values)| integer(&values[0])).collect()
    };
    for template in [SALARIES, TITLES] {
        assert!(rows_of(template).is_sorted(), "{template}");
    }
}

/// A chain: the second statement's parameter is in the first one's result.
fn chain(sim: &mut Sim, rows: usize) {
    let employees = sim.query(PARENTS, &[]);
    for n in 0..rows {
        let salaries = sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.query(TITLES, &[text(salaries.integer(0, 0))]);
    }
    sim.commit();
}

#[test]
fn a_chain_is_foreseen_level_by_level() {
    let mut sim = sim(900);
    chain(&mut sim, 900);
    println!("{:?} {:?} flights {}", sim.told, sim.counters(), sim.flights.len());
    assert!(sim.told.waits <= 50, "{:?}", sim.told);
    assert!(sim.counters().hits >= 1780, "{:?}", sim.counters());
    sim.assert_law(32);
}

#[test]
fn nested_loops_are_foreseen() {
    let mut sim = sim(300);
    for _ in 0..2 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..employees.len() {
            let salaries = sim.query(SALARIES, &[text(employees.integer(n, 0))]);
            for s in 0..salaries.len() {
                sim.query(TITLES, &[text(employees.integer(n, 0)), text(salaries.integer(s, 1))]);
            }
        }
        sim.commit();
    }
    println!("{:?} {:?} flights {}", sim.told, sim.counters(), sim.flights.len());
    assert!(sim.told.waits <= 110, "{:?}", sim.told);
    assert!(sim.counters().hits >= 2370, "{:?}", sim.counters());
    sim.assert_law(32);
}

#[test]
fn pages_by_key_are_foreseen() {
    let server = |template: u32, values: &[Owned]| match template {
        PARENTS => {
            let after = integer(&values[0]);
            (after + 1..=(after + 50).min(1980))
                .fold(Rows::new(&[INT4_TEXT, TEXT]), |rows, n| rows.with(&row(&[&n.to_string(), "z"])))
        }
        _ => Rows::new(&[TEXT]).with(&row(&["y"])),
    };
    let mut sim = Sim::new(Edges::new(), 5 * MS, server);
    sim.think = 2 * MS;
    let mut after = 0;
    loop {
        let page = sim.query(PARENTS, &[text(after), text(50)]);
        if page.len() < 50 {
            break;
        }
        after = page.integer(page.len() - 1, 0);
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 35, "{:?}", sim.counters());
    assert!(sim.counters().wasted <= 1, "{:?}", sim.counters());
}

#[test]
fn pages_by_offset_are_foreseen() {
    let server = |template: u32, values: &[Owned]| {
        assert_eq!(template, PARENTS);
        let offset = integer(&values[1]);
        (offset..(offset + 50).min(3020))
            .fold(Rows::new(&[INT4_TEXT]), |rows, n| rows.with(&row(&[&(n * 17).to_string()])))
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    let mut offset = 0;
    loop {
        let page = sim.query(PARENTS, &[number(50), number(offset)]);
        if page.len() < 50 {
            break;
        }
        offset += 50;
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 50 && sim.told.waits <= 25, "{:?} {:?}", sim.told, sim.counters());
    sim.assert_law(16);
}

#[test]
fn ids_in_random_order_waste_next_to_nothing() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    let mut state = 12_345_u64;
    for _ in 0..1000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let n = (state >> 33) as usize % employees.len();
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    sim.assert_law(4); // more than one result has the ids
}

#[test]
fn random_skips_stay_within_the_law() {
    let mut sim = sim(5000);
    let employees = sim.query(PARENTS, &[]);
    let mut state = 99_u64;
    for n in 0..employees.len() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 63 == 0 {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    sim.assert_law(32);
}

#[test]
fn ids_that_are_in_no_result_are_not_guessed() {
    let mut sim = sim(100);
    sim.query(PARENTS, &[]);
    let mut state = 5_u64;
    for _ in 0..500 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sim.query(SALARIES, &[text(1_000_000 + (state >> 40))]);
    }
    sim.commit();
    assert!(sim.counters().guesses <= 2, "{:?}", sim.counters());
}

#[test]
fn a_write_in_each_iteration_ends_the_guessing_after_its_start() {
    let mut sim = sim(1000);
    for _ in 0..5 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..900 {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
            sim.write();
        }
        sim.commit();
    }
    assert!(sim.counters().wasted <= 5, "{:?}", sim.counters());
    assert_eq!(sim.counters().hits, 0);
}

#[test]
fn guesses_that_fail_end_within_the_law() {
    let mut sim = sim(1000);
    sim.refuse_guesses();
    story(&mut sim);
    sim.assert_law(32);
    assert_eq!(sim.counters().hits, 0);
}

#[test]
fn a_slow_program_finds_its_answers_young_enough() {
    let mut sim = sim(300);
    sim.think = 50 * MS;
    story(&mut sim);
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 290, "{:?}", sim.counters());
    assert_eq!(sim.counters().wasted, 0);
}

#[test]
fn statements_that_take_a_quarter_of_the_round_trip_are_not_guessed() {
    let mut sim = sim(100);
    sim.execution = 4 * MS;
    story(&mut sim);
    assert!(sim.counters().guesses <= 1, "{:?}", sim.counters());
}

#[test]
fn nothing_is_guessed_at_no_distance() {
    let mut sim = Sim::new(Edges::new(), Duration::ZERO, company(500));
    story(&mut sim);
    assert_eq!(sim.counters().guesses, 0);
}

#[test]
fn wide_rows_are_bounded_by_bytes() {
    let server = |template: u32, _: &[Owned]| match template {
        PARENTS => parents(500),
        _ => Rows::new(&[TEXT]).with(&[Some("w".repeat(20_000))]),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    story(&mut sim);
    println!("{:?} {:?} {:?}", sim.told, sim.counters(), sim.buffer.counters());
    assert!(sim.flights.iter().all(|flight| *flight <= 40), "{:?}", sim.flights);
    assert!(sim.counters().hits >= 480, "{:?}", sim.counters());
}

#[test]
fn a_portal_read_in_pieces_is_one_frame() {
    let mut sim = sim(1000);
    let column: [Column; 1] = [INT4_TEXT];
    let template = known_as(PARENTS);
    let ticket = sim.predictor.source(&onetrip_loops::Arrival { template, values: &[] });
    let mut next = 0;
    for _ in 0..10 {
        for _ in 0..100 {
            let id = (10_001 + next).to_string();
            sim.predictor.result_row(ticket, &column, &[Some(id.as_bytes())]);
            next += 1;
        }
        sim.predictor.result_end(ticket, onetrip_loops::Outcome { rows: next as u64, ..Default::default() });
        for n in next - 100..next {
            let id = Owned { bytes: Some((10_001 + n).to_string().into_bytes()), form: Form::Text };
            sim.query(SALARIES, &[id]);
        }
    }
    sim.commit();
    assert!(sim.counters().hits >= 980, "{:?}", sim.counters());
    assert_eq!(sim.counters().wasted, 0);
}

#[test]
fn a_driver_that_changes_to_binary_after_five_executions_is_followed() {
    let mut sim = sim(1000);
    for _ in 0..3 {
        let employees = sim.query(PARENTS, &[]);
        for n in 0..employees.len() {
            let id = employees.integer(n, 0);
            let values = if n < 5 { [text(id), text(7)] } else { [int8(id), int8(7)] };
            sim.query(SALARIES, &values);
        }
        sim.commit();
        sim.assert_law(32);
    }
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.told.waits <= 80, "{:?}", sim.told);
}

#[test]
fn loops_that_always_end_with_their_first_statement_stop_being_guessed() {
    let mut sim = sim(500);
    story(&mut sim);
    for _ in 0..50 {
        let employees = sim.query(PARENTS, &[]);
        sim.query(SALARIES, &[text(employees.integer(0, 0))]);
        sim.commit();
    }
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().wasted <= 64, "{:?}", sim.counters());
}

#[test]
fn neighbours_that_change_places_are_still_served() {
    let mut sim = sim(1000);
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        let n = if n > 100 { n ^ 1 } else { n };
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 950 && sim.counters().wasted <= 1, "{:?}", sim.counters());
}

/// Numbers that look random.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn break_after_first(sim: &mut Sim) {
    for _ in 0..20 {
        let employees = sim.query(PARENTS, &[]);
        sim.query(SALARIES, &[text(employees.integer(0, 0))]);
        sim.commit();
    }
}

fn skip_at_random(sim: &mut Sim) {
    let mut state = 7;
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        if random(&mut state) % 2 == 0 {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
    }
    sim.commit();
}

fn shuffle(sim: &mut Sim) {
    let mut state = 11;
    let employees = sim.query(PARENTS, &[]);
    let mut order: Vec<usize> = (0..employees.len()).collect();
    for n in (1..order.len()).rev() {
        order.swap(n, random(&mut state) as usize % (n + 1));
    }
    for n in order {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
    }
    sim.commit();
}

fn write_in_each_iteration(sim: &mut Sim) {
    let employees = sim.query(PARENTS, &[]);
    for n in 0..employees.len() {
        sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        sim.write();
    }
    sim.commit();
}

fn ids_of_no_result(sim: &mut Sim) {
    let mut state = 13;
    sim.query(PARENTS, &[]);
    for _ in 0..500 {
        sim.query(SALARIES, &[text(5_000_000 + random(&mut state) % 1_000_000)]);
    }
    sim.commit();
}

#[test]
fn adversaries_take_no_longer_than_when_observed() {
    type Program = fn(&mut Sim);
    let adversaries: [(&str, Program); 5] = [
        ("break", break_after_first),
        ("skip", skip_at_random),
        ("shuffle", shuffle),
        ("write", write_in_each_iteration),
        ("no result", ids_of_no_result),
    ];
    for round_trip in [MS, 13 * MS] {
        let mut taught = Sim::new(Edges::new(), round_trip, company(1000));
        story(&mut taught);
        for known in [false, true] {
            for (name, program) in adversaries {
                let edges = if known { taught.predictor.edges().clone() } else { Edges::new() };
                let run = |observe: bool| {
                    let mut sim = Sim::new(edges.clone(), round_trip, company(500));
                    if observe {
                        sim.only_observe();
                    }
                    program(&mut sim);
                    sim.assert_law(64); // several loops, each with its own start
                    (sim.now - Duration::from_secs(1), sim.counters())
                };
                let (observed, (guessing, counters)) = (run(true).0, run(false));
                println!("{round_trip:?} known {known} {name}: {observed:?} {guessing:?} {counters:?}");
                assert!(guessing <= observed.mul_f64(1.05), "{name}: {guessing:?} against {observed:?}");
            }
        }
    }
}

#[test]
fn the_same_statement_over_two_results_is_foreseen_in_both() {
    let mut sim = Sim::new(Edges::new(), 13 * MS, |template, values| match template {
        PARENTS => parents(200),
        TITLES => (100..400).rev().fold(Rows::new(&[TEXT, INT4_TEXT]), |rows, n| {
            rows.with(&row(&["of another table", &(10_001 + n).to_string()]))
        }),
        _ => company(0)(template, values),
    });
    for round in 0..3 {
        let employees = sim.query(PARENTS, &[]);
        let others = sim.query(TITLES, &[]);
        for n in 0..employees.len() {
            sim.query(SALARIES, &[text(employees.integer(n, 0))]);
        }
        for n in 0..others.len() {
            sim.query(SALARIES, &[text(others.integer(n, 1))]);
        }
        sim.commit();
        println!("{round} {:?} {:?}", sim.told, sim.counters());
    }
    assert!(sim.told.waits <= 50, "{:?}", sim.told);
    assert!(sim.counters().wasted <= 20, "{:?}", sim.counters());
}

#[test]
fn a_key_of_two_columns_is_one_of_the_row_and_one_of_the_statement_above() {
    let server = |template: u32, values: &[Owned]| match template {
        PARENTS => parents(40),
        SALARIES => {
            (1..=20).fold(Rows::new(&[INT4_TEXT]), |rows, line| rows.with(&row(&[&line.to_string()])))
        }
        _ => Rows::new(&[TEXT]).with(&row(&[&format!("{}-{}", integer(&values[0]), integer(&values[1]))])),
    };
    let mut sim = Sim::new(Edges::new(), 13 * MS, server);
    let orders = sim.query(PARENTS, &[]);
    for n in 0..orders.len() {
        let order = orders.integer(n, 0);
        let lines = sim.query(SALARIES, &[text(order)]);
        for line in 0..lines.len() {
            sim.query(TITLES, &[text(order), text(lines.integer(line, 0))]);
        }
    }
    sim.commit();
    println!("{:?} {:?}", sim.told, sim.counters());
    assert!(sim.counters().hits >= 820 && sim.told.waits <= 45, "{:?} {:?}", sim.told, sim.counters());
    assert_eq!(sim.counters().wasted, 0);
}
