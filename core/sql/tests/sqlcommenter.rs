//! Tags in comments, as the usual frameworks write them.

use onetrip_sql::Lifter;
use onetrip_sql::sqlcommenter::{COMMENT_BYTES_MAX, TAGS_PER_COMMENT_MAX, Tags, tags, trace_of};

fn pairs(comment: &str) -> Vec<(String, String)> {
    let decode = |text: onetrip_sql::sqlcommenter::TagText<'_>| {
        String::from_utf8_lossy(text.decode(&mut Vec::new())).into_owned()
    };
    tags(comment.as_bytes()).map(|(key, value)| (decode(key), decode(value))).collect()
}

#[track_caller]
fn assert_pairs(comment: &str, expected: &[(&str, &str)]) {
    let found = pairs(comment);
    let found: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(found, expected, "of {comment}");
}

#[test]
fn the_specifications_form_is_decoded() {
    assert_pairs(
        "action='%2Fparam*d',controller='index',framework='spring',traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'",
        &[
            ("action", "/param*d"),
            ("controller", "index"),
            ("framework", "spring"),
            ("traceparent", "00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01"),
        ],
    );
    assert_pairs(
        "name='DROP%20TABLE%20FOO',na%3Dme='it\\'s', x = 'a,b'",
        &[("name", "DROP TABLE FOO"), ("na=me", "it's"), ("x", "a,b")],
    );
}

#[test]
fn djangos_doubled_percent_signs_are_single() {
    assert_pairs(
        "db_driver='django.db.backends.postgresql',route='%%5Epolls/%%24'",
        &[("db_driver", "django.db.backends.postgresql"), ("route", "^polls/$")],
    );
}

#[test]
fn marginalias_form_is_read() {
    assert_pairs(
        "application:Shop,controller:users,action:create,line:/app/x.rb:3:in `y'",
        &[
            ("application", "Shop"),
            ("controller", "users"),
            ("action", "create"),
            ("line", "/app/x.rb:3:in `y'"),
        ],
    );
}

#[test]
fn comments_by_people_and_broken_ones_do_no_harm() {
    assert_pairs("", &[]);
    assert_pairs(" just words, and more ", &[]);
    assert_pairs("+ IndexScan(t) ", &[]);
    assert_pairs("a='unterminated", &[("a", "unterminated")]);
    assert_pairs("a='x\\", &[("a", "x\\")]);
    assert_pairs("a='%', b='%4', c='%zz'", &[("a", "%"), ("b", "%4"), ("c", "%zz")]);
    assert_eq!(pairs(&"k:v,".repeat(500)).len(), TAGS_PER_COMMENT_MAX);
    assert!(pairs(&format!("k='{}'", "x".repeat(9_000)))[0].1.len() <= COMMENT_BYTES_MAX);
}

#[test]
fn the_known_tags_are_found_in_the_comments_of_a_statement() {
    let text =
        b"/* why: because */ SELECT 1 /*route='%2Fhome',action='show',application='Shop'*/ -- route:late";
    let mut lifter = Lifter::new();
    let found = Tags::find(lifter.lift(text, true).comments());
    let decoded = |tag: Option<onetrip_sql::sqlcommenter::TagText<'_>>| {
        tag.map(|tag| String::from_utf8_lossy(tag.decode(&mut Vec::new())).into_owned())
    };
    assert_eq!(decoded(found.route).as_deref(), Some("/home"));
    assert_eq!(decoded(found.action).as_deref(), Some("show"));
    assert_eq!(decoded(found.application).as_deref(), Some("Shop"));
    assert!(found.controller.is_none() && found.framework.is_none() && found.traceparent.is_none());
    assert!(Tags::find(lifter.lift(b"SELECT 1 /* x */", true).comments()).is_empty());
}

#[test]
fn spans_of_one_trace_are_one_request() {
    const TRACE: &[u8] = b"0af7651916cd43dd8448eb211c80319c";
    assert_eq!(trace_of(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), Some(TRACE));
    assert_eq!(trace_of(b"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00"), Some(TRACE));
    // A later version may have more fields.
    assert_eq!(trace_of(b"cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00-what"), Some(TRACE));
    assert_eq!(trace_of(b"00-00000000000000000000000000000000-b7ad6b7169203331-01"), None);
    for other in [&b""[..], b"00-1", b"request 7", b"00-0af7651916cd43dd8448eb211c80319c"] {
        assert_eq!(trace_of(other), Some(other), "{}", String::from_utf8_lossy(other));
    }
}
