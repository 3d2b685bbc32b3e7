//! Where a MySQL or MariaDB server is, and how a program is pointed at the gateway before it.

use onetrip_target::launch::{LaunchError, Redirect, RedirectOptions, Source, Upstream, redirect};
use onetrip_target::{
    Conninfo, ConninfoError, Environment, Protocol, RootCertificates, Settings, SslMode, redact,
};

const GATEWAY: &str = "127.0.0.1:6432";

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::with_variables(variables.iter().copied())
}

fn turn(variables: &[(&str, &str)], upstream: Option<&str>) -> Result<(Upstream, Redirect), LaunchError> {
    let environment = environment(variables);
    let upstream = Upstream::find_for_program(upstream, &[], &environment)?;
    let options = RedirectOptions {
        gateway: GATEWAY.parse().expect("an address"),
        url_variables: &[],
        sslmode: SslMode::Disable,
    };
    let redirect = redirect(&environment, &upstream, &options)?;
    Ok((upstream, redirect))
}

/// Where the gateway leads, and the changes as `NAME=value`, sorted.
fn turned(variables: &[(&str, &str)], upstream: Option<&str>) -> (String, Vec<String>) {
    let (upstream, redirect) = turn(variables, upstream).expect("it can be turned");
    assert_eq!(upstream.conninfo.protocol, Protocol::Mysql);
    assert!(redirect.untouched.is_empty(), "{:?}", redirect.untouched);
    assert!(redirect.unset.is_empty() && redirect.passfiles.is_empty());
    let set = redirect.set.iter().map(|(name, value)| format!("{name}={}", value.to_str().expect("text")));
    let mut set: Vec<_> = set.collect();
    set.sort();
    (upstream.conninfo.address(), set)
}

#[test]
fn every_notation_names_the_server_and_is_rewritten_in_place() {
    for (text, address, after) in [
        ("mysql://u:p%40@db/shop", "db:3306", "mysql://u:p%40@127.0.0.1:6432/shop"),
        ("mariadb://u@db:3307/shop?a=b", "db:3307", "mariadb://u@127.0.0.1:6432/shop?a=b"),
        (
            "mysql+pymysql://u:p@db/shop?charset=utf8mb4",
            "db:3306",
            "mysql+pymysql://u:p@127.0.0.1:6432/shop?charset=utf8mb4",
        ),
        ("mysql2://u@[::1]:3307/shop", "[::1]:3307", "mysql2://u@127.0.0.1:6432/shop"),
        ("mysql://db", "db:3306", "mysql://127.0.0.1:6432"),
        (
            "jdbc:mysql://db/shop?user=u&useSSL=true",
            "db:3306",
            "jdbc:mysql://127.0.0.1:6432/shop?user=u&useSSL=true",
        ),
        ("jdbc:mariadb://db:3307/shop", "db:3307", "jdbc:mariadb://127.0.0.1:6432/shop"),
        ("jdbc:p6spy:mysql://db/shop", "db:3306", "jdbc:p6spy:mysql://127.0.0.1:6432/shop"),
        ("u:p@tcp(db:3307)/shop?parseTime=true", "db:3307", "u:p@tcp(127.0.0.1:6432)/shop?parseTime=true"),
        ("u:p@w/rd:)@tcp(db)/shop", "db:3306", "u:p@w/rd:)@tcp(127.0.0.1:6432)/shop"),
        ("tcp([::1]:3307)/", "[::1]:3307", "tcp(127.0.0.1:6432)/"),
        ("root:pw@/shop", "127.0.0.1:3306", "root:pw@tcp(127.0.0.1:6432)/shop"),
        (
            "root:p@w/@/shop?parseTime=true",
            "127.0.0.1:3306",
            "root:p@w/@tcp(127.0.0.1:6432)/shop?parseTime=true",
        ),
        ("root:pw@tcp/shop", "127.0.0.1:3306", "root:pw@tcp(127.0.0.1:6432)/shop"),
        ("root@tcp(:3307)/shop", "127.0.0.1:3307", "root@tcp(127.0.0.1:6432)/shop"),
        ("root@unix/shop", "/tmp/mysql.sock", "root@tcp(127.0.0.1:6432)/shop"),
        ("mysql://u@db:0/shop", "db:3306", "mysql://u@127.0.0.1:6432/shop"),
    ] {
        let (found, set) = turned(&[("SHOP", text)], None);
        assert_eq!((found.as_str(), set), (address, vec![format!("SHOP={after}")]), "{text}");
        let (found, set) = turned(&[("DATABASE_URL", text)], None);
        assert_eq!((found.as_str(), set), (address, vec![format!("DATABASE_URL={after}")]), "{text}");
    }
    let (found, set) = turned(&[("ADDRESS", "db:3306")], Some("mysql://db"));
    let expected =
        ["ADDRESS=127.0.0.1:6432", "MYSQL_HOST=127.0.0.1", "MYSQL_PORT=6432", "MYSQL_TCP_PORT=6432"];
    assert_eq!((found.as_str(), set), ("db:3306", expected.map(str::to_owned).to_vec()));
}

