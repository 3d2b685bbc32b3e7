//! What `onetrip run` changes in a program's environment, and what it leaves alone.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use onetrip_target::launch::{LaunchError, Redirect, RedirectOptions, Source, Upstream, redirect};
use onetrip_target::{ConninfoError, Environment, Host, SslMode};

const GATEWAY: &str = "127.0.0.1:6432";

fn environment(variables: &[(&str, &str)]) -> Environment {
    let mut environment = Environment::with_variables(variables.iter().copied());
    environment.user = Some("ada".to_owned());
    environment
}

fn turn(
    environment: &Environment,
    upstream: Option<&str>,
    named: &[&str],
) -> Result<(Upstream, Redirect), LaunchError> {
    let named: Vec<_> = named.iter().map(|name| (*name).to_owned()).collect();
    let upstream = Upstream::find_for_program(upstream, &named, environment)?;
    let gateway: SocketAddr = GATEWAY.parse().unwrap();
    let options = RedirectOptions { gateway, url_variables: &named, sslmode: SslMode::Disable };
    let redirect = redirect(environment, &upstream, &options)?;
    Ok((upstream, redirect))
}

#[track_caller]
fn turned(environment: &Environment, upstream: Option<&str>, named: &[&str]) -> Redirect {
    turn(environment, upstream, named).unwrap().1
}

/// The changes as `NAME=value` and `-NAME`, sorted.
fn changes(redirect: &Redirect) -> Vec<String> {
    let set = redirect.set.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap()));
    let mut changes: Vec<_> = set.chain(redirect.unset.iter().map(|name| format!("-{name}"))).collect();
    changes.sort();
    changes
}

fn notes(redirect: &Redirect) -> Vec<String> {
    redirect.notes.iter().map(ToString::to_string).collect()
}

fn write(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn pg_variables_lead_to_the_gateway_and_say_so() {
    let environment = environment(&[("PGHOST", "db"), ("PGHOSTADDR", "10.0.0.1"), ("PGUSER", "grace")]);
    let redirect = turned(&environment, None, &[]);
    assert_eq!(changes(&redirect), ["-PGHOSTADDR", "PGHOST=127.0.0.1", "PGPORT=6432"]);
    assert_eq!(
        notes(&redirect),
        ["PGHOST=127.0.0.1 (was db)", "PGPORT=6432 (was not set)", "PGHOSTADDR taken away (was 10.0.0.1)",]
    );
}

#[test]
fn with_nothing_set_libpqs_defaults_are_the_upstream() {
    let (upstream, redirect) = turn(&environment(&[]), None, &[]).unwrap();
    assert_eq!(upstream.source, Source::Defaults);
    assert_eq!(upstream.conninfo.hosts, [Host::tcp("localhost", 5432)]);
    assert_eq!(changes(&redirect), ["PGHOST=127.0.0.1", "PGPORT=6432"]);
}

#[test]
fn a_service_becomes_variables() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("services");
    let service = "[shop]\nhost=db\nport=6000\nuser=grace\ndbname=shop\npassword=s3cret\nsslmode=verify-full\nkeepalives=1\n";
    write(&file, service);
    let mut environment = environment(&[("PGSERVICE", "shop"), ("PGPASSWORD", "0ld"), ("PGUSER", "lin")]);
    environment.set("PGSERVICEFILE", &file);
    let (upstream, redirect) = turn(&environment, None, &[]).unwrap();
    assert_eq!(upstream.conninfo.hosts, [Host::tcp("db", 6000)]);
    assert_eq!(upstream.conninfo.sslmode, SslMode::VerifyFull);
    assert_eq!(
        changes(&redirect),
        [
            "-PGSERVICE",
            "PGDATABASE=shop",
            "PGHOST=127.0.0.1",
            "PGPASSWORD=s3cret",
            "PGPORT=6432",
            "PGSSLMODE=disable",
            "PGUSER=grace",
        ]
    );
    let notes = notes(&redirect).join("\n");
    assert!(notes.contains("PGSERVICE taken away (was shop)"), "{notes}");
    assert!(notes.contains("PGPASSWORD=*** (was ***)"), "{notes}");
    assert!(!notes.contains("s3cret") && !notes.contains("0ld"), "{notes}");
}

