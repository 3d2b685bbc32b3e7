//! The scanner against PostgreSQL's own lexer and grammar (pg_query), over statements as drivers write them.

use std::collections::HashMap;

use onetrip_sql::{Lifter, LiteralKind};
use pg_query::protobuf::Token;
use pg_query::{FingerprintOptions, NodeEnum};
use proptest::prelude::*;

/// A statement, and the constants in it that pg_query's normalization leaves in place.
struct Case {
    text: String,
    kept: Vec<String>,
}

fn cases(file: &str) -> Vec<Case> {
    let paragraphs = file.split("\n\n").skip(1); // the first one says what the file is
    let case =
        |paragraph: &str| match paragraph.strip_prefix("-- kept: ").and_then(|rest| rest.split_once('\n')) {
            Some((kept, text)) => {
                Case { text: text.to_owned(), kept: kept.split(", ").map(str::to_owned).collect() }
            }
            None => Case { text: paragraph.to_owned(), kept: Vec::new() },
        };
    paragraphs.map(case).collect()
}

fn row_statements() -> Vec<Case> {
    let mut all = cases(include_str!("corpus/orms.sql"));
    all.extend(cases(include_str!("corpus/lexical.sql")));
    all
}

fn all_statements() -> Vec<Case> {
    let mut all = row_statements();
    all.extend(cases(include_str!("corpus/utility.sql")));
    all
}

fn template(text: &str) -> String {
    let mut lifter = Lifter::new();
    String::from_utf8(lifter.lift(text.as_bytes(), true).template().to_vec()).expect("text in, text out")
}

/// Where each literal starts and ends in the text, with its kind.
fn literals(text: &str) -> Vec<(usize, usize, LiteralKind)> {
    let mut lifter = Lifter::new();
    let lifted = lifter.lift(text.as_bytes(), true);
    let place = |source: &[u8]| source.as_ptr().addr() - text.as_ptr().addr();
    lifted
        .literals()
        .map(|literal| {
            let start = place(literal.source);
            (start, start + literal.source.len(), literal.kind)
        })
        .collect()
}

fn fingerprint(text: &str) -> String {
    let options = FingerprintOptions::RANGEVAR_PG17_COMPAT | FingerprintOptions::FULL_RELNAME;
    pg_query::fingerprint(text, 0, options).unwrap_or_else(|error| panic!("{text}: {error}")).hex
}

#[test]
fn the_corpus_is_large_and_is_what_the_grammar_accepts() {
    let all = all_statements();
    assert!(all.len() >= 200, "{} statements", all.len());
    for case in all {
        pg_query::parse(&case.text, 0).unwrap_or_else(|error| panic!("{}: {error}", case.text));
    }
}