#[test]
fn a_password_is_never_shown() {
    for text in ["mysql://u:s3cret@db/x", "u:s3cret@tcp(db)/x", "jdbc:mysql://db/x?user=u&password=s3cret"] {
        let (_, redirect) = turn(&[("SHOP", text)], None).expect("it can be turned");
        let shown = format!(
            "{:?} {} {}",
            redirect.notes,
            redact(text),
            Conninfo::parse(text, &environment(&[])).expect("settings")
        );
        assert!(!shown.contains("s3cret") && shown.contains("***"), "{shown}");
    }
}

#[test]
fn variables_of_their_own_name_a_server_together() {
    let host_and_port =
        |address: &str, host: &str, port: &str| (address.to_owned(), vec![host.to_owned(), port.to_owned()]);
    assert_eq!(
        turned(&[("MYSQL_HOST", "db"), ("MYSQL_TCP_PORT", "3307"), ("MYSQL_PWD", "s3cret")], None),
        host_and_port("db:3307", "MYSQL_HOST=127.0.0.1", "MYSQL_TCP_PORT=6432")
    );
    assert_eq!(
        turned(&[("MYSQL_HOST", "db"), ("MYSQL_PORT", "3307")], None),
        host_and_port("db:3307", "MYSQL_HOST=127.0.0.1", "MYSQL_PORT=6432")
    );
    assert_eq!(
        turned(&[("DB_HOST", "db"), ("DB_PORT", "3306")], None),
        host_and_port("db:3306", "DB_HOST=127.0.0.1", "DB_PORT=6432")
    );
    assert_eq!(
        turned(&[("MARIADB_HOST", "db"), ("MARIADB_PORT", "13306")], None),
        host_and_port("db:13306", "MARIADB_HOST=127.0.0.1", "MARIADB_PORT=6432")
    );
}

#[test]
fn a_host_alone_names_the_database_and_stays_as_it_is() {
    let (upstream, redirect) = turn(&[("MYSQL_HOST", "db")], None).expect("it is found");
    assert_eq!(
        (upstream.conninfo.address().as_str(), upstream.conninfo.protocol),
        ("db:3306", Protocol::Mysql)
    );
    assert!(redirect.set.is_empty(), "a program may take port 3306 of the gateway's machine");
    let said = redirect.untouched[0].to_string();
    assert!(said.starts_with("MYSQL_HOST left as it is: no variable names its port"), "{said}");
}