#[test]
fn what_insists_on_tls_is_weakened() {
    let environment = environment(&[
        ("PGHOST", "db"),
        ("PGPORT", "6432"),
        ("PGSSLROOTCERT", "system"),
        ("PGCHANNELBINDING", "require"),
        ("PGSSLNEGOTIATION", "direct"),
        ("PGREQUIREAUTH", "scram-sha-256"),
    ]);
    let (upstream, redirect) = turn(&environment, None, &[]).unwrap();
    assert_eq!(upstream.conninfo.sslmode, SslMode::VerifyFull);
    assert_eq!(
        changes(&redirect),
        [
            "-PGSSLROOTCERT",
            "PGCHANNELBINDING=prefer",
            "PGHOST=127.0.0.1",
            "PGSSLMODE=disable",
            "PGSSLNEGOTIATION=postgres",
        ]
    );
    let mild = [("PGHOST", "db"), ("PGSSLMODE", "prefer"), ("PGSSLROOTCERT", "/root.pem")];
    let redirect = turned(&self::environment(&mild), None, &[]);
    assert_eq!(changes(&redirect), ["PGHOST=127.0.0.1", "PGPORT=6432"]);
    let old = [("PGHOST", "db"), ("PGREQUIRESSL", "1")];
    let redirect = turned(&self::environment(&old), None, &[]);
    assert_eq!(changes(&redirect), ["PGHOST=127.0.0.1", "PGPORT=6432", "PGSSLMODE=disable"]);
}

#[test]
fn an_upstream_of_the_command_line_brings_its_user_database_and_password() {
    let environment = environment(&[("PGUSER", "lin"), ("PGSSLMODE", "require")]);
    let upstream = "postgres://grace:s3cret@db/shop?sslmode=disable&application_name=x";
    let redirect = turned(&environment, Some(upstream), &[]);
    assert_eq!(
        changes(&redirect),
        [
            "PGDATABASE=shop",
            "PGHOST=127.0.0.1",
            "PGPASSWORD=s3cret",
            "PGPORT=6432",
            "PGSSLMODE=disable",
            "PGUSER=grace",
        ]
    );
    let redirect = turned(&environment, Some("db:5432"), &[]);
    assert_eq!(changes(&redirect), ["PGHOST=127.0.0.1", "PGPORT=6432", "PGSSLMODE=disable"]);
}

#[test]
fn database_url_is_turned_where_it_leads_to_the_upstream() {
    let url = "postgres://grace:s3cret@db/shop?sslmode=require";
    let environment = environment(&[("DATABASE_URL", url)]);
    let (upstream, redirect) = turn(&environment, None, &[]).unwrap();
    assert_eq!(upstream.source, Source::Variable("DATABASE_URL".to_owned()));
    assert_eq!(upstream.conninfo.hosts, [Host::tcp("db", 5432)]);
    // The PG* variables lead to localhost, which is no business of ours.
    assert_eq!(
        changes(&redirect),
        ["DATABASE_URL=postgres://grace:s3cret@127.0.0.1:6432/shop?sslmode=disable"]
    );
    assert_eq!(
        notes(&redirect),
        [
            "DATABASE_URL=postgres://grace:***@127.0.0.1:6432/shop?sslmode=disable (was postgres://grace:***@db/shop?sslmode=require)"
        ]
    );
}

#[test]
fn two_ways_to_one_server_are_both_turned() {
    let environment = environment(&[("DATABASE_URL", "postgres://127.0.0.1/x"), ("PGPORT", "5432")]);
    let redirect = turned(&environment, None, &[]);
    assert_eq!(
        changes(&redirect),
        ["DATABASE_URL=postgres://127.0.0.1:6432/x", "PGHOST=127.0.0.1", "PGPORT=6432"]
    );
}