#[test]
fn literals_are_the_constant_tokens_of_the_servers_lexer() {
    for case in all_statements() {
        let scanned = pg_query::scan(&case.text).unwrap_or_else(|error| panic!("{}: {error}", case.text));
        let mut expected = Vec::new();
        let mut previous = None;
        for token in &scanned.tokens {
            let (start, end) = (token.start as usize, token.end as usize);
            match token.token() {
                Token::Iconst | Token::Fconst | Token::Sconst | Token::Bconst | Token::Xconst => {
                    let is_uescape = previous == Some(Token::Uescape);
                    if !is_uescape {
                        expected.push((start, end));
                    }
                }
                Token::Usconst => expected.push((start, end)),
                _ => {}
            }
            if !matches!(token.token(), Token::SqlComment | Token::CComment) {
                previous = Some(token.token());
            }
        }
        let found: Vec<_> = literals(&case.text)
            .into_iter()
            .map(|(start, end, kind)| {
                let source = &case.text[start..end];
                let sign = usize::from(source.starts_with(['-', 'N', 'n'])); // tokens of their own there
                let uescape =
                    source.to_ascii_lowercase().find(" uescape").filter(|_| kind == LiteralKind::Unicode);
                (start + sign, uescape.map_or(end, |at| start + at))
            })
            .collect();
        let show = |spans: &[(usize, usize)]| {
            spans.iter().map(|&(start, end)| case.text[start..end].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(show(&found), show(&expected), "in {}", case.text);
        assert_eq!(found, expected, "in {}", case.text);
    }
}

/// Walks a text beside its normalized form. Gives the literals that pg_query left in place, or where the two
/// disagree about what a constant is.
fn left_in_place(text: &str, normalized: &str) -> Result<Vec<String>, String> {
    let mut ours: HashMap<usize, usize> = literals(text)
        .into_iter()
        .map(|(start, end, _)| (start, text[start..end].find(" UESCAPE").map_or(end, |at| start + at)))
        .collect();
    let (mut at, mut their_at) = (0, 0);
    while at < text.len() {
        let place = place_len(&normalized[their_at..]);
        if place > 0 && place_len(&text[at..]) == 0 {
            let start = start_of_ours(text, at, &ours);
            at = match (ours.remove(&start), constant_word(&text[at..])) {
                (Some(end), _) => end,
                (None, Some(word)) => at + word.len(),
                (None, None) => return Err(format!("pg_query lifts what starts at {:?}", &text[at..])),
            };
            their_at += place;
        } else if normalized.as_bytes().get(their_at) == Some(&text.as_bytes()[at]) {
            let len = text[at..].chars().next().map_or(1, char::len_utf8);
            at += len;
            their_at += len;
        } else {
            return Err(format!("the texts part at {:?}", &text[at..]));
        }
    }
    let mut left: Vec<_> = ours.into_iter().collect();
    left.sort_unstable();
    Ok(left.into_iter().map(|(start, end)| text[start..end].to_owned()).collect())
}

/// Length of the `$n` at the start, zero if there is none.
fn place_len(text: &str) -> usize {
    let digits = text.strip_prefix('$').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    if digits > 0 { digits + 1 } else { 0 }
}

/// Where our literal starts for a constant that pg_query finds at `at`. They differ in three ways: `-5::int` is a
/// cast of 5 there, `- 5` is one constant there, and the N of `N'x'` is a word of its own there.
fn start_of_ours(text: &str, at: usize, ours: &HashMap<usize, usize>) -> usize {
    let behind_sign = text[at..].strip_prefix('-').map(|rest| text.len() - rest.trim_start().len());
    let before = at.checked_sub(1).filter(|&before| matches!(text.as_bytes()[before], b'-' | b'N' | b'n'));
    let candidates = [Some(at), behind_sign, before];
    candidates.into_iter().flatten().find(|start| ours.contains_key(start)).unwrap_or(at)
}

/// Words that the grammar makes a constant, and that stay in our templates.
fn constant_word(text: &str) -> Option<&'static str> {
    ["null", "true", "false", "epoch"]
        .into_iter()
        .find(|word| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
}

#[test]
fn constants_are_where_pg_query_normalizes_except_ordinals_and_type_modifiers() {
    let mut disagreements = Vec::new();
    for case in row_statements() {
        let normalized = pg_query::normalize(&case.text).expect("the grammar accepts it");
        match left_in_place(&case.text, &normalized) {
            Ok(left) if left == case.kept => {}
            other => disagreements
                .push(format!("{}\n  {normalized}\n  {other:?}, expected {:?}", case.text, case.kept)),
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

/// The text with other values in the place of its literals.
fn with_other_values(text: &str, salt: usize) -> String {
    let mut other = String::new();
    let mut behind = 0;
    for (start, end, kind) in literals(text) {
        other.push_str(&text[behind..start]);
        let sign = if text[start..end].starts_with('-') { "-" } else { "" };
        match kind {
            LiteralKind::Integer => other.push_str(&format!("{sign}{}", 100 + salt)),
            LiteralKind::Decimal => other.push_str(&format!("{sign}{}.25", 7 + salt)),
            LiteralKind::Bits => other.push_str("B'0110'"),
            LiteralKind::HexBits => other.push_str("X'ab'"),
            _ => other.push_str(["'o''ther'", "E'o\\'ther'", "$o$o'ther$o$"][salt % 3]),
        }
        behind = end;
    }
    other.push_str(&text[behind..]);
    other
}

#[test]
fn other_values_give_the_same_template_and_the_same_fingerprint() {
    for case in row_statements() {
        for salt in 0..3 {
            let other = with_other_values(&case.text, salt);
            assert_eq!(template(&other), template(&case.text), "of {other}");
            if pg_query::parse(&other, 0).is_ok() {
                assert_eq!(fingerprint(&other), fingerprint(&case.text), "of {other}");
            }
        }
    }
}

#[test]
fn other_list_lengths_give_the_same_template_and_the_same_fingerprint() {
    for [few, many] in [
        [
            "SELECT a FROM t WHERE b IN (1, 2) AND c = 'x'",
            "SELECT a FROM t WHERE b IN (5,6,\n7, 8 ) AND c = 'y'",
        ],
        [
            "SELECT a FROM t WHERE b IN ($1,$2) AND c = $3",
            "SELECT a FROM t WHERE b IN ($1, $2, $3, $4) AND c = $5",
        ],
        [
            "SELECT a FROM t WHERE b IN ('x'::uuid,'y'::uuid)",
            "SELECT a FROM t WHERE b IN ('x'::uuid,'y'::uuid,'z'::uuid)",
        ],
        ["SELECT ARRAY['a'::x, 'b'::x]", "SELECT ARRAY['a'::x, 'b'::x, 'c'::x]"],
        ["SELECT ARRAY[1,2], 3", "SELECT ARRAY[1, NULL, 5], 3"],
        ["INSERT INTO t VALUES (1,'a'),(2,'b')", "INSERT INTO t VALUES (1,'a'), (2,NULL), (3,'c')"],
        [
            "INSERT INTO t VALUES ($1,now()),($2,now()) RETURNING $3",
            "INSERT INTO t VALUES ($1,now()),($2,now()),($3,now()) RETURNING $4",
        ],
        [
            "SELECT 1 FROM t WHERE (a,b) IN ((1,2),(3,4))",
            "SELECT 1 FROM t WHERE (a,b) IN ((1,2),(3,4),(5,6))",
        ],
    ] {
        assert_eq!(template(few), template(many));
        assert_eq!(fingerprint(few), fingerprint(many), "of {many}");
    }
}

#[test]
fn arrays_of_arrays_lose_their_length_although_pg_query_tells_it() {
    let [few, many] = ["SELECT ARRAY[[1,2],[3,4]]", "SELECT ARRAY[[1,2,3],[3,4,5],[6,7,8]]"];
    assert_eq!(template(few), template(many));
    assert_ne!(fingerprint(few), fingerprint(many));
}

#[test]
fn equal_templates_have_equal_fingerprints() {
    let mut seen: HashMap<String, (String, String)> = HashMap::new();
    let mut texts: Vec<String> = row_statements().into_iter().map(|case| case.text).collect();
    let spaced: Vec<String> = texts.iter().map(|text| format!(" /* x */ {text} -- y")).collect();
    texts.extend(spaced);
    for text in texts {
        let print = fingerprint(&text);
        let (first, first_print) =
            seen.entry(template(&text)).or_insert_with(|| (text.clone(), print.clone()));
        assert_eq!(*first_print, print, "of {first} and {text}");
    }
}

#[test]
fn differing_schemas_tables_and_columns_have_differing_templates() {
    let texts = [
        "SELECT a FROM s.t WHERE b = 1",
        "SELECT a FROM u.t WHERE b = 1",
        "SELECT a FROM t WHERE b = 1",
        "SELECT a FROM t_2024_01 WHERE b = 1",
        "SELECT a FROM t WHERE c = 1",
        "SELECT a FROM t WHERE b = 1 OR b = 1",
        "SELECT a FROM t WHERE b > 1",
        "SELECT a FROM t WHERE b = c",
    ];
    for (index, one) in texts.iter().enumerate() {
        for other in &texts[index + 1..] {
            assert_ne!(template(one), template(other));
            assert_ne!(fingerprint(one), fingerprint(other));
        }
    }
}

#[test]
fn a_template_lifts_to_itself() {
    for case in all_statements() {
        let once = template(&case.text);
        assert_eq!(template(&once), once, "of {}", case.text);
    }
}

/// The constant that PostgreSQL reads in `SELECT literal`, if it takes it.
fn constant_of(literal: &str) -> Option<String> {
    use pg_query::protobuf::a_const::Val;
    let parsed = pg_query::parse(&format!("SELECT {literal}"), 0).ok()?;
    let NodeEnum::SelectStmt(select) = parsed.protobuf.stmts.first()?.stmt.as_ref()?.node.as_ref()? else {
        return None;
    };
    let NodeEnum::ResTarget(target) = select.target_list.first()?.node.as_ref()? else { return None };
    let NodeEnum::AConst(constant) = target.val.as_ref()?.node.as_ref()? else { return None };
    match constant.val.as_ref()? {
        Val::Sval(string) => Some(string.sval.clone()),
        Val::Ival(integer) => Some(integer.ival.to_string()),
        _ => None,
    }
}

fn pieces(of: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(of), 0..8).prop_map(|pieces| pieces.concat())
}

fn value(literal: &str) -> String {
    let text = format!("SELECT {literal}");
    let mut lifter = Lifter::new();
    let lifted = lifter.lift(text.as_bytes(), true);
    assert_eq!(lifted.literals().len(), 1, "{literal} is one literal");
    let found = lifted.literals().next().expect("one literal");
    String::from_utf8_lossy(found.value(&mut Vec::new())).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn escape_strings_decode_as_the_server_decodes_them(
        body in pieces(&[
            "a", "''", "\\'", "\\\\", "\\n", "\\b", "\\f", "\\r", "\\t", "\\q", "\\x4", "\\x41", "\\x4g", "\\101", "\\7",
            "\\18", "\\u0041", "\\u00e9", "\\U0001F600", "\\ud83d\\ude00", "é", "\n", "0", "$1", "' \n '", "'--x\n'",
        ]),
    ) {
        let literal = format!("E'{body}'");
        if let Some(expected) = constant_of(&literal) {
            prop_assert_eq!(value(&literal), expected, "of {}", literal);
        }
    }

    #[test]
    fn plain_and_unicode_strings_decode_as_the_server_decodes_them(
        body in pieces(&["a", "''", "\\\\", "\\0041", "\\+01F600", "\\d83d\\de00", "!0042", "!!", "é", "' \n\t'", " "]),
        prefix in proptest::sample::select(&["", "N", "U&"][..]),
        clause in proptest::sample::select(&["", " UESCAPE '!'", "\nuescape\n'!'"][..]),
    ) {
        let literal = format!("{prefix}'{body}'{}", if prefix == "U&" { clause } else { "" });
        if let Some(expected) = constant_of(&literal) {
            prop_assert_eq!(value(&literal), expected, "of {}", literal);
        }
    }

    #[test]
    fn integers_read_as_the_server_reads_them(
        literal in "-?(0x[0-9a-fA-F]{1,4}(_[0-9a-f]{1,3})?|0o[0-7]{1,8}|0b[01]{1,20}|[0-9]{1,6}(_[0-9]{1,3})?)",
    ) {
        if let Some(expected) = constant_of(&literal) {
            prop_assert_eq!(value(&literal), expected, "of {}", literal);
        }
    }
}

#[test]
fn the_constant_oracle_reads_what_it_should() {
    assert_eq!(constant_of("E'a\\tb'").as_deref(), Some("a\tb"));
    assert_eq!(constant_of("U&'!0041' UESCAPE '!'").as_deref(), Some("A"));
    assert_eq!(constant_of("-0x1_F").as_deref(), Some("-31"));
}
