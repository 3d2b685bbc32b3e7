//! Real clients: psql, and the programs in `clients/` as far as they are set up here. What is not there is said.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::Fixture;

/// Acts that each driver runs, of those it has.
const ACTS: [&str; 12] = [
    "connect",
    "select_6",
    "txn_2",
    "savepoint",
    "nested_txn",
    "pipeline_3",
    "copy_3",
    "array_param",
    "cursor_50_by_10",
    "n_plus_one_10",
    "bad_OT002_update",
    "fixed_OT002",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn command(fixture: &Fixture, program: &Path) -> Command {
    let address = fixture.server.local_addr();
    let mut command = Command::new(program);
    command
        .env("PGHOST", address.ip().to_string())
        .env("PGPORT", address.port().to_string())
        .env("PGUSER", "ann")
        .env("PGPASSWORD", "unused")
        .env("PGDATABASE", "shop")
        .env("PGSSLMODE", if program.ends_with("node") { "disable" } else { "prefer" })
        .env_remove("PGSERVICE")
        .env("DATABASE_URL", format!("postgres://ann:unused@{address}/shop?sslmode=disable"))
        .stdin(Stdio::null());
    command
}

/// Runs the acts of one driver; `arguments` come before the act's name.
fn run_acts(program: PathBuf, folder: &str, arguments: &[&str]) {
    if !program.exists() {
        println!("skipped, not set up: {} {arguments:?}", program.display());
        return;
    }
    let fixture = Fixture::new();
    let folder = repository().join("clients").join(folder);
    fixture.client().run(&std::fs::read_to_string(repository().join("clients/schema.sql")).unwrap());
    let listed =
        command(&fixture, &program).current_dir(&folder).args(arguments).arg("--list").output().unwrap();
    let known = String::from_utf8_lossy(&listed.stdout).into_owned();
    let acts: Vec<_> = ACTS.iter().filter(|act| known.lines().any(|line| line == **act)).collect();
    assert!(!acts.is_empty(), "{known} {}", String::from_utf8_lossy(&listed.stderr));
    for act in acts {
        let done =
            command(&fixture, &program).current_dir(&folder).args(arguments).arg(act).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{} {arguments:?} {act}:\n{told}", program.display());
    }
}

#[test]
fn psql_shows_what_is_there() {
    let fixture = Fixture::new();
    fixture.client().run(
        "CREATE TABLE a (id serial PRIMARY KEY, v varchar(10) NOT NULL DEFAULT 'x');
         CREATE TABLE b (x int, a_id int REFERENCES a (id)); CREATE VIEW w AS SELECT v FROM a",
    );
    let psql = |text: &str| {
        let mut command = command(&fixture, Path::new("psql"));
        command.args(["--no-psqlrc", "--no-align", "--set=ON_ERROR_STOP=1", "--command", text]);
        command.output().map(|done| {
            let told = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{text}: {told}");
            String::from_utf8_lossy(&done.stdout).into_owned()
        })
    };
    let Ok(tables) = psql("\\dt") else {
        println!("skipped, not installed: psql");
        return;
    };
    assert!(tables.contains("public|a|table|ann\npublic|b|table|ann\n"), "{tables}");
    assert!(psql("\\dv").unwrap().contains("public|w|view|ann"));
    assert!(psql("\\l").unwrap().contains("shop|ann|UTF8"));
    assert!(psql("\\d a").unwrap().contains("v|character varying(10)||not null|'x'"));
    assert!(psql("\\d+ b").unwrap().contains("\"b_a_id_fkey\" FOREIGN KEY (a_id) REFERENCES a(id)"));
    for command in ["\\d", "\\d w", "\\d+ w", "\\di", "\\du", "\\dn", "\\df", "\\dT"] {
        psql(command).unwrap();
    }
}

#[test]
fn python_drivers_run_their_acts() {
    let python = repository().join(".venv/bin/python");
    for program in ["psycopg2_acts.py", "psycopg3_acts.py", "asyncpg_acts.py", "django_acts.py"] {
        run_acts(python.clone(), "python", &[program]);
    }
    for dialect in ["psycopg2", "psycopg"] {
        run_acts(python.clone(), "python", &["sqlalchemy_acts.py", dialect]);
    }
}

#[test]
fn go_drivers_run_their_acts() {
    for driver in ["pgx", "pgx-sql", "libpq"] {
        run_acts(repository().join("clients/go/go-client"), "go", &[driver]);
    }
}

#[test]
fn node_runs_its_acts() {
    let is_set_up = repository().join("clients/node/node_modules").exists();
    let node = if is_set_up { "/usr/bin/node" } else { "/nonexistent" };
    run_acts(PathBuf::from(node), "node", &["acts.js"]);
}

#[test]
fn java_drivers_run_their_acts() {
    let folder = repository().join("clients/java/target");
    let is_set_up = folder.join("clients-1.jar").exists();
    let java = if is_set_up { "/usr/bin/java" } else { "/nonexistent" };
    let classes = "target/clients-1.jar:target/lib/*";
    for driver in ["pgjdbc", "hibernate"] {
        let options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes, "onetrip.Acts", driver];
        run_acts(PathBuf::from(java), "java", &options);
    }
}
