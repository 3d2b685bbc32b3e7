//! Pointing connection text elsewhere: what changes, and that nothing else does.

use onetrip_target::{ClientTls, ConninfoError, Settings, SslMode, redact, rewrite};
use proptest::prelude::*;

#[track_caller]
fn moves(text: &str, expected: &str) {
    assert_eq!(rewrite(text, "127.0.0.1", 6432, ClientTls::Keep).as_deref(), Ok(expected), "{text}");
}

#[track_caller]
fn moves_to_plain(text: &str, expected: &str) {
    let tls = ClientTls::Plain(SslMode::Disable);
    assert_eq!(rewrite(text, "127.0.0.1", 6432, tls).as_deref(), Ok(expected), "{text}");
}

#[test]
fn a_url_keeps_all_but_its_hosts() {
    moves("postgresql://", "postgresql://127.0.0.1:6432");
    moves("postgres://db/shop", "postgres://127.0.0.1:6432/shop");
    moves(
        "postgres://u:p%40%3A+s@db:5432/sh%6Fp?b=2&a=1",
        "postgres://u:p%40%3A+s@127.0.0.1:6432/sh%6Fp?b=2&a=1",
    );
    moves("postgres://u@a:1,[::1]:2,c/d", "postgres://u@127.0.0.1:6432/d");
    moves("postgresql+psycopg://u@%2Ftmp/d", "postgresql+psycopg://u@127.0.0.1:6432/d");
    moves("postgresql://?user=x", "postgresql://127.0.0.1:6432?user=x");
}

#[test]
fn an_address_among_the_parameters_moves_too() {
    moves(
        "postgresql:///d?host=/tmp&user=u&port=5433",
        "postgresql://127.0.0.1:6432/d?host=127.0.0.1&user=u&port=6432",
    );
    moves("postgresql://db/d?hostaddr=10.0.0.1", "postgresql://127.0.0.1:6432/d?hostaddr=127.0.0.1");
    moves(
        "jdbc:postgresql:d?PGHOST=db&PGPORT=1",
        "jdbc:postgresql://127.0.0.1:6432/d?PGHOST=127.0.0.1&PGPORT=6432",
    );
}

#[test]
fn hosts_among_the_parameters_keep_their_ports_beside_them() {
    moves(
        "postgresql+psycopg://u:p@/d?host=h:5433&x=y",
        "postgresql+psycopg://u:p@/d?host=127.0.0.1:6432&x=y",
    );
    moves("postgresql://u@/d?host=a:1&host=b:2", "postgresql://u@/d?host=127.0.0.1:6432&host=127.0.0.1:6432");
    moves("postgresql://u@/d?host=a:1,b:2", "postgresql://u@/d?host=127.0.0.1:6432");
    moves("Host=db:5433;Username=ada", "Host=127.0.0.1:6432;Username=ada");
    moves("Host=a:1,b:2;Username=ada", "Host=127.0.0.1:6432;Username=ada");
}

#[test]
fn a_jdbc_url_keeps_all_but_its_hosts() {
    moves("jdbc:postgresql://db:5432/shop?user=u&x=y", "jdbc:postgresql://127.0.0.1:6432/shop?user=u&x=y");
    moves("jdbc:postgresql:shop", "jdbc:postgresql://127.0.0.1:6432/shop");
    moves("jdbc:postgresql:shop?user=u", "jdbc:postgresql://127.0.0.1:6432/shop?user=u");
    moves("jdbc:postgresql:", "jdbc:postgresql://127.0.0.1:6432/");
    moves("jdbc:postgresql://", "jdbc:postgresql://127.0.0.1:6432/");
    moves("jdbc:postgresql:///", "jdbc:postgresql://127.0.0.1:6432/");
    moves("jdbc:postgresql://a,b:1/?user=u", "jdbc:postgresql://127.0.0.1:6432/?user=u");
}