/// What the gateway asks for, and what the program sees.
fn secured(variables: &[(&str, &str)], upstream: Option<&str>) -> (SslMode, bool, Vec<String>) {
    let (_, set) = turned(variables, upstream);
    let (upstream, _) = turn(variables, upstream).expect("it is found");
    assert_eq!(upstream.conninfo.check_kept(), Ok(vec![]));
    (upstream.conninfo.sslmode, upstream.conninfo.passes_tls, set)
}

#[test]
fn tls_that_text_insists_on_becomes_the_gateways_and_is_turned_off_for_the_program() {
    for (text, sslmode, after) in [
        (
            "mysql://u:p@db/x?ssl-mode=REQUIRED&charset=utf8",
            SslMode::Require,
            "mysql://u:p@127.0.0.1:6432/x?ssl-mode=DISABLED&charset=utf8",
        ),
        (
            "mysql2://u@db/x?sslca=/ca.pem&ssl_mode=verify_identity&sslkey=/k&a=b&sslcert=/c",
            SslMode::VerifyFull,
            "mysql2://u@127.0.0.1:6432/x?ssl_mode=DISABLED&a=b",
        ),
        (
            "jdbc:mysql://db/x?sslMode=VERIFY_IDENTITY",
            SslMode::VerifyFull,
            "jdbc:mysql://127.0.0.1:6432/x?sslMode=DISABLED",
        ),
        (
            "jdbc:mariadb://db/x?sslMode=verify-ca&serverSslCert=/ca.pem",
            SslMode::VerifyCa,
            "jdbc:mariadb://127.0.0.1:6432/x?sslMode=disable",
        ),
        ("u:p@tcp(db)/x?tls=skip-verify", SslMode::Require, "u:p@tcp(127.0.0.1:6432)/x?tls=false"),
        ("u:p@tcp(db)/x?a=b&tls=true", SslMode::VerifyFull, "u:p@tcp(127.0.0.1:6432)/x?a=b&tls=false"),
        // What only prefers it goes without, and the gateway prefers it.
        ("mysql://db/x?ssl-mode=PREFERRED", SslMode::Prefer, "mysql://127.0.0.1:6432/x?ssl-mode=PREFERRED"),
        ("mysql://db/x?ssl-mode=DISABLED", SslMode::Disable, "mysql://127.0.0.1:6432/x?ssl-mode=DISABLED"),
    ] {
        let expected = (sslmode, false, vec![format!("SHOP={after}")]);
        assert_eq!(secured(&[("SHOP", text)], None), expected, "{text}");
    }
    let plain = secured(&[("SHOP", "mysql://db/x")], None);
    assert_eq!(
        (plain.0, plain.1),
        (SslMode::Prefer, true),
        "nothing is said: it is between client and server"
    );
    let (upstream, _) =
        turn(&[("SHOP", "mysql://db/x?ssl-mode=VERIFY_CA&ssl-ca=/ca&ssl-cert=/c&ssl-key=/k")], None)
            .expect("it is found");
    let Conninfo { sslrootcert, sslcert, sslkey, .. } = upstream.conninfo;
    assert_eq!(sslrootcert, Some(RootCertificates::File("/ca".into())));
    assert_eq!((sslcert, sslkey), (Some("/c".into()), Some("/k".into())));
}

#[test]
fn the_gateway_asks_for_as_much_tls_as_any_text_unless_it_is_told_how_much() {
    let texts = [("A", "mysql://db/x"), ("B", "mysql://db/y?ssl-mode=REQUIRED")];
    let (sslmode, passes_tls, set) = secured(&texts, None);
    assert_eq!((sslmode, passes_tls), (SslMode::Require, false));
    assert_eq!(set, ["A=mysql://127.0.0.1:6432/x", "B=mysql://127.0.0.1:6432/y?ssl-mode=DISABLED"]);
    let named = |upstream| secured(&texts[1..], Some(upstream)).0;
    assert_eq!(named("mysql://db"), SslMode::Require);
    assert_eq!(named("mysql://db?ssl-mode=VERIFY_IDENTITY"), SslMode::VerifyFull);
    assert_eq!(named("mysql://db?ssl-mode=DISABLED"), SslMode::Disable);
    assert_eq!(named("db:3306"), SslMode::Require);
    let other = secured(&[("A", "mysql://db/x"), ("PGSSLMODE", "verify-full")], None);
    assert!(other.1, "PostgreSQL's variables say nothing of it");
}