#[test]
fn what_leads_elsewhere_is_left_alone_with_a_note() {
    let other = environment(&[("PGHOST", "db"), ("DATABASE_URL", "postgres://u:s3cret@other/x")]);
    let redirect = turned(&other, None, &[]);
    assert_eq!(changes(&redirect), ["PGHOST=127.0.0.1", "PGPORT=6432"]);
    let untouched = redirect.untouched[0].to_string();
    assert_eq!(untouched, "DATABASE_URL left as it is: it leads to other:5432, not to db:5432");
    let another = environment(&[("DATABASE_URL", "redis://u:s3cret@other/x")]);
    let (upstream, redirect) = turn(&another, None, &[]).unwrap();
    assert_eq!(upstream.source, Source::Defaults);
    assert_eq!(redirect.untouched[0].to_string(), "DATABASE_URL left as it is: it is not PostgreSQL's");
}

#[test]
fn an_upstream_of_the_command_line_turns_everything() {
    let environment =
        environment(&[("PGHOST", "db"), ("DATABASE_URL", "jdbc:postgresql://other/x?ssl=true")]);
    let redirect = turned(&environment, Some("tunnel:15432"), &[]);
    assert_eq!(
        changes(&redirect),
        [
            "DATABASE_URL=jdbc:postgresql://127.0.0.1:6432/x?sslmode=disable",
            "PGHOST=127.0.0.1",
            "PGPORT=6432",
        ]
    );
}

#[test]
fn named_variables_are_turned_in_every_notation() {
    let environment = environment(&[
        ("A", "postgres://u@db/x"),
        ("B", "jdbc:postgresql://db/x?user=u"),
        ("C", "host=db dbname=x"),
    ]);
    let (upstream, redirect) = turn(&environment, None, &["A", "B", "C"]).unwrap();
    assert_eq!(upstream.source, Source::Variable("A".to_owned()));
    assert_eq!(
        changes(&redirect),
        [
            "A=postgres://u@127.0.0.1:6432/x",
            "B=jdbc:postgresql://127.0.0.1:6432/x?user=u",
            "C=port=6432 host=127.0.0.1 dbname=x",
        ]
    );
}

#[test]
fn a_named_variable_must_be_there_and_lead_to_the_upstream() {
    let environment =
        environment(&[("A", "postgres://db/x"), ("B", "postgres://u:s3cret@other/x"), ("C", "s3cret")]);
    let fails = |upstream, named: &[&str]| turn(&environment, upstream, named).map(drop).unwrap_err();
    assert!(matches!(fails(None, &["NONE"]), LaunchError::Missing { .. }));
    assert!(matches!(
        fails(None, &["C"]),
        LaunchError::Variable { source: ConninfoError::NotRecognised, .. }
    ));
    assert!(matches!(fails(None, &["A", "C"]), LaunchError::Variable { .. }));
    let elsewhere = fails(None, &["A", "B"]);
    assert!(matches!(elsewhere, LaunchError::Elsewhere { .. }));
    assert!(
        elsewhere.to_string().starts_with("B leads to other:5432, but the gateway stands before db:5432")
    );
    assert!(!format!("{elsewhere:?}").contains("s3cret"));
    // A leads there by itself, B is led there.
    assert_eq!(
        changes(&turned(&environment, Some("db:5432"), &["B"]))[..2],
        ["A=postgres://127.0.0.1:6432/x", "B=postgres://u:s3cret@127.0.0.1:6432/x"]
    );
    assert!(matches!(fails(Some("nonsense"), &[]), LaunchError::Upstream(ConninfoError::NotRecognised)));
}