#[test]
fn keyword_value_text_keeps_all_but_its_address() {
    moves("host=db port=5432 dbname=shop", "host=127.0.0.1 port=6432 dbname=shop");
    moves("host = '/a b' user=u\tport='1'", "host = 127.0.0.1 user=u\tport=6432");
    moves("hostaddr=10.0.0.1 host=db port=1", "hostaddr=127.0.0.1 host=127.0.0.1 port=6432");
    moves("host='db'user='u'port='1'", "host=127.0.0.1 user='u'port=6432");
    moves(r"dbname=shop password=x\", r"host=127.0.0.1 port=6432 dbname=shop password=x\");
    moves("host=a host=b port=1", "host=127.0.0.1 host=127.0.0.1 port=6432");
}

#[test]
fn an_address_alone_becomes_the_other() {
    moves("db:5432", "127.0.0.1:6432");
    let moved = rewrite("db:5432", "::1", 6432, ClientTls::Plain(SslMode::Disable));
    assert_eq!(moved.as_deref(), Ok("[::1]:6432"));
}

#[test]
fn other_new_addresses_are_spelled_for_their_notation() {
    let to = |text, host| rewrite(text, host, 6432, ClientTls::Keep).unwrap();
    assert_eq!(to("postgres://db/d?host=x", "::1"), "postgres://[::1]:6432/d?host=::1");
    assert_eq!(
        to("postgres://db/d?host=x", "/run/one trip"),
        "postgres://%2Frun%2Fone%20trip:6432/d?host=/run/one%20trip"
    );
    assert_eq!(to("host=db port=1", "/run/one trip"), "host='/run/one trip' port=6432");
}

#[test]
fn what_insists_on_tls_is_weakened_and_nothing_else_is() {
    moves_to_plain("postgres://db/d?sslmode=require&x=1", "postgres://127.0.0.1:6432/d?sslmode=disable&x=1");
    moves_to_plain("postgres://db/d?sslmode=no-verify", "postgres://127.0.0.1:6432/d?sslmode=disable");
    moves_to_plain("postgres://db/d?sslmode=prefer", "postgres://127.0.0.1:6432/d?sslmode=prefer");
    moves_to_plain("postgres://db/d?sslmode=allow", "postgres://127.0.0.1:6432/d?sslmode=allow");
    moves_to_plain("postgres://db/d", "postgres://127.0.0.1:6432/d");
    moves_to_plain("postgres://db/d?ssl=true&x=1", "postgres://127.0.0.1:6432/d?sslmode=disable&x=1");
    moves_to_plain("postgres://db/d?ssl&x=1", "postgres://127.0.0.1:6432/d?sslmode=disable&x=1");
    moves_to_plain(
        "postgresql+asyncpg://db/d?ssl=require",
        "postgresql+asyncpg://127.0.0.1:6432/d?ssl=disable",
    );
    moves_to_plain("jdbc:postgresql://db/d?ssl=true", "jdbc:postgresql://127.0.0.1:6432/d?sslmode=disable");
    moves_to_plain(
        "jdbc:postgresql://db/d?channelBinding=require&sslmode=verify-ca",
        "jdbc:postgresql://127.0.0.1:6432/d?channelBinding=prefer&sslmode=disable",
    );
    moves_to_plain(
        "host=db port=1 sslmode=verify-full sslrootcert=system sslnegotiation=direct sslcertmode=require gssencmode=require",
        "host=127.0.0.1 port=6432 sslmode=disable sslrootcert='' sslnegotiation=postgres sslcertmode=allow gssencmode=prefer",
    );
    moves_to_plain(
        "postgres://db/?sslrootcert=system",
        "postgres://127.0.0.1:6432/?sslrootcert=&sslmode=disable",
    );
    let tls = ClientTls::Plain(SslMode::Prefer);
    let moved = rewrite("host=db port=1 sslmode=require", "h", 2, tls);
    assert_eq!(moved.as_deref(), Ok("host=h port=2 sslmode=prefer"));
}

#[test]
fn a_password_with_unescaped_signs_is_an_error_and_not_half_replaced() {
    for text in
        ["postgres://u:p@ss@db/d", "postgres://u:pa/ss@db/d", "postgres://u:1/ss@db/d", "postgres://u:p#/d"]
    {
        let moved = rewrite(text, "127.0.0.1", 6432, ClientTls::Keep);
        assert!(matches!(moved, Err(ConninfoError::Host | ConninfoError::Port)), "{text}: {moved:?}");
        assert_eq!(redact(text), "postgres:***");
    }
}

#[test]
fn what_stands_behind_a_quoted_value_is_no_pair() {
    for text in ["host='@'?=a ?", "Host=\"db\"x;Port=1", "Host={db}x;Port=1"] {
        let moved = rewrite(text, "127.0.0.1", 6432, ClientTls::Keep);
        assert!(moved.is_err(), "{text}: {moved:?}");
    }
    let moved = rewrite("Host=\"d;b\" ; Port=1", "new", 9, ClientTls::Keep);
    assert_eq!(moved.as_deref(), Ok("Host=new ; Port=9"));
    let moved = rewrite("host=/a b ", "new", 9, ClientTls::Keep);
    assert_eq!(moved.as_deref(), Ok("host=new;Port=9 "));
}

#[test]
fn secrets_are_hidden_where_they_stand() {
    assert_eq!(redact("postgres://u:s3cret@h/d?x=1"), "postgres://u:***@h/d?x=1");
    assert_eq!(redact("postgres://u@h/d?password=s3cret&x=1"), "postgres://u@h/d?password=***&x=1");
    assert_eq!(
        redact("jdbc:postgresql://h/d?user=u&password=s3cret"),
        "jdbc:postgresql://h/d?user=u&password=***"
    );
    assert_eq!(redact(r"host=h password='s3\'cret' user=u"), "host=h password=*** user=u");
    assert_eq!(redact("h:1"), "h:1");
    assert_eq!(redact("mysql://u:s3cret@h"), "mysql://u:***@h");
    assert_eq!(redact("redis://u:s3cret@h"), "redis:***");
    assert_eq!(redact("s3cret"), "***");
    assert_eq!(redact("s3cret s:3cret"), "***");
}

/// A URL of parts, all but the hosts.
fn url_parts() -> impl Strategy<Value = (String, String)> {
    let credentials = prop_oneof![Just(String::new()), "[a-z%4-]{0,3}:[a-z!*+&=;(]{0,6}@"];
    let credentials = credentials.prop_map(|text: String| text.replace('%', "%41"));
    let tail =
        "(/[a-z]{0,5})?(\\?([a-z]{1,5}=[a-z0-9+.%-]{0,5}&?){0,3})?".prop_map(|tail| tail.replace('%', "%41"));
    (credentials, tail)
}

proptest! {
    #[test]
    fn only_the_hosts_of_a_url_change(
        (credentials, tail) in url_parts(),
        hosts in "([a-z]{1,5}(:[1-9][0-9]{0,3})?|\\[::1\\]:77)?",
        jdbc in any::<bool>(),
    ) {
        prop_assume!(!["host=", "hostaddr=", "port="].iter().any(|keyword| tail.contains(keyword)));
        let (scheme, credentials, tail) = match jdbc {
            true => ("jdbc:postgresql://", "", if tail.starts_with('/') { tail } else { format!("/{tail}") }),
            false => ("postgresql://", credentials.as_str(), tail),
        };
        let moved = rewrite(&format!("{scheme}{credentials}{hosts}{tail}"), "new", 9, ClientTls::Keep);
        prop_assert_eq!(moved, Ok(format!("{scheme}{credentials}new:9{tail}")));
    }

    #[test]
    fn only_the_address_of_keyword_value_text_changes(
        before in "(user=[a-z]{1,5} | password='[a-z \\\\]{0,3}x' ){0,2}",
        after in "( +options=[a-z=]{1,5}| +sslmode=require){0,2} *",
        host in "[a-z]{1,5}|'[a-z]{0,3}'",
    ) {
        let moved = rewrite(&format!("{before}host={host} port=77{after}"), "new", 9, ClientTls::Keep);
        prop_assert_eq!(moved, Ok(format!("{before}host=new port=9{after}")));
    }

    #[test]
    fn what_is_weakened_once_needs_no_more_change(
        text in "(postgres://h/?[?]|jdbc:postgresql://h/[?]|host=h |)((ssl|sslmode|requiressl|sslrootcert|channel_binding)=(true|1|require|verify-ca|system|prefer|)[& ]){1,3}",
    ) {
        let tls = ClientTls::Plain(SslMode::Disable);
        let Ok(once) = rewrite(&text, "127.0.0.1", 6432, tls) else { return Ok(()) };
        prop_assert_eq!(rewrite(&once, "127.0.0.1", 6432, tls), Ok(once));
    }

    #[test]
    fn what_is_rewritten_reads_as_the_same_settings_elsewhere(
        text in "(postgres://|jdbc:postgresql:|host=|)[a-z0-9:/?@=&,%+' \\[\\]\\\\é]{0,40}",
    ) {
        let Ok(moved) = rewrite(&text, "127.0.0.1", 6432, ClientTls::Keep) else { return Ok(()) };
        let (old, new) = (Settings::parse(&text).unwrap(), Settings::parse(&moved).unwrap());
        prop_assert_eq!(new.get("host").or(new.get("hostaddr")), Some("127.0.0.1"));
        prop_assert_eq!(new.get("port"), Some("6432"));
        let address = ["host", "hostaddr", "port"];
        let others = |settings: &Settings| {
            let mut others: Vec<_> = settings.iter().filter(|(keyword, _)| !address.contains(keyword))
                .map(|(keyword, value)| (keyword.to_owned(), value.to_owned())).collect();
            others.sort();
            others
        };
        prop_assert_eq!(others(&new), others(&old));
    }
}