#[test]
fn what_asks_for_tls_in_words_that_are_not_known_stays_as_it_is() {
    for text in [
        "mysql://u@db/x?ssl_ca=/ca.pem",
        "mysql://u@db/x?ssl=true",
        "mysql://u@db/x?ssl={\"rejectUnauthorized\":true}",
        "jdbc:mysql://db/x?sslMode=VERIFY_CA&trustCertificateKeyStoreUrl=file:ca.jks&sslCipher=x",
        "u@tcp(db)/x?tls=custom",
    ] {
        let (upstream, redirect) = turn(&[("SHOP", text)], None).expect("it is found");
        assert!(redirect.set.is_empty(), "{text}");
        let said = redirect.untouched[0].to_string();
        assert!(said.contains("asks for TLS with the database"), "{said}");
        assert!(upstream.conninfo.passes_tls, "{text}");
        assert_eq!(upstream.conninfo.check_kept(), Ok(vec![]), "{text}");
    }
    for text in [
        "mysql://u@db/x?ssl-mode=DISABLED",
        "jdbc:mysql://db/x?sslMode=PREFERRED",
        "u@tcp(db)/x?tls=false",
        "mysql+mysqlconnector://u@db/x?ssl_disabled=True",
    ] {
        let (_, redirect) = turn(&[("SHOP", text)], None).expect("it is found");
        assert_eq!(redirect.set.len(), 1, "{text}");
    }
}

#[test]
fn one_protocol_does_not_touch_what_is_anothers() {
    let both = [("A", "postgres://one/x"), ("B", "mysql://two/x"), ("PGHOST", "one")];
    let (upstream, redirect) = turn(&both, None).expect("PostgreSQL goes first");
    assert_eq!(
        (upstream.conninfo.protocol, upstream.conninfo.address().as_str()),
        (Protocol::Postgres, "one:5432")
    );
    assert!(redirect.set.iter().all(|(name, _)| name != "B") && redirect.untouched.is_empty());
    let (upstream, redirect) = turn(&both, Some("mysql://two")).expect("it was named");
    assert_eq!(upstream.source, Source::CommandLine);
    let names: Vec<_> = redirect.set.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["MYSQL_HOST", "MYSQL_TCP_PORT", "MYSQL_PORT", "B"]);
    assert!(redirect.untouched.is_empty(), "{:?}", redirect.untouched);
    let elsewhere = [("DATABASE_URL", "postgres://one/x")];
    let (_, redirect) = turn(&elsewhere, Some("mysql://two")).expect("it was named");
    assert_eq!(redirect.untouched[0].to_string(), "DATABASE_URL left as it is: it is not MySQL's");
}

#[test]
fn servers_that_differ_are_not_guessed_between() {
    let error = turn(&[("A", "mysql://one/x"), ("B", "mysql://two/x")], None).expect_err("which?");
    assert!(matches!(error, LaunchError::Several { .. }), "{error}");
}

#[test]
fn a_port_alone_tells_the_protocol() {
    let protocol = |text: &str| Settings::parse(text).expect("settings").protocol();
    assert_eq!(protocol("db:3306"), Protocol::Mysql);
    assert_eq!(protocol("db:5432"), Protocol::Postgres);
    assert_eq!(protocol("Server=db;Port=3306;Database=x;Uid=u"), Protocol::Mysql);
    for text in ["jdbc:mysql:replication://a,b/x", "jdbc:mysql://address=(host=db)/x"] {
        assert!(Conninfo::parse(text, &environment(&[])).is_err(), "{text}");
    }
}

