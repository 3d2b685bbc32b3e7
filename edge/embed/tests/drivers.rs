//! Real clients: psql, and the programs in `clients/` as far as they are set up here.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onetrip_embed::{Login, User};
use support::Fixture;

/// Servers that the acts are spread over: each has one writer at a time.
const SERVERS: usize = 3;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn psql_of(fixture: &Fixture) -> Command {
    let address = fixture.server.local_addr();
    let mut command = Command::new("psql");
    command
        .env("PGHOST", address.ip().to_string())
        .env("PGPORT", address.port().to_string())
        .env("PGUSER", "ann")
        .env("PGDATABASE", "shop")
        .env_remove("PGSERVICE")
        .stdin(Stdio::null());
    command
}

#[test]
fn psql_shows_what_is_there() {
    let fixture = Fixture::new();
    fixture.client().run(
        "CREATE TABLE a (id serial PRIMARY KEY, v varchar(10) NOT NULL DEFAULT 'x');
         CREATE TABLE b (x int, a_id int REFERENCES a (id)); CREATE VIEW w AS SELECT v FROM a",
    );
    let psql = |text: &str| {
        let mut command = psql_of(&fixture);
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

/// `scripts/embed-drivers --short`: trips are counted too, and compared with those on PostgreSQL and with the table in
/// the docs. Drivers that are not set up are named and left out.
#[test]
fn drivers_spend_the_trips_that_they_spend_on_postgresql() {
    let python = repository().join(".venv/bin/python");
    if !python.exists() {
        println!("skipped, not set up: {}", python.display());
        return;
    }
    let password = "Xk3/embedded".to_owned();
    let user = User { name: "ann".to_owned(), password: password.clone() };
    let fixtures: Vec<_> = (0..SERVERS)
        .map(|_| Fixture::with(|options| options.login = Login::Scram(vec![user.clone()])))
        .collect();
    let mut command = Command::new(python);
    command.arg(repository().join("scripts/embed-drivers")).arg("--short");
    for fixture in &fixtures {
        command.arg("--server").arg(fixture.server.local_addr().to_string());
    }
    command.env("PGUSER", user.name).env("PGPASSWORD", password).env_remove("PGSERVICE");
    let done = command.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{told}{}", String::from_utf8_lossy(&done.stderr));
    println!("{told}");
}
