//! Which values of an environment `onetrip run` points at the gateway, whatever their variables are called.

use std::net::SocketAddr;

use onetrip_target::launch::{Redirect, RedirectOptions, Upstream, redirect};
use onetrip_target::{Environment, RootCertificates, SslMode};

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
            "r2dbc:pool:postgresql://127.0.0.1:6432/shop?sslMode=disable",
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
        ("Host=db.example:5433;Username=u", "Host=127.0.0.1:6432;Username=u"),
        (
            "postgresql+psycopg://u:p@/shop?host=db.example:5433",
            "postgresql+psycopg://u:p@/shop?host=127.0.0.1:6432",
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
fn a_host_that_repeats_the_port_of_its_pair_moves_with_it() {
    let moved = |host: &str| {
        let (_, redirect) = turned(&[("DB_HOST", host), ("DB_PORT", "5433")], Some(DATABASE));
        let value = |wanted: &str| {
            let found = redirect.set.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        (value("DB_HOST"), value("DB_PORT"))
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(moved("db.example:5433"), (text("127.0.0.1:6432"), text("6432")));
    assert_eq!(moved("db.example"), (text("127.0.0.1"), text("6432")));
    // Which port would count is not known.
    assert_eq!(moved("db.example:5434"), (None, None));
}

#[test]
fn what_is_pointed_at_the_gateway_is_not_said_to_be_left() {
    for text in ["\"postgres://u:p@db.example:5433/shop\"", " postgres://u:p@db.example:5433/shop\n"] {
        let (_, redirect) = turned(&[("DATABASE_URL", text)], Some(DATABASE));
        let moved = redirect.set.iter().find(|(name, _)| name == "DATABASE_URL").unwrap();
        assert!(moved.1.to_str().unwrap().contains("@127.0.0.1:6432/"), "{moved:?}");
        assert_eq!(redirect.untouched, []);
    }
}

#[test]
fn urls_within_longer_values_are_pointed_at_the_gateway_and_nothing_around_them_changes() {
    for (before, after) in [
        (
            "-Xmx1g -Durl=jdbc:postgresql://db.example:5433/shop?user=u&ssl=true -Dhost=db.example",
            "-Xmx1g -Durl=jdbc:postgresql://127.0.0.1:6432/shop?user=u&sslmode=disable -Dhost=db.example",
        ),
        (
            r#"{"postgres":[{"password":"p","uri":"postgres://u:p@db.example:5433/shop"}],"n":1}"#,
            r#"{"postgres":[{"password":"p","uri":"postgres://u:p@127.0.0.1:6432/shop"}],"n":1}"#,
        ),
        (
            "postgres://db.example:5433/a,postgres://other.example/b postgres://db.example:5433/c",
            "postgres://127.0.0.1:6432/a,postgres://other.example/b postgres://127.0.0.1:6432/c",
        ),
    ] {
        assert_eq!(value(before).as_deref(), Some(after), "{before}");
    }
    assert_eq!(value("--dsn postgres://other.example:5433/shop"), None);
    assert_eq!(value("see https://db.example:5433/ and mysql://db.example:5433/shop"), None);

    let options = "-Dpassword=s3cret -Durl=postgresql://u:s3cret@db.example:5433/shop?sslmode=verify-full";
    let (address, redirect) = turned(&[("JAVA_TOOL_OPTIONS", options)], None);
    assert_eq!(address, "db.example:5433", "it is all that names a database");
    assert_eq!(
        redirect.notes[0].to_string(),
        "JAVA_TOOL_OPTIONS=…postgresql://u:***@127.0.0.1:6432/shop?sslmode=disable… \
         (was …postgresql://u:***@db.example:5433/shop?sslmode=verify-full…)"
    );
    let environment = Environment::with_variables([("JAVA_TOOL_OPTIONS", options)]);
    let upstream = Upstream::find_for_program(None, &[], &environment).unwrap();
    assert_eq!(upstream.conninfo.sslmode, SslMode::VerifyFull, "the gateway insists where the program did");

    let (address, redirect) = turned(&[("OTHER", options), ("SHOP", "postgres://here.example/shop")], None);
    assert_eq!(address, "here.example:5432", "a value of its own names it rather");
    assert_eq!(
        redirect.untouched[0].to_string(),
        "a URL within OTHER left as it is: it leads to db.example:5433, not to here.example:5432"
    );
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
        "Host=db.example:5433;Port=5433;Username=u", // which of them counts?
        "Host=db.example;Username=u;Database=shop",  // at port 5432
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
    // A pair at an odd port may be anything.
    assert_eq!(address(&[("APP_HOST", "db.example"), ("APP_PORT", "6000")]), "localhost:5432");
    // Two databases of one server.
    let both = [("A", "postgres://db.example/shop"), ("B", "jdbc:postgresql://DB.example/stock")];
    assert_eq!(address(&both), "db.example:5432");
}

#[test]
fn of_two_servers_neither_is_guessed() {
    let find = |upstream, named: &[&str], variables: &[(&str, &str)]| {
        let named: Vec<_> = named.iter().map(|name| (*name).to_owned()).collect();
        Upstream::find(upstream, &named, &Environment::with_variables(variables.iter().copied()))
    };
    let (shop, stock) =
        (("SHOP", "postgres://a.example/shop"), ("STOCK", "postgres://u:s3cret@b.example/stock"));
    for (other, address) in [
        (stock, "b.example:5432"),
        (("STOCK", "postgres://a.example:5433/shop"), "a.example:5433"),
        (("STOCK", "Host=b.example;Username=u;Database=shop"), "b.example:5432"),
        (("STOCK", "postgres:///stock?host=/run/pg"), "/run/pg/.s.PGSQL.5432"),
    ] {
        let said = find(None, &[], &[shop, other]).unwrap_err().to_string();
        let wanted = format!(
            "SHOP leads to a.example:5432, STOCK leads to {address}: give the database that is meant"
        );
        assert!(said.starts_with(&wanted) && said.contains("--upstream"), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
    let pair = [shop, ("DB_HOST", "c.example"), ("DB_PORT", "5432")];
    assert!(find(None, &[], &pair).unwrap_err().to_string().contains("DB_HOST leads to c.example:5432"));
    // Whatever says which one is meant.
    let address = |upstream, named: &[&str], more: &[(&str, &str)]| {
        find(upstream, named, &[&[shop, stock], more].concat()).unwrap().conninfo.address()
    };
    assert_eq!(address(Some("b.example:5432"), &[], &[]), "b.example:5432");
    assert_eq!(address(None, &["STOCK"], &[]), "b.example:5432");
    assert_eq!(address(None, &[], &[("PGHOST", "c.example")]), "c.example:5432");
    assert_eq!(address(None, &[], &[("DATABASE_URL", "postgres://d.example/x")]), "d.example:5432");
}

#[test]
fn what_leads_elsewhere_is_named() {
    let variables = [
        ("DATABASE_URL", "postgres://db.example:5433/shop"),
        ("REPLICA", "postgres://u:s3cret@replica.example/shop"),
        ("BROKEN", "postgres://u:s3cr@t@db.example:5433/shop"),
        ("BROKEN_TOO", "postgresql://u:s3cr%t@db.example:5433/shop"),
        ("CACHE", "redis://cache.example:6379/0"),
        ("LISTEN", "127.0.0.1:8000"),
        ("LABELS", "service=shop"),
        ("EMPTY", ""),
    ];
    let (_, redirect) = turned(&variables, None);
    let left: Vec<_> = redirect.untouched.iter().map(ToString::to_string).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left[0].starts_with("BROKEN left as it is: the host is not a host name"), "{left:?}");
    assert!(left[1].starts_with("BROKEN_TOO left as it is: \"%\" at byte 19"), "{left:?}");
    assert!(!left.concat().contains("s3c"), "{left:?}");
    assert_eq!(left[2], "REPLICA left as it is: it leads to replica.example:5432, not to db.example:5433");
}

#[test]
fn the_gateway_asks_for_as_much_tls_as_the_program_would() {
    let sslmode = |upstream, variables: &[(&str, &str)]| {
        let environment = Environment::with_variables(variables.iter().copied());
        let conninfo = Upstream::find_for_program(upstream, &[], &environment).unwrap().conninfo;
        (conninfo.sslmode, conninfo.sslrootcert)
    };
    let root = |file: &str| Some(RootCertificates::File(file.into()));
    let plain = ("DATABASE_URL", DATABASE);
    let strict = ("JOBS", "postgres://db.example:5433/jobs?sslmode=verify-full&sslrootcert=/ca.pem");
    assert_eq!(sslmode(None, &[plain]), (SslMode::Prefer, None));
    assert_eq!(sslmode(None, &[plain, strict]), (SslMode::VerifyFull, root("/ca.pem")));
    assert_eq!(sslmode(Some("db.example:5433"), &[strict]), (SslMode::VerifyFull, root("/ca.pem")));
    let dotnet = ("JOBS", "Host=db.example;Port=5433;Username=u;SSL Mode=VerifyCA");
    assert_eq!(sslmode(None, &[plain, dotnet]).0, SslMode::VerifyCa);
    let pg = [("PGHOST", "db.example"), ("PGPORT", "5433"), ("PGSSLMODE", "require")];
    assert_eq!(sslmode(Some("jdbc:postgresql://db.example:5433/x"), &pg).0, SslMode::Require);
    // Not for another server, nor against what was said.
    let other = ("JOBS", "postgres://other.example/jobs?sslmode=verify-full");
    assert_eq!(sslmode(None, &[plain, other]), (SslMode::Prefer, None));
    for said in
        ["postgres://db.example:5433/?sslmode=disable", "jdbc:postgresql://db.example:5433/?sslmode=disable"]
    {
        assert_eq!(sslmode(Some(said), &[strict]), (SslMode::Disable, None));
    }
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
