//! Which values of an environment `onetrip run` points at the gateway, whatever their variables are called.

use std::net::SocketAddr;

use onetrip_target::launch::{Redirect, RedirectOptions, Upstream, redirect};
use onetrip_target::{Environment, SslMode};

const DATABASE: &str = "postgres://ada@db.example:5433/shop";

fn turned(variables: &[(&str, &str)], upstream: Option<&str>) -> (String, Redirect) {
    let environment = Environment::with_variables(variables.iter().copied());
    let upstream = Upstream::find(upstream, &[], &environment).unwrap();
    let gateway: SocketAddr = "127.0.0.1:6432".parse().unwrap();
    let options = RedirectOptions { gateway, url_variables: &[], sslmode: SslMode::Disable };
    let redirect = redirect(&environment, &upstream, &options).unwrap();
    (upstream.conninfo.address(), redirect)
}

/// What becomes of a variable's value before the database at db.example:5433; `None` where it stays.
fn value(text: &str) -> Option<String> {
    let (_, redirect) = turned(&[("SHOP", text)], Some(DATABASE));
    let set = redirect.set.into_iter().find(|(name, _)| name == "SHOP");
    set.map(|(_, value)| value.into_string().unwrap())
}

/// The changed variables other than PG*, sorted.
fn names(variables: &[(&str, &str)], upstream: Option<&str>) -> Vec<String> {
    let (_, redirect) = turned(variables, upstream);
    let mut names: Vec<_> = redirect.set.into_iter().map(|(name, _)| name).collect();
    names.retain(|name| !name.starts_with("PG"));
    names.sort();
    names
}

#[test]
fn every_notation_that_names_the_database_is_pointed_at_the_gateway() {
    for (before, after) in [
        (
            "postgres://u:p@db.example:5433/shop?sslmode=require",
            "postgres://u:p@127.0.0.1:6432/shop?sslmode=disable",
        ),
        ("postgresql+asyncpg://DB.EXAMPLE:5433/shop", "postgresql+asyncpg://127.0.0.1:6432/shop"),
        ("ecto://u:p@db.example:5433/shop", "ecto://u:p@127.0.0.1:6432/shop"),
        ("jdbc:postgresql://db.example:5433/shop?user=u", "jdbc:postgresql://127.0.0.1:6432/shop?user=u"),
        (
            "r2dbc:pool:postgresql://db.example:5433/shop?sslMode=VERIFY_FULL",
            "r2dbc:pool:postgresql://127.0.0.1:6432/shop?sslMode=VERIFY_FULL",
        ),
        (
            "r2dbc:postgresql://db.example:5433/shop?sslMode=require",
            "r2dbc:postgresql://127.0.0.1:6432/shop?sslMode=disable",
        ),
        (
            "vertx-reactive:postgresql://db.example:5433/shop",
            "vertx-reactive:postgresql://127.0.0.1:6432/shop",
        ),
        ("host=db.example port=5433 dbname=shop", "host=127.0.0.1 port=6432 dbname=shop"),
        ("pgsql:host=db.example;port=5433;dbname=shop", "pgsql:host=127.0.0.1;port=6432;dbname=shop"),
        ("dbi:Pg:dbname=shop;host=db.example;port=5433", "dbi:Pg:dbname=shop;host=127.0.0.1;port=6432"),
        (
            "Host=db.example;Port=5433;Username=u;Password=\"a;b\";SSL Mode=VerifyFull",
            "Host=127.0.0.1;Port=6432;Username=u;Password=\"a;b\";SSL Mode=disable",
        ),
        ("Server=db.example; Port=5433; User Id=u;", "Server=127.0.0.1; Port=6432; User Id=u;"),
        (
            "Driver={PostgreSQL Unicode};Server=db.example;Port=5433;Uid=u;Pwd={a;b}",
            "Driver={PostgreSQL Unicode};Server=127.0.0.1;Port=6432;Uid=u;Pwd={a;b}",
        ),
        ("db.example:5433", "127.0.0.1:6432"),
        ("tcp://db.example:5433", "tcp://127.0.0.1:6432"),
    ] {
        assert_eq!(value(before).as_deref(), Some(after), "{before}");
    }
}

#[test]
fn what_names_something_else_stays() {
    for other in [
        "https://db.example:5433/",
        "http://db.example:5433",
        "redis://db.example:5433/0",
        "amqp://db.example:5433",
        "mysql://u@db.example:5433/shop",
        "jdbc:mysql://db.example:5433/shop",
        "r2dbc:mysql://db.example:5433/shop",
        "postgres://db.example/shop", // at port 5432
        "postgres://db.example:5434/shop",
        "postgres://replica.example:5433/shop",
        "db.example:5434",
        "db.example",
        "db.example:5433,db2.example:5433",
        "db.example:5433/path",
        "5433",
        "host=db.example port=5434 dbname=shop",
        "host=db.example",
        "host=db.example port=5433 colour=red",
        "-Dhost=db.example -Dport=5433",
        "Server=db.example;Database=shop;User Id=u", // SQL Server's, at its own port
        "Data Source=db.example,5433;Initial Catalog=shop",
        "Server=db.example;Port=3306;Uid=u",
        "Host=db.example:5433;Username=u",
        "Host=db.example;Username=u;Database=shop", // at port 5432
        "redis://h:5433?target=db.example:5433",
        "--host=db.example --port=5433",
    ] {
        assert_eq!(value(other), None, "{other}");
    }
}

