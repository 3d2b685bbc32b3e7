//! Texts and catalogue rows that nobody meant: no panic, and nothing is pure by accident.

use onetrip_sql::purity::{
    Catalogue, Impure, Lookup, Needs, SURVEY_BYTES_MAX, SURVEY_ROWS_MAX, Survey, SurveyError, read,
};
use proptest::prelude::*;

type Row<'a> = (Lookup, &'a [Option<&'a str>]);

const VERSION: Row<'static> = (Lookup::Database, &[Some("v"), Some("150018"), None, None, None]);

fn take(survey: &mut Survey, (lookup, columns): Row<'_>) -> Result<(), SurveyError> {
    let columns: Vec<_> = columns.iter().map(|column| column.map(str::as_bytes)).collect();
    survey.row(lookup, &columns)
}

/// What a server with these rows tells of what is wanted.
fn catalogue(needs: &Needs, rows: &[Row<'_>]) -> Result<Catalogue<()>, SurveyError> {
    let mut catalogue = Catalogue::default();
    let mut survey = Survey::new(catalogue.wanted(needs, |()| true));
    loop {
        let questions = survey.questions();
        if questions.is_empty() {
            break;
        }
        for question in questions {
            let said = rows.iter().filter(|(lookup, _)| *lookup == question.lookup);
            said.copied().try_for_each(|row| take(&mut survey, row))?;
        }
    }
    catalogue.absorb(survey.finish()?, ());
    Ok(catalogue)
}

fn verdict(rows: &[Row<'_>], statement: &str) -> Result<(), Impure> {
    let needs = read(statement)?;
    let rows: Vec<_> = [VERSION].iter().chain(rows).copied().collect();
    let catalogue = catalogue(&needs, &rows).expect("good rows");
    catalogue.check(&needs, &["pg_catalog".into(), "public".into()]).map(|_| ())
}

#[test]
fn rows_that_are_not_of_the_question_are_malformed() {
    let (r, f, o, v) = (Lookup::Relations, Lookup::Functions, Lookup::Operators, Lookup::Views);
    let bad: [Row<'_>; 16] = [
        (r, &[None, None, None, None, None]),
        (r, &[Some("public"), Some("t"), Some("1"), Some("r")]),
        (r, &[None, Some("t"), Some("1"), Some("r"), Some("{}")]),
        (r, &[Some("public"), Some("t"), Some("-1"), Some("r"), Some("{}")]),
        (r, &[Some("public"), Some("t"), Some("1"), Some(""), Some("{}")]),
        (r, &[Some("public"), Some("t"), Some("1"), Some("r?"), Some("{}")]),
        (r, &[Some("public"), Some("t"), Some("1"), Some("r"), Some("{x}")]),
        (f, &[Some("b"), Some("public"), Some("f"), Some(""), Some("1")]),
        (f, &[Some("b"), None, Some("f"), Some(""), Some("one")]),
        (f, &[Some("x"), None, Some("f"), Some(""), Some("1")]),
        (o, &[Some("o"), Some("public"), Some("+"), Some("b"), Some("23")]),
        (o, &[Some("o"), Some("public"), Some("+"), Some("23"), None]),
        (v, &[Some("n"), None, None, Some("view"), Some("QUERY")]),
        (v, &[Some("z"), None, None, Some("20000"), Some("1")]),
        (Lookup::Database, &[Some("z"), Some("1"), None, None, None]),
        (Lookup::Locks, &[Some("true"), Some("true"), Some("true"), Some("true"), None]),
    ];
    for row in bad {
        assert_eq!(take(&mut Survey::default(), row), Err(SurveyError::Malformed), "{row:?}");
    }
    let mut survey = Survey::default();
    assert_eq!(survey.row(r, &[Some(b"\xff"), None, None, None, None]), Err(SurveyError::Malformed));
}

#[test]
fn a_server_that_does_not_tell_its_version_or_has_another_is_not_judged() {
    let needs = read("SELECT 1").expect("it reads");
    assert_eq!(catalogue(&needs, &[]).err(), Some(SurveyError::Malformed));
    for (version, is_known) in
        [("110022", false), ("120000", true), ("180006", true), ("190000", false), ("0", false)]
    {
        let columns = [Some("v"), Some(version), None, None, None];
        let known = catalogue(&needs, &[(Lookup::Database, &columns)]);
        assert_eq!(known.is_ok(), is_known, "{version}");
    }
}

#[test]
fn answers_that_are_too_long_are_not_judged() {
    let row: Row<'_> = (Lookup::Types, &[Some("20000"), Some("t"), None, Some("e")]);
    let mut survey = Survey::default();
    for _ in 0..SURVEY_ROWS_MAX {
        take(&mut survey, row).expect("there is room");
    }
    assert_eq!(take(&mut survey, row), Err(SurveyError::TooLarge));

    let name = "n".repeat(SURVEY_BYTES_MAX / 2);
    let columns = [Some("20000"), Some(&*name), None, Some("e")];
    let row: Row<'_> = (Lookup::Types, &columns);
    let mut survey = Survey::default();
    assert_eq!(take(&mut survey, row), Ok(()));
    assert_eq!(take(&mut survey, row), Err(SurveyError::TooLarge));
}

#[test]
fn a_view_whose_tree_was_not_understood_is_refused() {
    let named: Row<'_> =
        (Lookup::Relations, &[Some("public"), Some("v"), Some("20000"), Some("v"), Some("{23}")]);
    let view: Row<'_> =
        (Lookup::Views, &[Some("r"), Some("public"), Some("v"), Some("v"), Some("20000 {23}")]);
    let table: Row<'_> =
        (Lookup::Views, &[Some("r"), Some("public"), Some("t"), Some("r"), Some("20001 {23}")]);
    let understood: Row<'_> = (Lookup::Views, &[Some("n"), None, None, Some("20000"), Some("QUERY")]);
    let odd: Row<'_> = (Lookup::Views, &[Some("n"), None, None, Some("20000"), Some("NEWEXPR")]);
    let reads: Row<'_> = (Lookup::Views, &[Some("i"), None, Some("relid"), Some("20000"), Some("20001")]);
    let system: Row<'_> = (Lookup::Views, &[Some("i"), None, Some("relid"), Some("20000"), Some("1259")]);
    assert!(verdict(&[named, view, table, understood, reads], "TABLE v").is_ok());
    assert!(verdict(&[named, view, table], "TABLE v").is_err());
    assert!(verdict(&[named, view, table, reads], "TABLE v").is_err());
    assert!(verdict(&[named, view, table, understood, odd, reads], "TABLE v").is_err());
    assert!(verdict(&[named, view, table, understood, reads, system], "TABLE v").is_err());
    assert!(verdict(&[named, understood, reads], "TABLE v").is_err(), "its own row is missing");
}

#[test]
fn views_are_looked_through_to_a_bounded_depth() {
    let views: Vec<_> = (0..20)
        .map(|at| (format!("v{at}"), (20_000 + at).to_string(), format!("{} {{23}}", 20_000 + at)))
        .collect();
    let mut columns: Vec<(Lookup, Vec<Option<&str>>)> = Vec::new();
    for (at, (name, oid, with_types)) in views.iter().enumerate() {
        let named = vec![Some("public"), Some(name.as_str()), Some(oid.as_str()), Some("v"), Some("{23}")];
        columns.push((Lookup::Relations, named));
        columns
            .push((Lookup::Views, vec![Some("r"), Some("public"), Some(name), Some("v"), Some(with_types)]));
        columns.push((Lookup::Views, vec![Some("n"), None, None, Some(oid), Some("QUERY")]));
        columns.push((Lookup::Views, vec![Some("i"), None, Some("relid"), Some(oid), Some(oid)]));
        if let Some((_, next, _)) = views.get(at + 1) {
            columns.push((Lookup::Views, vec![Some("i"), None, Some("relid"), Some(oid), Some(next)]));
        }
    }
    let judge = |columns: &[(Lookup, Vec<Option<&str>>)], statement: &str| {
        let rows: Vec<Row<'_>> =
            columns.iter().map(|(lookup, columns)| (*lookup, columns.as_slice())).collect();
        verdict(&rows, statement)
    };
    assert!(judge(&columns, "TABLE v10").is_ok(), "a view names itself in its tree, on older servers");
    assert!(judge(&columns, "TABLE v0").is_err());
    // A ring of views comes to an end.
    columns.push((Lookup::Views, vec![Some("i"), None, Some("relid"), Some("20019"), Some("20010")]));
    assert!(judge(&columns, "TABLE v10").is_err());
}

#[test]
fn facts_of_the_whole_database_make_every_statement_unsafe() {
    let calling: Row<'_> = (Lookup::Database, &[Some("c"), Some("25"), Some("23"), Some("i"), Some("20000")]);
    let by_text: Row<'_> = (Lookup::Database, &[Some("c"), Some("23"), Some("1043"), Some("i"), Some("0")]);
    let sorts: Row<'_> = (Lookup::Database, &[Some("o"), Some("23"), None, None, None]);
    let elsewhere: Row<'_> = (Lookup::Database, &[Some("x"), Some("citus"), None, None, None]);
    for (row, reason) in [
        (calling, "a cast between built-in types calls a user's function"),
        (sorts, "a user's operator class sorts or hashes a built-in type or an enum"),
        (elsewhere, "an extension may answer from other servers"),
    ] {
        assert_eq!(verdict(&[row], "SELECT 1").expect_err(reason).to_string(), reason);
    }
    assert!(verdict(&[by_text], "SELECT 1").is_ok());
}

#[test]
fn a_function_whose_overloads_are_others_than_those_that_were_checked_is_not_known() {
    let of = |digest| {
        verdict(
            &[(Lookup::Functions, &[Some("b"), None, Some("abs"), Some(""), Some(digest)])],
            "SELECT abs(1)",
        )
    };
    assert!(of("-11913049803902127136").is_ok(), "the digest in builtin.rs");
    assert_eq!(
        of("-11913049803902127137").unwrap_err().to_string(),
        "function abs is not a built-in function known to be harmless"
    );
    assert!(verdict(&[], "SELECT abs(1)").is_err(), "the server has none of that name");
}

/// Pieces of SQL that parse surprisingly often when put side by side.
const PIECES: [&str; 60] = [
    "SELECT",
    "FROM",
    "t",
    "WHERE",
    "a",
    "=",
    "1",
    "'x'",
    "$1",
    "(",
    ")",
    ",",
    "WITH",
    "AS",
    "UNION",
    "VALUES",
    "TABLE",
    "INTO",
    "FOR UPDATE",
    "ORDER BY",
    "LIMIT",
    "random()",
    "nextval('s')",
    "t.a",
    "*",
    "NOT",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "::",
    "int",
    "regclass",
    "[1]",
    ".",
    ";",
    "--",
    "/*",
    "*/",
    "$$",
    "\"",
    "'",
    "E'\\'",
    "JOIN",
    "ON",
    "USING",
    "LATERAL",
    "DELETE",
    "INSERT",
    "RETURNING",
    "OVER",
    "FILTER",
    "COLLATE",
    "IN",
    "ANY",
    "ARRAY",
    "INTERVAL",
    "\\",
    "DROP FUNCTION f",
    "TABLESAMPLE",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_text_makes_reading_panic(text in any::<String>()) {
        let _ = read(&text);
    }

    #[test]
    fn no_mixture_of_sql_makes_reading_panic(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)) {
        let text = pieces.join(" ");
        if let Ok(needs) = read(&text) {
            let catalogue = catalogue(&needs, &[VERSION]).expect("an empty database");
            let verdict = catalogue.check(&needs, &["public".into()]);
            // There are no relations here, so what is pure names none.
            prop_assert!(verdict.is_err() || needs.relations.is_empty(), "{text}");
        }
    }

    #[test]
    fn no_row_makes_a_survey_panic(
        rows in prop::collection::vec(
            (0..Lookup::ALL.len(), prop::collection::vec(prop::option::of("[a-z0-9{}, -]{0,5}"), 1..10)), 0..8)
    ) {
        let mut survey = Survey::default();
        for (lookup, row) in &rows {
            let columns: Vec<_> = row.iter().map(|column| column.as_deref().map(str::as_bytes)).collect();
            let _ = survey.row(Lookup::ALL[*lookup], &columns);
            let _ = survey.questions();
        }
        let _ = survey.finish();
    }
}