#[test]
fn a_socket_is_reached_and_text_that_names_one_is_led_by_tcp() {
    for (text, address, after) in [
        (
            "mysql://u@localhost/x?unix_socket=/run/x.sock&charset=utf8",
            "/run/x.sock",
            "mysql://u@127.0.0.1:6432/x?unix_socket=&charset=utf8",
        ),
        ("u:p@unix(/run/x.sock)/x?a=b", "/run/x.sock", "u:p@tcp(127.0.0.1:6432)/x?a=b"),
        // Drivers take the socket, whatever the host is.
        (
            "mysql+pymysql://u@127.0.0.1/x?unix_socket=/run/x.sock",
            "/run/x.sock",
            "mysql+pymysql://u@127.0.0.1:6432/x?unix_socket=",
        ),
        // Cloud SQL's form has no host.
        (
            "mysql+pymysql://u:p@/shop?unix_socket=/cloudsql/i",
            "/cloudsql/i",
            "mysql+pymysql://u:p@127.0.0.1:6432/shop?unix_socket=",
        ),
    ] {
        let (found, set) = turned(&[("SHOP", text)], None);
        assert_eq!((found.as_str(), set), (address, vec![format!("SHOP={after}")]), "{text}");
    }
    let (found, _) = turned(&[], Some("mysql://%2Frun%2Fx.sock/shop"));
    assert_eq!(found, "/run/x.sock");
}

#[test]
fn a_socket_is_another_server_than_the_usual_port_unless_it_is_a_usual_one() {
    for (socket, is_turned) in
        [("/run/b.sock", false), ("/run/mysqld/mysqld.sock", true), ("/tmp/mysql.sock", true)]
    {
        let upstream = format!("mysql://{}/shop", socket.replace('/', "%2F"));
        for (name, value) in [("REPORTS", "mysql://127.0.0.1:3306/x"), ("AT", "localhost:3306")] {
            let (_, redirect) = turn(&[(name, value)], Some(&upstream)).expect("it can be turned");
            let is_set = redirect.set.iter().any(|(variable, _)| variable == name);
            assert_eq!(is_set, is_turned, "{name} with {socket}");
        }
    }
    let pair = [("DB_HOST", "127.0.0.1"), ("DB_PORT", "3306")];
    let (_, redirect) = turn(&pair, Some("mysql://%2Frun%2Fb.sock/shop")).expect("it can be turned");
    assert!(redirect.set.iter().all(|(name, _)| !name.starts_with("DB_")), "{:?}", redirect.set);
    let both = [("A", "mysql://u@localhost/x?unix_socket=/run/b.sock"), ("B", "mysql://127.0.0.1/x")];
    let error = turn(&both, None).expect_err("which?");
    assert!(matches!(error, LaunchError::Several { .. }), "{error}");
    // The port beside a socket does not matter.
    let both = [("A", "mysql://u@localhost:1/x?unix_socket=/run/b.sock"), ("B", "u@unix(/run/b.sock)/x")];
    assert_eq!(turned(&both, None).1.len(), 2);
}

#[test]
fn the_users_option_file_leads_no_program_that_does_not_name_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join(".my.cnf");
    std::fs::write(&file, "[client]\nhost=db\n").expect("a file");
    let find = |command: &str| {
        let mut environment = environment(&[("PGDATABASE", "shop"), ("PGUSER", "me")]);
        environment.home = Some(directory.path().to_path_buf());
        environment.command = command.split_whitespace().map(Into::into).collect();
        let found = Upstream::find_for_program(None, &[], &environment).expect("it is found");
        (found.conninfo.protocol, found.source)
    };
    for command in ["psql", "app --verbose", ""] {
        assert_eq!(find(command), (Protocol::Postgres, Source::Defaults), "{command}");
    }
    let named = format!("app --defaults-file={}", file.display());
    let source = Source::Client(Some(file.display().to_string()));
    assert_eq!(find(&named), (Protocol::Mysql, source));
}