#[test]
fn npgsqls_own_words_mean_postgresqls_port() {
    let upstream = Some("postgres://db.example/shop");
    let own = [("ConnectionStrings__Shop", "Host=db.example;Database=shop;Username=ada")];
    let (_, redirect) = turned(&own, upstream);
    let (_, value) = redirect.set.iter().find(|(name, _)| name == "ConnectionStrings__Shop").unwrap();
    assert_eq!(value, "Host=127.0.0.1;Database=shop;Username=ada;Port=6432");
    let theirs = [("ConnectionStrings__Shop", "Server=db.example;Database=shop;Uid=ada")];
    assert!(names(&theirs, upstream).is_empty());
}

#[test]
fn pairs_of_host_and_port_go_together_whatever_their_prefix() {
    for (host, port) in [
        ("DB_HOST", "DB_PORT"),
        ("POSTGRES_SERVICE_HOST", "POSTGRES_SERVICE_PORT"),
        ("RDS_HOSTNAME", "RDS_PORT"),
        ("DB_PORT_5432_TCP_ADDR", "DB_PORT_5432_TCP_PORT"),
        ("MYAPP_DATABASE_SERVER", "MYAPP_DATABASE_PORT"),
        ("dbHost", "dbPort"),
    ] {
        let mut both = vec![host, port];
        both.sort_unstable();
        assert_eq!(names(&[(host, "db.example"), (port, "5433")], Some(DATABASE)), both);
        for (other_host, other_port) in
            [("db.example", "5434"), ("cache.example", "5433"), ("db.example", "x")]
        {
            assert!(names(&[(host, other_host), (port, other_port)], Some(DATABASE)).is_empty());
        }
        assert!(names(&[(host, "db.example")], Some(DATABASE)).is_empty(), "a host alone");
        assert!(names(&[(port, "5433")], Some(DATABASE)).is_empty(), "a port alone");
    }
    assert!(
        names(&[("HOST", "db.example"), ("PORT", "5433")], Some(DATABASE)).is_empty(),
        "what a server listens at"
    );
}

#[test]
fn a_port_that_another_host_may_share_stays_and_says_why() {
    for other in ["DB_REPLICA_HOST", "DB_HOST_REPLICA", "DB_READ_HOST"] {
        let variables = [("DB_HOST", "db.example"), ("DB_PORT", "5433"), (other, "replica.example")];
        assert!(names(&variables, Some(DATABASE)).is_empty(), "{other}");
        let (_, redirect) = turned(&variables, Some(DATABASE));
        assert!(redirect.untouched[0].to_string().contains(other), "{}", redirect.untouched[0]);
    }
    let own_port = [
        ("DB_HOST", "db.example"),
        ("DB_PORT", "5433"),
        ("DB_REPLICA_HOST", "replica.example"),
        ("DB_REPLICA_PORT", "5433"),
        ("REDIS_HOST", "cache.example"),
    ];
    assert_eq!(names(&own_port, Some(DATABASE)), ["DB_HOST", "DB_PORT"]);
    let same = [("DB_HOST", "db.example"), ("DB_PORT", "5433"), ("DB_REPLICA_HOST", "DB.example")];
    assert_eq!(names(&same, Some(DATABASE)), ["DB_HOST", "DB_PORT"]);
}

#[test]
fn the_one_server_that_variables_name_is_the_database() {
    let address = |variables: &[(&str, &str)]| turned(variables, None).0;
    assert_eq!(address(&[("SHOP_DB", "postgres://db.example:5433/shop")]), "db.example:5433");
    assert_eq!(address(&[("DB_HOST", "db.example"), ("DB_PORT", "5432")]), "db.example:5432");
    assert_eq!(address(&[("POSTGRES_HOST", "db.example"), ("POSTGRES_PORT", "6000")]), "db.example:6000");
    assert_eq!(address(&[("PGHOST", "here"), ("SHOP_DB", "postgres://db.example:5433/shop")]), "here:5432");
    // A pair at an odd port may be anything, and of two databases neither is guessed.
    assert_eq!(address(&[("APP_HOST", "db.example"), ("APP_PORT", "6000")]), "localhost:5432");
    assert_eq!(
        address(&[("A", "postgres://a.example/shop"), ("B", "postgres://b.example/shop")]),
        "localhost:5432"
    );
}

#[test]
fn no_password_is_shown() {
    let variables = [
        ("A", "Host=db.example;Port=5433;Username=u;Password=s3cret"),
        ("B", "Driver={PostgreSQL};Server=db.example;Port=5433;Pwd={s3;cret}"),
        ("C", "pgsql:host=db.example;port=5433;password=s3cret"),
        ("D", "r2dbc:postgresql://u:s3cret@db.example:5433/shop"),
    ];
    let (_, redirect) = turned(&variables, Some(DATABASE));
    let notes: String = redirect.notes.iter().map(|note| format!("{note}\n")).collect();
    assert_eq!(notes.matches("***").count(), 8, "{notes}");
    assert!(!notes.contains("cret"), "{notes}");
}
