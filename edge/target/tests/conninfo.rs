//! Connection settings by libpq's rules: the manual's examples, each notation, the environment, the defaults.

use std::path::PathBuf;
use std::time::Duration;

use onetrip_target::{
    Conninfo, ConninfoError, Environment, Host, HostName, Keepalives, RootCertificates, Settings, SslMode,
};
use proptest::prelude::*;

/// What libpq 18's `PQconninfoParse` says about the same text.
#[track_caller]
fn reads(text: &str, expected: &[(&str, &str)]) {
    let settings = Settings::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut found: Vec<_> = settings.iter().collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{text}");
}

#[track_caller]
fn refused(text: &str) -> ConninfoError {
    Settings::parse(text).expect_err(text)
}

fn surroundings() -> Environment {
    variables(&[])
}

fn conninfo(text: &str) -> Conninfo {
    Conninfo::parse(text, &surroundings()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn variables(variables: &[(&str, &str)]) -> Environment {
    let mut environment = Environment::with_variables(variables.iter().copied());
    environment.user = Some("ada".to_owned());
    environment.home = Some("/home/ada".into());
    environment
}

#[test]
fn the_manuals_uri_examples_read_as_in_libpq() {
    reads("postgresql://", &[]);
    reads("postgresql://localhost", &[("host", "localhost")]);
    reads("postgresql://localhost:5433", &[("host", "localhost"), ("port", "5433")]);
    reads("postgresql://localhost/mydb", &[("host", "localhost"), ("dbname", "mydb")]);
    reads("postgresql://user@localhost", &[("host", "localhost"), ("user", "user")]);
    reads(
        "postgresql://user:secret@localhost",
        &[("host", "localhost"), ("user", "user"), ("password", "secret")],
    );
    reads(
        "postgresql://other@localhost/otherdb?connect_timeout=10&application_name=myapp",
        &[
            ("host", "localhost"),
            ("user", "other"),
            ("dbname", "otherdb"),
            ("connect_timeout", "10"),
            ("application_name", "myapp"),
        ],
    );
    reads(
        "postgresql://host1:123,host2:456/somedb?target_session_attrs=any&application_name=myapp",
        &[
            ("host", "host1,host2"),
            ("port", "123,456"),
            ("dbname", "somedb"),
            ("target_session_attrs", "any"),
            ("application_name", "myapp"),
        ],
    );
    reads(
        "postgresql:///mydb?host=localhost&port=5433",
        &[("host", "localhost"), ("port", "5433"), ("dbname", "mydb")],
    );
    reads("postgresql://[2001:db8::1234]/database", &[("host", "2001:db8::1234"), ("dbname", "database")]);
    reads(
        "postgresql:///dbname?host=/var/lib/postgresql",
        &[("host", "/var/lib/postgresql"), ("dbname", "dbname")],
    );
    reads(
        "postgresql://%2Fvar%2Flib%2Fpostgresql/dbname",
        &[("host", "/var/lib/postgresql"), ("dbname", "dbname")],
    );
    reads(
        "postgresql://user@localhost:5433/mydb?options=-c%20synchronous_commit%3Doff",
        &[
            ("host", "localhost"),
            ("port", "5433"),
            ("user", "user"),
            ("dbname", "mydb"),
            ("options", "-c synchronous_commit=off"),
        ],
    );
}

#[test]
fn uris_at_the_edges_read_as_in_libpq() {
    reads("postgresql://h/?", &[("host", "h")]);
    reads("postgresql://u@/db", &[("user", "u"), ("dbname", "db")]);
    reads("postgresql://:pw@h/db", &[("password", "pw"), ("host", "h"), ("dbname", "db")]);
    reads("postgres://[::1]:5/x", &[("host", "::1"), ("port", "5"), ("dbname", "x")]);
    reads("postgresql://h:/d", &[("host", "h"), ("dbname", "d")]);
    reads("postgresql://a,b:5/", &[("host", "a,b"), ("port", ",5")]);
    reads("postgresql://h?host=/tmp", &[("host", "/tmp")]);
    reads("postgresql://h/db?ssl=true", &[("host", "h"), ("dbname", "db"), ("sslmode", "require")]);
    reads("postgresql://h/db?requiressl=1", &[("host", "h"), ("dbname", "db"), ("sslmode", "require")]);
    reads("postgresql://h/a/b", &[("host", "h"), ("dbname", "a/b")]);
    reads("postgresql://a:b:c@h/", &[("user", "a"), ("password", "b:c"), ("host", "h")]);
    reads("postgresql://h/db?host=", &[("host", ""), ("dbname", "db")]);
    reads("postgresql://u:a?b@h/db", &[("user", "u"), ("password", "a?b"), ("host", "h"), ("dbname", "db")]);
    reads("postgresql://u:%2B+%C3%A9@h", &[("user", "u"), ("password", "++é"), ("host", "h")]);
}

#[test]
fn uris_of_other_drivers_read_too() {
    reads("postgresql+psycopg://u@h/d", &[("user", "u"), ("host", "h"), ("dbname", "d")]);
    reads(
        "postgis://h/d?schema=public&&pgbouncer",
        &[("host", "h"), ("dbname", "d"), ("schema", "public"), ("pgbouncer", "")],
    );
    reads(
        "postgresql+asyncpg://h/d?ssl=verify-full",
        &[("host", "h"), ("dbname", "d"), ("sslmode", "verify-full")],
    );
    let settings = Settings::parse("postgresql://h/d?schema=public&sslmode=no-verify").unwrap();
    assert_eq!(settings.unknown().collect::<Vec<_>>(), ["schema"]);
    assert_eq!(conninfo("postgresql://h/d?sslmode=no-verify").sslmode, SslMode::Require);
}

#[test]
fn keyword_value_text_reads_as_in_libpq() {
    reads(" host=a", &[("host", "a")]);
    reads("host = a  port= 5", &[("host", "a"), ("port", "5")]);
    reads("host='a b'port=1", &[("host", "a b"), ("port", "1")]);
    reads(r"host=a\ b", &[("host", "a b")]);
    reads(r"host=abc\", &[("host", "abc")]);
    reads(r"password='it\'s \\ here' user=x", &[("password", r"it's \ here"), ("user", "x")]);
    reads("host=", &[("host", "")]);
    reads("host= port=5", &[("host", "port=5")]);
    reads("requiressl=1", &[("sslmode", "require")]);
    reads("host=a\nport=6", &[("host", "a"), ("port", "6")]);
    reads("host=a host=b", &[("host", "b")]);
    reads("password=a://b host=h", &[("password", "a://b"), ("host", "h")]);
    reads("host=h search_path=mine", &[("host", "h"), ("search_path", "mine")]);
}

#[test]
fn jdbc_urls_read_as_in_pgjdbc() {
    let implied = [("sslmode", "prefer"), ("port", "5432")];
    let reads_jdbc = |text: &str, expected: &[(&str, &str)]| {
        let mut all = expected.to_vec();
        for (keyword, value) in implied {
            if !expected.iter().any(|(known, _)| *known == keyword) {
                all.push((keyword, value));
            }
        }
        reads(text, &all);
    };
    reads_jdbc(
        "jdbc:postgresql://db:5433/shop?user=u&password=a+b%2B",
        &[("host", "db"), ("port", "5433"), ("dbname", "shop"), ("user", "u"), ("password", "a b+")],
    );
    reads_jdbc("jdbc:postgresql:shop", &[("host", "localhost"), ("dbname", "shop")]);
    reads_jdbc("jdbc:postgresql:", &[("host", "localhost")]);
    reads_jdbc("jdbc:postgresql:?user=u", &[("host", "localhost"), ("user", "u")]);
    reads_jdbc("jdbc:postgresql://", &[("host", "localhost")]);
    reads_jdbc("jdbc:postgresql:///", &[("host", "localhost")]);
    reads_jdbc("jdbc:postgresql://db/", &[("host", "db")]);
    reads_jdbc("jdbc:postgresql://:5433/x", &[("host", "localhost"), ("port", "5433"), ("dbname", "x")]);
    reads_jdbc("jdbc:postgresql://a,b:5433/x", &[("host", "a,b"), ("port", "5432,5433"), ("dbname", "x")]);
    reads_jdbc("jdbc:postgresql://[::1]:5433/x", &[("host", "::1"), ("port", "5433"), ("dbname", "x")]);
    reads_jdbc(
        "jdbc:postgresql://h/d?ssl=true",
        &[("host", "h"), ("dbname", "d"), ("sslmode", "verify-full")],
    );
    reads_jdbc(
        "jdbc:postgresql://h/d?sslmode=require&ssl=true&ApplicationName=x",
        &[("host", "h"), ("dbname", "d"), ("sslmode", "require"), ("application_name", "x")],
    );
    reads_jdbc("jdbc:p6spy:postgresql://h/d", &[("host", "h"), ("dbname", "d")]);
}

#[test]
fn a_host_and_a_port_alone_are_enough() {
    reads("db.example:6000", &[("host", "db.example"), ("port", "6000")]);
    reads("[::1]:6000", &[("host", "::1"), ("port", "6000")]);
    reads("/var/run/postgresql", &[("host", "/var/run/postgresql")]);
    reads("/tmp:5433", &[("host", "/tmp"), ("port", "5433")]);
    assert_eq!(refused("::1:6000"), ConninfoError::Brackets { position: 0 });
    assert_eq!(refused("db.example"), ConninfoError::NotRecognised);
}

#[test]
fn mistakes_are_named_by_place() {
    assert_eq!(refused(" "), ConninfoError::Empty);
    assert_eq!(refused("redis://h/d"), ConninfoError::Scheme { scheme: "redis".to_owned() });
    assert_eq!(refused("jdbc:oracle://h/d"), ConninfoError::Scheme { scheme: "jdbc:oracle".to_owned() });
    assert_eq!(refused("a=b"), ConninfoError::NotRecognised);
    assert_eq!(refused("jdbc:tc:postgresql:15:///shop"), ConninfoError::NotRecognised);
    assert_eq!(refused("jdbc:postgresql:/shop"), ConninfoError::NotRecognised);
    assert_eq!(refused("jdbc:postgresql://h/a/b"), ConninfoError::NotRecognised);
    assert_eq!(refused("password='x''y'"), ConninfoError::MissingEquals { position: 12 });
    assert_eq!(refused("host='a"), ConninfoError::Unterminated { position: 5 });
    assert_eq!(refused("=x"), ConninfoError::MissingEquals { position: 0 });
    assert_eq!(refused("postgresql://u:p%zz@h"), ConninfoError::Percent { position: 16 });
    assert_eq!(refused("postgresql://h/%00"), ConninfoError::Percent { position: 15 });
    assert_eq!(refused("postgresql://h/%4"), ConninfoError::Percent { position: 15 });
    assert_eq!(refused("postgresql://[::1"), ConninfoError::Brackets { position: 13 });
    assert_eq!(refused("postgresql://[]/"), ConninfoError::Brackets { position: 13 });
    assert_eq!(refused("postgresql://[::1]x"), ConninfoError::Brackets { position: 13 });
    assert!(matches!(refused("postgresql://%ff/"), ConninfoError::NotUtf8 { .. }));
    assert!(matches!(refused("host=a\0b"), ConninfoError::NotUtf8 { .. }));
}

#[test]
fn no_error_shows_a_piece_of_a_password() {
    for text in [
        "postgres://ada:s3cret/x@h/db",
        "postgres://ada:12/s3cret@h/db",
        "postgres://ada:x@s3cret@h/db",
        "postgres://ada:%s3cret@h/db",
        "postgres://ada:s3cret?x@h:99999/db",
        "password=x s3cret host=h",
        "password='s3cret",
        "host=h port=s3cret",
        "host=h hostaddr=s3cret",
        "s3cret",
        "s3cret s3cret",
    ] {
        let error = Conninfo::parse(text, &surroundings()).expect_err(text);
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{text}: {error:?}");
    }
}

#[test]
fn nothing_that_shows_settings_shows_the_password() {
    let conninfo =
        conninfo("postgres://ada:s3cret@h/db?sslpassword=s3cret&scram_client_key=s3cret&token=s3cret");
    for shown in [format!("{conninfo}"), format!("{conninfo:?}"), format!("{:?}", conninfo.extra)] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    assert_eq!(conninfo.to_string(), "postgresql://ada@h:5432/db?sslmode=prefer");
    assert!(format!("{conninfo:?}").contains(r#""password": "***""#));
}

#[test]
fn several_hosts_share_a_port_or_have_one_each() {
    let hosts = |text| conninfo(text).hosts;
    assert_eq!(hosts("postgresql://a,b:6/"), [Host::tcp("a", 5432), Host::tcp("b", 6)]);
    assert_eq!(hosts("host=a,/tmp,c port=7"), [Host::tcp("a", 7), Host::unix("/tmp", 7), Host::tcp("c", 7)]);
    let both = [Host::tcp("a", 6), Host::tcp("b", 7)];
    assert_eq!(hosts("postgresql+psycopg2://u@/d?host=a:6&host=b:7"), both);
    assert_eq!(hosts("postgresql://u@/d?host=a:6,b:7"), both);
    assert_eq!(hosts("postgresql://u@/d?host=a:6,b"), [Host::tcp("a", 6), Host::tcp("b", 5432)]);
    assert_eq!(hosts("postgresql://u@/d?host=[::1]:6"), [Host::tcp("::1", 6)]);
    assert_eq!(hosts("host=@abstract"), [Host::unix("@abstract", 5432)]);
    let resolve = |text| Conninfo::parse(text, &surroundings()).map(|conninfo| conninfo.hosts);
    assert_eq!(
        resolve("host=a,b,c port=1,2"),
        Err(ConninfoError::Count { keyword: "port", count: 2, hosts: 3 })
    );
    assert_eq!(
        resolve("host=a,b hostaddr=::1"),
        Err(ConninfoError::Count { keyword: "host", count: 2, hosts: 1 })
    );
    assert_eq!(resolve("host=a port=0"), Err(ConninfoError::Port));
    assert_eq!(resolve("host=a port=65536"), Err(ConninfoError::Port));
    assert_eq!(resolve("host=a hostaddr=b"), Err(ConninfoError::HostAddress));
}

#[test]
fn hostaddr_saves_the_look_up_and_keeps_the_name() {
    let address = Some("10.0.0.1".parse().unwrap());
    let name = HostName::Tcp { name: "db".to_owned(), address };
    assert_eq!(conninfo("host=db hostaddr=10.0.0.1").hosts, [Host { name, port: 5432 }]);
    assert_eq!(conninfo("hostaddr=10.0.0.1 port=1").hosts, [Host::tcp("10.0.0.1", 1)]);
    assert_eq!(conninfo("host=a,b hostaddr=10.0.0.1, port=1").hosts[1], Host::tcp("b", 1));
}

#[test]
fn without_a_host_the_socket_directory_counts_and_then_localhost() {
    let here = tempfile::tempdir().unwrap();
    let tmp = tempfile::tempdir().unwrap();
    let mut environment = surroundings();
    let hosts = |environment: &Environment| Conninfo::from_environment(environment).unwrap().hosts;
    assert_eq!(hosts(&environment), [Host::tcp("localhost", 5432)]);
    environment.socket_directories = vec![PathBuf::from("/does/not/exist")];
    assert_eq!(hosts(&environment), [Host::tcp("localhost", 5432)]);
    environment.socket_directories = vec![here.path().to_path_buf(), tmp.path().to_path_buf()];
    assert_eq!(hosts(&environment), [Host::unix(here.path(), 5432)]);
    std::fs::write(tmp.path().join(".s.PGSQL.5432"), "").unwrap();
    assert_eq!(hosts(&environment), [Host::unix(tmp.path(), 5432)]);
    environment.set("PGPORT", "abc");
    let error = Conninfo::from_environment(&environment).unwrap_err().to_string();
    assert!(error.starts_with("invalid PGPORT: it must be a number from 1 to 65535"), "{error}");
    environment.set("PGPORT", "5433");
    assert_eq!(hosts(&environment), [Host::unix(here.path(), 5433)]);
}

#[test]
fn the_environment_fills_what_the_text_leaves_open() {
    let environment = variables(&[
        ("PGHOST", "db"),
        ("PGPORT", "6000"),
        ("PGUSER", "grace"),
        ("PGPASSWORD", "secret"),
        ("PGSSLMODE", "require"),
        ("PGSSLROOTCERT", "/root.pem"),
        ("PGCONNECT_TIMEOUT", "7"),
        ("PGAPPNAME", "app"),
        ("PGOPTIONS", "-c x=1"),
        ("PGTARGETSESSIONATTRS", "read-write"),
    ]);
    let conninfo = Conninfo::from_environment(&environment).unwrap();
    assert_eq!(conninfo.hosts, [Host::tcp("db", 6000)]);
    assert_eq!(conninfo.role(), Ok("grace"));
    assert_eq!(conninfo.dbname.as_deref(), Some("grace"));
    assert_eq!(conninfo.password.as_ref().map(|password| password.reveal()), Some("secret"));
    assert_eq!(conninfo.sslmode, SslMode::Require);
    assert_eq!(conninfo.sslrootcert, Some(RootCertificates::File("/root.pem".into())));
    assert_eq!(conninfo.connect_timeout, Some(Duration::from_secs(7)));
    assert_eq!(conninfo.application_name.as_deref(), Some("app"));
    assert_eq!(conninfo.options.as_deref(), Some("-c x=1"));
    assert_eq!(conninfo.passfile, Some("/home/ada/.pgpass".into()));
    assert_eq!(conninfo.extra.get("target_session_attrs"), Some("read-write"));
    let written = Conninfo::parse("postgres://lin@other/shop?sslmode=disable", &environment).unwrap();
    assert_eq!(written.hosts, [Host::tcp("other", 6000)]);
    assert_eq!((written.role(), written.sslmode), (Ok("lin"), SslMode::Disable));
}

#[test]
fn a_service_comes_after_the_text_and_before_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("services");
    std::fs::write(&file, "[shop]\nhost=from-service\nuser=service-user\nport=7000\n").unwrap();
    let mut environment =
        variables(&[("PGHOST", "from-env"), ("PGUSER", "env-user"), ("PGDATABASE", "env-db")]);
    environment.set("PGSERVICEFILE", &file);
    let by_text = Conninfo::parse("service=shop user=text-user", &environment).unwrap();
    assert_eq!(by_text.hosts, [Host::tcp("from-service", 7000)]);
    assert_eq!((by_text.role(), by_text.dbname.as_deref()), (Ok("text-user"), Some("env-db")));
    environment.set("PGSERVICE", "shop");
    let by_environment = Conninfo::from_environment(&environment).unwrap();
    assert_eq!(by_environment.hosts, [Host::tcp("from-service", 7000)]);
    assert_eq!(by_environment.role(), Ok("service-user"));
    environment.set("PGSERVICE", "none");
    let error = Conninfo::from_environment(&environment).unwrap_err();
    assert_eq!(
        error,
        ConninfoError::ServiceUnknown { service: "none".to_owned(), file: file.display().to_string() }
    );
}

#[test]
fn values_that_libpq_refuses_are_refused() {
    let refused = |text| Conninfo::parse(text, &surroundings()).expect_err(text);
    assert!(matches!(refused("sslmode=verify"), ConninfoError::Value { keyword: "sslmode", .. }));
    assert!(matches!(
        refused("connect_timeout=soon"),
        ConninfoError::Value { keyword: "connect_timeout", .. }
    ));
    assert!(matches!(refused("sslsni=yes"), ConninfoError::Value { keyword: "sslsni", .. }));
    let weak = ConninfoError::WeakSslMode { sslmode: SslMode::Require };
    assert_eq!(refused("sslrootcert=system sslmode=require"), weak);
    assert_eq!(conninfo("sslrootcert=system").sslmode, SslMode::VerifyFull);
    assert_eq!(conninfo("connect_timeout=0").connect_timeout, None);
    assert_eq!(conninfo("connect_timeout=-1").connect_timeout, None);
}

#[test]
fn no_user_at_all_is_an_error_only_for_who_needs_one() {
    let conninfo = Conninfo::parse("db:5432", &Environment::default()).unwrap();
    assert_eq!(conninfo.role(), Err(ConninfoError::NoUser));
    assert_eq!(conninfo.to_url(), "postgresql://db:5432/?sslmode=prefer");
}

#[test]
fn a_variable_that_is_not_utf8_is_an_error() {
    use std::os::unix::ffi::OsStringExt;
    let value = std::ffi::OsString::from_vec(vec![0xff]);
    let environment = Environment::with_variables([("PGPASSWORD", value)]);
    let error = Conninfo::from_environment(&environment).unwrap_err();
    assert_eq!(error, ConninfoError::NotUtf8 { place: "PGPASSWORD".to_owned() });
}

#[test]
fn another_address_changes_nothing_else() {
    let conninfo = conninfo("postgres://ada:pw@a,b/shop?sslmode=require&options=-c%20x");
    let moved = conninfo.with_address("127.0.0.1", 6432);
    assert_eq!(moved.hosts, [Host::tcp("127.0.0.1", 6432)]);
    assert_eq!(Conninfo { hosts: conninfo.hosts.clone(), ..moved }, conninfo);
}

#[test]
fn every_way_to_this_machine_is_one_server() {
    let socket = Host::unix("/var/run/postgresql", 5432);
    assert!(socket.is_same_server(&Host::tcp("localhost", 5432)));
    assert!(Host::tcp("::1", 5432).is_same_server(&Host::tcp("127.0.0.1", 5432)));
    // Other loopback addresses, and other directories, have servers of their own.
    assert!(!Host::tcp("127.0.0.2", 5432).is_same_server(&Host::tcp("127.0.0.1", 5432)));
    assert!(!Host::tcp("127.0.0.2", 5432).is_same_server(&socket));
    assert!(!socket.is_same_server(&Host::unix("/nonexistent", 5432)));
    assert!(Host::tcp("DB", 5432).is_same_server(&Host::tcp("db", 5432)));
    assert!(!socket.is_same_server(&Host::tcp("localhost", 5433)));
    assert!(!socket.is_same_server(&Host::tcp("db", 5432)));
}

fn any_value() -> impl Strategy<Value = String> {
    "[^\0]{1,12}"
}

fn any_host() -> impl Strategy<Value = Host> {
    let name = prop_oneof![
        "[a-z][a-z0-9_.-]{0,8}".prop_map(|name| HostName::Tcp { name, address: None }),
        ("[a-z]{1,5}", any::<std::net::IpAddr>())
            .prop_map(|(name, address)| HostName::Tcp { name, address: Some(address) }),
        any::<std::net::IpAddr>()
            .prop_map(|address| HostName::Tcp { name: address.to_string(), address: None }),
        "/[^\0,]{0,9}".prop_map(|directory| HostName::Unix(directory.into())),
    ];
    (name, 1..=u16::MAX).prop_map(|(name, port)| Host { name, port })
}

prop_compose! {
    fn any_conninfo()(
        hosts in prop::collection::vec(any_host(), 1..4),
        texts in prop::array::uniform5(prop::option::of(any_value())),
        names in prop::array::uniform2(any_value()),
        files in prop::array::uniform3(prop::option::of("/[^\0]{0,9}")),
        sslmode in prop::sample::select(&SslMode::ALL),
        timeout in prop::option::of(1..1000u64),
        sslsni in any::<bool>(),
        extra in prop::option::of("[^\0]{0,9}"),
    ) -> Conninfo {
        let [password, application_name, options, passfile, root] = texts;
        let [user, dbname] = names;
        let [sslcert, sslkey, _] = files.map(|file| file.map(PathBuf::from));
        let mut others = Settings::default();
        if let Some(extra) = extra {
            others.set("target_session_attrs", extra.clone());
            others.set("other.driver's key", extra);
        }
        Conninfo {
            protocol: onetrip_target::Protocol::Postgres,
            passes_tls: false,
            keepalives: Keepalives::default(),
            user: Some(user),
            dbname: Some(dbname),
            password: password.map(onetrip_target::Secret::new),
            sslmode,
            sslrootcert: root.filter(|root| root != "system").map(|root| RootCertificates::File(root.into())),
            sslcert,
            sslkey,
            sslsni,
            connect_timeout: timeout.map(Duration::from_secs),
            application_name,
            options,
            passfile: Some(passfile.map_or_else(|| "/home/ada/.pgpass".into(), PathBuf::from)),
            extra: others,
            certificates: Some("/home/ada/.postgresql".into()),
            hosts,
        }
    }
}

proptest! {
    #[test]
    fn a_url_reads_back_to_the_same_settings(conninfo in any_conninfo()) {
        prop_assert_eq!(Conninfo::parse(&conninfo.to_url(), &surroundings()).unwrap(), conninfo);
    }

    #[test]
    fn a_dsn_reads_back_to_the_same_settings(mut conninfo in any_conninfo()) {
        // Only a URL can spell a keyword with a blank in it.
        let attributes = conninfo.extra.get("target_session_attrs").map(str::to_owned);
        conninfo.extra = Settings::default();
        if let Some(attributes) = attributes {
            conninfo.extra.set("target_session_attrs", attributes);
        }
        prop_assert_eq!(Conninfo::parse(&conninfo.to_dsn(), &surroundings()).unwrap(), conninfo);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,60}") {
        let _ = Conninfo::parse(&text, &surroundings());
        let _ = onetrip_target::redact(&text);
    }

    #[test]
    fn no_text_that_looks_like_an_address_makes_the_reader_panic(
        text in "(postgres://|jdbc:postgresql:|host=|)[a-z0-9:/?@=&,%+' \\[\\]\\\\é]{0,40}",
    ) {
        let _ = Conninfo::parse(&text, &surroundings());
        let _ = onetrip_target::redact(&text);
    }
}
