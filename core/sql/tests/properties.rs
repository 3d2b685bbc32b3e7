//! Properties over generated statements and over any bytes.

use onetrip_sql::{Lifter, Literal, TEMPLATE_BYTES_MAX, sqlcommenter};
use proptest::prelude::*;

const SECRET: &str = "QZsecretQZ";

/// A literal as written, and its value.
#[derive(Clone, Debug)]
struct Written {
    source: String,
    value: String,
}

fn quoted(value: String) -> Written {
    Written { source: format!("'{}'", value.replace('\'', "''")), value }
}

fn escaped(value: String) -> Written {
    let body = value.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('é', "\\u00e9");
    Written { source: format!("E'{body}'"), value }
}

fn dollar_quoted(value: String) -> Written {
    let mut tag = String::new();
    while value.contains(&format!("${tag}")) {
        tag.push('q');
    }
    Written { source: format!("${tag}${value}${tag}$"), value }
}

fn unicode(value: String) -> Written {
    let body: String = value
        .chars()
        .map(|c| match c {
            '\'' => "''".to_owned(),
            '\\' => "\\\\".to_owned(),
            c if c.is_ascii_graphic() => c.to_string(),
            c => format!("\\+{:06x}", u32::from(c)),
        })
        .collect();
    Written { source: format!("U&'{body}'"), value }
}

fn continued(value: String) -> Written {
    let middle = value.char_indices().map(|(at, _)| at).nth(value.chars().count() / 2).unwrap_or(0);
    let (front, back) = value.split_at(middle);
    let source = format!("'{}' -- it's\n\t'{}'", front.replace('\'', "''"), back.replace('\'', "''"));
    Written { source, value }
}

fn string_value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z'\\\\$\"/*;,() \n-]{0,12}",
        "\\PC{0,12}",
        Just(SECRET.to_owned()),
        Just("$1".to_owned()),
        Just("'); DROP TABLE x; --".to_owned()),
    ]
}

fn string_literal() -> impl Strategy<Value = Written> {
    let encoders: [fn(String) -> Written; 5] = [quoted, escaped, dollar_quoted, unicode, continued];
    (string_value(), 0..encoders.len()).prop_map(move |(value, encoder)| encoders[encoder](value))
}

fn number_literal() -> impl Strategy<Value = Written> {
    let same = |text: String| Written { source: text.clone(), value: text };
    prop_oneof![
        any::<i64>().prop_map(move |number| same(number.to_string())),
        (any::<i32>(), 1..99_u8).prop_map(move |(whole, cents)| same(format!("{whole}.{cents:02}"))),
        any::<u64>()
            .prop_map(|number| Written { source: format!("0x{number:X}"), value: number.to_string() }),
        any::<u32>().prop_map(|number| Written { source: format!("00{number}"), value: number.to_string() }),
        (1..1000_i32)
            .prop_map(|number| Written { source: format!("{number}e3"), value: format!("{number}000") }),
    ]
}

fn literal() -> impl Strategy<Value = Written> {
    prop_oneof![3 => string_literal(), 2 => number_literal()]
}

/// Statements with a `?` in the place of each literal; no two of them look alike to a list.
const SHAPES: [&str; 9] = [
    "SELECT * FROM s.t WHERE a = ? AND b<>? OR \"c?\" > ?",
    "SELECT ? AS x, f(?, ?), /* it's */ a[?] FROM t -- 'x\n WHERE b BETWEEN ? AND ?",
    "INSERT INTO t (a, b, c) VALUES (?, ?::text, DEFAULT) ON CONFLICT (a) DO UPDATE SET b = ?",
    "UPDATE t SET a = ?, b=b || ?, c = CASE WHEN d THEN ? ELSE ? END WHERE e IN (?) RETURNING ?",
    "DELETE FROM t WHERE a LIKE ? AND b = ANY(?) AND NOT (c = ?);",
    "SELECT $1, ?, $2 FROM t LIMIT ? OFFSET ?",
    "BEGIN; UPDATE t SET a = ?; SELECT ? FROM t; COMMIT",
    "FETCH FORWARD 10 FROM c",
    "SET LOCAL a.b TO ?",
];

fn places(shape: &str) -> usize {
    shape.replace("\"c?\"", "").matches('?').count()
}

fn filled(shape: &str, literals: &[Written]) -> String {
    let mut parts = shape.split("\"c?\"");
    let mut next = literals.iter();
    let mut fill = |part: &str| {
        let mut pieces = part.split('?');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            text.push_str(&next.next().expect("as many literals as places").source);
            text.push_str(piece);
        }
        text
    };
    let first = fill(parts.next().unwrap_or_default());
    parts.fold(first, |text, part| text + "\"c?\"" + &fill(part))
}

fn shape_with_two_fillings() -> impl Strategy<Value = (&'static str, Vec<Written>, Vec<Written>)> {
    proptest::sample::select(&SHAPES[..]).prop_flat_map(|shape| {
        let literals = || proptest::collection::vec(literal(), places(shape));
        (Just(shape), literals(), literals())
    })
}

