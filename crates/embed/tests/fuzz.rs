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
