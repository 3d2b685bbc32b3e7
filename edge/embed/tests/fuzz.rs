//! Whatever a client sends, the server answers or closes, and serves the next client.

mod support;

use std::io::{Read, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use support::{Client, Fixture, put_str};

/// Panics of any thread. A session's thread that panics only closes its connection, which a client cannot tell.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            usual(panic);
        }));
    });
}

/// A frame whose body is near to a message's.
fn frame() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..40);
    let tags = proptest::sample::select(b"PBDECSHQdcfFp?".to_vec());
    prop_oneof![
        (tags, bytes),
        statement().prop_map(|text| {
            let mut body = Vec::new();
            put_str(&mut body, &text);
            (b'Q', body)
        }),
        statement().prop_map(|text| {
            let mut body = vec![0];
            put_str(&mut body, &text);
            body.extend_from_slice(&[0, 0]);
            (b'P', body)
        }),
        Just((b'B', vec![0, 0, 0, 0, 0, 0, 0, 0])),
        Just((b'E', vec![0, 0, 0, 0, 2])),
        Just((b'D', vec![b'P', 0])),
        Just((b'S', Vec::new())),
    ]
}

/// Words in an order that is sometimes SQL.
fn statement() -> impl Strategy<Value = String> {
    let words = proptest::sample::select(
        "select values insert into update delete from where t a ( ) , * 1 'x' $1 ::int = any array[ ] and not null \
         begin commit rollback order by limit group create table drop explain with as case when then end + || \
         - ' \" /* ; $$ E'\\ 1e9 .5 cast( now() unnest( generate_series( 1, 3) interval '1 day' fetch declare c cursor for \
         copy t from stdin set x.y to show all in (select pg_class regclass '{1,2}'::int[] ~ like ilike"
            .split_whitespace()
            .collect::<Vec<_>>(),
    );
    proptest::collection::vec(words, 1..14).prop_map(|words| words.join(" "))
}

#[test]
fn statements_of_any_depth_and_length_are_answered() {
    count_panics();
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let n = 20_000;
    for text in [
        format!("SELECT {}1", "1 + ".repeat(n)),
        format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1", "- ".repeat(n)),
        format!("SELECT {}true", "NOT ".repeat(n)),
        format!("SELECT 1{}", "::int".repeat(n)),
        format!("SELECT 1{}", "[1]".repeat(n)),
        format!("SELECT {}1{}", "(SELECT ".repeat(n), ")".repeat(n)),
        format!("SELECT {}1{}", "abs(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(n), " END".repeat(n)),
        format!("SELECT * FROM {}x{}", "(SELECT * FROM ".repeat(n), ")".repeat(n)),
        format!("SELECT * FROM {}x{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT 1 WHERE 1 = 1{}", " OR 1 = 1".repeat(n)),
        format!("{}SELECT 1", "WITH x AS (".repeat(n)),
        format!("SELECT {}", "/*".repeat(n)),
    ] {
        let messages = client.query(&text);
        assert_eq!(support::tags(&messages), "EZ", "{}", &text[..40]);
        assert_eq!(client.rows("SELECT 1"), ["1"]);
    }
    for (text, rows) in [
        (format!("SELECT 1 IN (0{}, 1)", ", 2".repeat(n)), 1),
        (format!("VALUES (1){}", ", (2)".repeat(n)), n + 1),
        (format!("SELECT {}1", "1 + ".repeat(900)), 1),
        (format!("SELECT {}1", "1 || ".repeat(900)), 1),
        (format!("SELECT {}1{}", "(1 + ".repeat(40), ")".repeat(40)), 1),
    ] {
        assert_eq!(client.rows(&text).len(), rows, "{}", &text[..40]);
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_frames_bring_the_server_down(frames in proptest::collection::vec(frame(), 1..12)) {
        count_panics();
        thread_local! {
            static FIXTURE: Fixture = {
                let fixture = Fixture::new();
                fixture.client().run("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)");
                fixture
            };
        }
        FIXTURE.with(|fixture| {
            let mut client = fixture.client();
            client.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let bytes = client.encoded(|client| {
                for (tag, body) in &frames {
                    client.framed(*tag, body);
                }
                client.bare(b'c').bare(b'S').bare(b'X');
            });
            let _ = client.stream.write_all(&bytes);
            let mut replies = Vec::new();
            // The server closes after Terminate, or earlier after a fatal error; it never hangs.
            match client.stream.read_to_end(&mut replies) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{frames:?}"),
            }
            assert_eq!(fixture.client().rows("SELECT 1"), ["1"]);
            assert_eq!(PANICS.load(Ordering::Relaxed), 0, "{frames:?}");
        });
    }

    #[test]
    fn no_first_bytes_bring_the_server_down(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        thread_local! {
            static FIXTURE: Fixture = Fixture::new();
        }
        FIXTURE.with(|fixture| {
            let mut client = Client::open(fixture);
            let _ = client.stream.write_all(&bytes);
            let _ = client.stream.shutdown(std::net::Shutdown::Write);
            let _ = client.stream.read_to_end(&mut Vec::new());
            assert_eq!(fixture.client().rows("SELECT 1"), ["1"]);
        });
    }
}