fn value_of(literal: &Literal<'_>) -> String {
    String::from_utf8_lossy(literal.value(&mut Vec::new())).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_come_back_and_do_not_show_in_the_template((shape, one, other) in shape_with_two_fillings()) {
        let (text, other_text) = (filled(shape, &one), filled(shape, &other));
        let (mut lifter, mut other_lifter) = (Lifter::new(), Lifter::new());
        let lifted = lifter.lift(text.as_bytes(), true);
        let values: Vec<_> = lifted.literals().map(|literal| value_of(&literal)).collect();
        let expected: Vec<_> = one.iter().map(|written| written.value.clone()).collect();
        if shape.contains('?') {
            prop_assert_eq!(values, expected, "of {}", text);
        }
        let other_lifted = other_lifter.lift(other_text.as_bytes(), true);
        prop_assert_eq!(
            String::from_utf8_lossy(lifted.template()),
            String::from_utf8_lossy(other_lifted.template())
        );
    }

    #[test]
    fn rows_and_lists_of_any_length_share_a_template(
        rows in proptest::collection::vec((literal(), literal()), 2..9),
        list in proptest::collection::vec(literal(), 2..9),
    ) {
        let rows_text: Vec<_> = rows.iter().map(|(a, b)| format!("({}, {})", a.source, b.source)).collect();
        let list_text: Vec<_> = list.iter().map(|written| written.source.clone()).collect();
        let text = format!(
            "WITH v AS (VALUES {}) SELECT * FROM v WHERE a IN ({}) AND b = 'x'",
            rows_text.join(", "), list_text.join(", ")
        );
        let mut lifter = Lifter::new();
        let lifted = lifter.lift(text.as_bytes(), true);
        prop_assert_eq!(
            String::from_utf8_lossy(lifted.template()),
            "WITH v AS (VALUES ($1, $2), ...) SELECT * FROM v WHERE a IN ($3, ...) AND b = $4"
        );
        let numbers: Vec<_> = lifted.literals().map(|literal| literal.number).collect();
        let expected: Vec<u32> =
            rows.iter().flat_map(|_| [1, 2]).chain(list.iter().map(|_| 3)).chain([4]).collect();
        prop_assert_eq!(numbers, expected);
        let values: Vec<_> = lifted.literals().map(|literal| value_of(&literal)).collect();
        let pairs = rows.iter().flat_map(|(a, b)| [&a.value, &b.value]);
        let expected: Vec<_> = pairs.chain(list.iter().map(|written| &written.value)).cloned().collect();
        prop_assert_eq!(&values[..values.len() - 1], &expected[..]);
    }

    #[test]
    fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..200), standard in any::<bool>()) {
        check_any(&text, standard)?;
    }

    #[test]
    fn any_tokens_are_taken(text in sql_soup(), standard in any::<bool>()) {
        check_any(text.as_bytes(), standard)?;
    }

    #[test]
    fn a_secret_in_a_literal_never_shows(
        before in "[a-z0-9 =,.()+*<>:\n-]{0,20}",
        opening in proptest::sample::select(&[
            "'", "E'", "N'", "U&'", "B'", "X'", "$$", "$t$", "'a''", "E'\\'", "$t$ $$ ", "-- ", "/* ", "/* /* */ ", "'a'\n'", "\"",
        ][..]),
        after in "[a-z0-9 =,.();+*\\\\<>:\n-]{0,20}",
    ) {
        // Nothing behind the opening can close it, so the rest of the text is inside.
        let text = format!("{before} ,{opening}{SECRET}{}", if opening == "-- " { "" } else { &after });
        let mut lifter = Lifter::new();
        let template = String::from_utf8_lossy(lifter.lift(text.as_bytes(), true).template()).into_owned();
        prop_assert!(!template.contains(SECRET), "{} gives {}", text, template);
    }

    #[test]
    fn tags_of_any_comment_are_taken(comment in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut scratch = Vec::new();
        for (key, value) in sqlcommenter::tags(&comment) {
            prop_assert!(!key.decode(&mut scratch).is_empty());
            prop_assert!(value.decode(&mut scratch).len() <= comment.len());
        }
    }
}

/// Random tokens, many of them halves of something.
fn sql_soup() -> impl Strategy<Value = String> {
    let tokens = [
        "SELECT", "VALUES", "IN", "ARRAY", "(", ")", "[", "]", ",", ";", "1", "-", "-5", "'a'", "'", "E'\\",
        "$1", "$2", "$3", "$9", "$", "$$", "$t$", "\"", "\"q\"", "--", "/*", "*/", "\n", " ", "a", "NULL",
        "::int", ".", "..", "...", "1.5", "1e", "0x", "FETCH", "FROM", "SET", "WITH", "UPDATE", "BEGIN",
        "INTO", "U&'", "UESCAPE", "ROW", "CREATE", "END", "ALL", "e", "\u{e9}", "é$", ":=", "@", "-- x\n",
    ];
    proptest::collection::vec(proptest::sample::select(tokens.to_vec()), 0..40)
        .prop_map(|tokens| tokens.concat())
}

/// What holds for whatever bytes: accessors work, spans lie in the template, the template lifts to itself.
fn check_any(text: &[u8], standard: bool) -> Result<(), TestCaseError> {
    let mut lifter = Lifter::new();
    let lifted = lifter.lift(text, standard);
    let mut behind = text.as_ptr().addr();
    let mut scratch = Vec::new();
    for literal in lifted.literals() {
        prop_assert!(literal.source.as_ptr().addr() >= behind, "in order and apart");
        prop_assert!(!literal.source.is_empty());
        behind = literal.source.as_ptr().addr() + literal.source.len();
        literal.value(&mut scratch);
    }
    for name in [lifted.table(), lifted.name(), lifted.setting_word()].into_iter().flatten() {
        name.folded().for_each(drop);
    }
    lifted.setting_literal();
    lifted.facts().parts();
    let template = lifted.template().to_vec();
    prop_assert!(template.len() <= TEMPLATE_BYTES_MAX);
    let mut again = Lifter::new();
    let lifted_again = again.lift(&template, true);
    prop_assert_eq!(lifted_again.literals().len(), 0, "of {}", String::from_utf8_lossy(&template));
    prop_assert_eq!(
        String::from_utf8_lossy(lifted_again.template()),
        String::from_utf8_lossy(&template),
        "of {}",
        String::from_utf8_lossy(text)
    );
    Ok(())
}