#[test]
fn mysqls_own_clients_are_led_by_arguments_and_others_by_what_their_files_say() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join(".my.cnf"), "[client]\nhost=db\nport=3307\n").expect("a file");
    let of = |command: &str, variables: &[(&str, &str)]| {
        let mut environment = environment(variables);
        environment.home = Some(directory.path().to_path_buf());
        environment.command = command.split(' ').map(Into::into).collect();
        let upstream = Upstream::find_for_program(None, &[], &environment).expect("it is found");
        let options = RedirectOptions {
            gateway: GATEWAY.parse().expect("an address"),
            url_variables: &[],
            sslmode: SslMode::Disable,
        };
        let redirect = redirect(&environment, &upstream, &options).expect("it can be led");
        (upstream.conninfo.address(), redirect)
    };
    let (found, led) = of("mysql shop", &[("DATABASE_URL", "postgres://other/x")]);
    assert_eq!(found, "db:3307");
    let arguments: Vec<_> = led.arguments.iter().map(|word| word.to_str().expect("text")).collect();
    assert_eq!(arguments, ["--protocol=TCP", "--host=127.0.0.1", "--port=6432"]);
    assert_eq!(of("mariadb-dump -h other -P 4000 shop", &[]).0, "other:4000");
    let named = format!("mycli --defaults-file={}", directory.path().join(".my.cnf").display());
    let (found, led) = of(&named, &[]);
    assert_eq!((found.as_str(), led.arguments.len()), ("db:3307", 0));
    assert!(led.untouched[0].to_string().ends_with("a program that reads it is led by --redirect"));
    let (found, led) = of(&named, &[("DATABASE_URL", "mysql://one/x")]);
    assert_eq!((found.as_str(), led.untouched.len()), ("one:3306", 0), "variables go before files");
}

#[test]
fn no_tls_is_wanted_where_the_text_says_so() {
    let mode = |text: &str| Conninfo::parse(text, &environment(&[])).expect("settings").sslmode;
    for text in [
        "mysql://db/x?ssl-mode=DISABLED",
        "mysql://db/x?ssl=false",
        "mysql://db?sslmode=disable",
        "jdbc:mysql://db/x?useSSL=false",
        "jdbc:mariadb://db/x?sslMode=disable",
        "u@tcp(db)/x?tls=false",
        "mysql+mysqlconnector://db/x?ssl_disabled=True",
    ] {
        assert_eq!(mode(text), SslMode::Disable, "{text}");
    }
    for text in
        ["mysql://db/x", "mysql://db/x?ssl-mode=PREFERRED", "jdbc:mysql://db/x?useSSL=true", "db:3306"]
    {
        assert_eq!(mode(text), SslMode::Prefer, "{text}");
    }
}

#[test]
fn what_is_no_dsn_of_gos_is_not_taken_for_one() {
    for text in ["me@/srv", "git@host:a@b/c", "a b:c@/d", "password=a:b@/c", "u:p@/a:b", "x@y/z"] {
        let (_, redirect) = turn(&[("X", text)], Some("127.0.0.1:3306")).expect("it can be turned");
        assert!(redirect.set.iter().all(|(name, _)| name != "X"), "{text}");
    }
}