#[test]
fn a_broken_database_url_is_an_error_where_nothing_else_names_the_database() {
    let broken = ("DATABASE_URL", "postgres://u:s3/cret@db/x");
    let error = turn(&environment(&[broken]), None, &[]).map(drop).unwrap_err();
    assert!(matches!(error, LaunchError::Variable { source: ConninfoError::Host, .. }), "{error:?}");
    let redirect = turned(&environment(&[broken, ("PGHOST", "db")]), None, &[]);
    assert_eq!(redirect.untouched.len(), 1);
    assert!(!format!("{:?}", redirect.untouched).contains("cret"));
}

#[test]
fn a_text_is_turned_with_an_eye_on_what_fills_its_gaps() {
    // PG* variables lead elsewhere and stay, so the text itself must say that TLS is off.
    let environment = environment(&[
        ("DATABASE_URL", "postgres://db/x"),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", "/root.pem"),
    ]);
    let redirect = turned(&environment, None, &[]);
    assert_eq!(changes(&redirect), ["DATABASE_URL=postgres://127.0.0.1:6432/x?sslmode=disable"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("services");
    write(&file, "[shop]\nhost=db\nsslmode=require\nuser=grace\n");
    let mut environment = self::environment(&[("DSN", "service=shop dbname=x")]);
    environment.set("PGSERVICEFILE", &file);
    let redirect = turned(&environment, None, &["DSN"]);
    assert_eq!(changes(&redirect), ["DSN=host=127.0.0.1 port=6432 sslmode=disable service=shop dbname=x"]);
    // A URL with a service is PostgreSQL's whatever its variable is called; a word of that name is anything.
    let mut environment = self::environment(&[("X", "postgres://?service=shop"), ("LABELS", "service=shop")]);
    environment.set("PGSERVICEFILE", &file);
    let (upstream, redirect) = turn(&environment, None, &[]).unwrap();
    assert_eq!(
        (upstream.conninfo.address().as_str(), upstream.conninfo.sslmode),
        ("db:5432", SslMode::Require)
    );
    assert_eq!(changes(&redirect), ["X=postgres://127.0.0.1:6432?service=shop&sslmode=disable"]);
}

#[test]
fn the_password_file_is_copied_for_the_new_address() {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join(".pgpass");
    write(&own, "db:5432:*:grace:s3cret\n");
    let mut environment = environment(&[("PGHOST", "db")]);
    environment.home = Some(home.path().to_path_buf());
    let redirect = turned(&environment, None, &[]);
    let copy = redirect.passfiles[0].path().to_path_buf();
    assert_eq!(changes(&redirect)[1], format!("PGPASSFILE={}", copy.display()));
    let content = fs::read_to_string(&copy).unwrap();
    assert!(content.starts_with("127.0.0.1:6432:*:grace:s3cret\n"), "{content}");
    // Through a tunnel the file still knows the address that the program would have used.
    let redirect_by_tunnel = turned(&environment, Some("127.0.0.1:15432"), &[]);
    assert_eq!(redirect_by_tunnel.passfiles.len(), 1);
    drop(redirect);
    assert!(!copy.exists());
    let other = home.path().join("other");
    write(&other, "db:5432:*:*:else\n");
    environment.set("PGPASSFILE", &other);
    let redirect = turned(&environment, None, &[]);
    assert!(fs::read_to_string(redirect.passfiles[0].path()).unwrap().ends_with(":*:*:else\n\n"));
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    let redirect = turned(&environment, None, &[]);
    assert!(redirect.passfiles.is_empty());
    assert!(redirect.untouched[0].to_string().contains("group or world access"));
}

#[test]
fn a_password_file_named_in_a_text_is_copied_too() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a b");
    write(&file, "db:5432:*:*:s3cret\n");
    let text = format!("host=db port=5432 passfile='{}'", file.display());
    let redirect = turned(&environment(&[("DSN", &text)]), None, &["DSN"]);
    let copy = redirect.passfiles[0].path().display().to_string();
    assert_eq!(changes(&redirect)[0], format!("DSN=host=127.0.0.1 port=6432 passfile={copy}"));
}