#[test]
fn tls_that_a_gateway_would_not_keep_is_refused_by_name() {
    for (text, name) in [
        ("mysql://db?ssl-mode=MAYBE", "ssl-mode"),
        ("mysql://db/x?ssl-mode=VERIFY_CA&ssl-capath=/ca", "ssl-capath"),
        ("jdbc:mysql://db/x?sslMode=REQUIRED&enabledSslCipherSuites=x", "enabledSslCipherSuites"),
        ("u@tcp(db)/x?tls=custom", "tls"),
    ] {
        let conninfo = Conninfo::parse(text, &environment(&[])).expect("settings");
        let error = conninfo.check_kept().expect_err(text).to_string();
        assert!(error.starts_with(&format!("{name} cannot be enforced")), "{error}");
    }
    for text in [
        "mysql://db",
        "mysql://db?ssl-mode=DISABLED",
        "mysql://db?ssl-mode=PREFERRED&charset=utf8",
        "mysql://db?ssl-mode=VERIFY_IDENTITY&ssl-ca=ca.pem&ssl-cert=c.pem&ssl-key=k.pem",
        "mysql://db/x?ssl_ca=/ca.pem",
        "u@tcp(db)/x?tls=true",
    ] {
        let conninfo = Conninfo::parse(text, &environment(&[])).expect("settings");
        assert_eq!(conninfo.check_kept(), Ok(vec![]), "{text}");
    }
    let named = turn(&[], Some("mysql://db?ssl-mode=MAYBE")).expect("it is found").0;
    assert!(named.conninfo.check_kept().is_err());
}

#[test]
fn a_client_that_asks_for_tls_stays_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let turn = |command: &str, options: &str, upstream: Option<&str>| {
        std::fs::write(directory.path().join(".my.cnf"), options).expect("a file");
        let mut environment = environment(&[]);
        environment.home = Some(directory.path().to_path_buf());
        environment.command = command.split(' ').map(Into::into).collect();
        let upstream = Upstream::find_for_program(upstream, &[], &environment).expect("it is found");
        let options = RedirectOptions {
            gateway: GATEWAY.parse().expect("an address"),
            url_variables: &[],
            sslmode: SslMode::Disable,
        };
        redirect(&environment, &upstream, &options).expect("it can be led")
    };
    for (command, options, upstream) in [
        ("mysql -h db --ssl-mode=VERIFY_IDENTITY --ssl-ca=ca.pem", "", None),
        ("mysql -h db", "[client]\nssl-ca=ca.pem\n", None),
        ("mariadb -h db", "[client]\nssl\n", None),
        ("mariadb --ssl", "", Some("mysql://db")),
    ] {
        let led = turn(command, options, upstream);
        assert!(led.arguments.is_empty(), "{command}");
        let said = led.untouched[0].to_string();
        assert!(said.contains("left as it is: its option ssl") && said.contains("asks for TLS"), "{said}");
    }
    let led = turn("mysql -u me -- shop", "[client]\nssl-ca=ca.pem\nssl-mode=DISABLED\n", None);
    assert_eq!((led.arguments.len(), led.words_after_arguments), (3, 2));
}

#[test]
fn where_only_postgresql_will_do_it_is_said() {
    let parsed = |text: &str| Conninfo::parse(text, &environment(&[])).and_then(Conninfo::for_postgres);
    assert!(parsed("postgres://db/x").is_ok());
    assert_eq!(parsed("mysql://db/x"), Err(ConninfoError::NotPostgres));
}

#[test]
fn nothing_of_libpqs_variables_holds() {
    let libpq = environment(&[("PGUSER", "grace"), ("PGSSLMODE", "verify-full"), ("PGPORT", "1")]);
    let conninfo = Conninfo::parse("mysql://db/x", &libpq).expect("settings");
    assert_eq!((conninfo.user, conninfo.sslmode, conninfo.hosts[0].port), (None, SslMode::Prefer, 3306));
    assert_eq!(
        Conninfo::parse("mysql://u:p@db/x", &libpq).expect("settings").to_string(),
        "mysql://u@db:3306/x"
    );
}

#[test]
fn the_address_of_a_go_dsn_is_no_host_of_a_url() {
    let text = "mysql://u@unix(/run/mysqld/mysqld.sock)/shop";
    let error = Conninfo::parse(text, &Environment::default()).expect_err("there is no such host");
    assert_eq!(error, ConninfoError::GoAddress { name: "unix(".to_owned() });
}
