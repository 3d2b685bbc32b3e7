//! What a text has to do with cursors: which it makes, reads or closes, and to which it may matter where they stand.

use onetrip_sql::{Lifted, StatementKind};

use super::grammar::pair;
use super::sql;
use super::words::{see_words, words};

/// Functions of the server that read a cursor by its name, or run a text that may.
const RUNNERS: [&[u8]; 7] = [
    b"cursor_to_xml",
    b"cursor_to_xmlschema",
    b"query_to_xml",
    b"query_to_xmlschema",
    b"query_to_xml_and_xmlschema",
    b"ts_rewrite",
    b"ts_stat",
];
/// Words without which no text opens, moves or closes a cursor, or acts where one stands.
const WORDS: [&[u8]; 6] = [b"close", b"current", b"declare", b"fetch", b"move", b"open"];
/// Words without which a block of code has all that it does in its text.
const BUILDERS: [&[u8]; 2] = [b"execute", b"language"];
/// Words without which no text makes code that has none of the above: it comes from a file, or is written into the
/// catalogue. What a CALL or a DO runs is not asked for: nothing is read ahead in a database whose code has any of these words
/// (`lookups/cursors.sql`).
const MAKERS: [&[u8]; 2] = [b"extension", b"pg_proc"];

/// What a statement's text has to do with cursors.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CursorUse {
    /// It makes one.
    Declares { name: Box<[u8]>, is_held: bool, no_scroll: bool, query: Box<[u8]> },
    /// FETCH forward by so many rows.
    Fetches(Box<[u8]>, u32),
    /// CLOSE of one.
    Closes(Box<[u8]>),
    /// CLOSE ALL or DISCARD ALL.
    ClosesAll,
    /// It may depend on where a cursor stands that is named in this text.
    Moves(Box<[u8]>),
    /// It may depend on where any cursor stands.
    MovesAny,
}

/// Looks for cursors in a text; with DECLARE, also for its query.
pub(crate) fn cursor_use<'a>(lifted: &Lifted<'_>, text: &'a [u8]) -> Option<(CursorUse, Option<&'a str>)> {
    use StatementKind as S;
    let name = || lifted.name().map(|name| name.folded().take(sql::NAME_BYTES_MAX).collect());
    let found = Found::in_text(text);
    // The name may be a parameter, or be put together.
    let is_hidden = found.builders && matches!(lifted.kind(), S::Do | S::Multi);
    if found.runners || is_hidden {
        return Some((CursorUse::MovesAny, None));
    }
    let moves = || (CursorUse::Moves(text.into()), None);
    match lifted.kind() {
        S::Declare => {
            let sql::Declare { name, is_held, no_scroll, query } = sql::declare(text)?;
            let used =
                CursorUse::Declares { name: name.into(), is_held, no_scroll, query: query.as_bytes().into() };
            Some((used, Some(query)))
        }
        S::CloseCursor | S::Discard if lifted.facts().all => Some((CursorUse::ClosesAll, None)),
        S::CloseCursor => name().map(|name| (CursorUse::Closes(name), None)),
        S::Fetch => match sql::fetch(text) {
            Some(fetch) => Some((CursorUse::Fetches(fetch.name.into(), fetch.rows.get()), None)),
            None => Some(moves()),
        },
        S::Move => Some(moves()),
        _ => found.words.then(moves),
    }
}

/// Whether a text that changes the catalogue may make code that opens, moves or closes cursors, or acts where one stands.
/// What a DO, or one of several statements, itself does with cursors is over with it: it makes code of these words where it
/// also creates something, or by a text that it builds. What EXECUTE runs was read when it was prepared.
pub(crate) fn makes_cursor_code(kind: StatementKind, text: &[u8]) -> bool {
    let Found { words, runners, builders, makers } = Found::in_text(text);
    if kind == StatementKind::Execute {
        return runners;
    }
    let words_stay =
        || !matches!(kind, StatementKind::Do | StatementKind::Multi) || mentions(text, b"create");
    runners || builders || makers || (words && words_stay())
}

/// Words of a text, in comments and literals too: these may be run.
#[derive(Debug, Default)]
struct Found {
    words: bool,
    runners: bool,
    builders: bool,
    makers: bool,
}

impl Found {
    fn in_text(text: &[u8]) -> Self {
        // What is written by code points (`U&"..."`) is not read here.
        let is_escaped = pair(text, *b"&\"").is_some();
        let mut found = Self { runners: is_escaped, ..Self::default() };
        see_words(text, begins_one, |word| {
            if LENGTHS[usize::from(word[0] | 0x20)] >> word.len().min(31) & 1 == 1 {
                found.compare(word);
            }
        });
        found
    }

    #[cold]
    fn compare(&mut self, word: &[u8]) {
        let is_one = |known: &[&[u8]]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
        self.words |= is_one(&WORDS);
        self.runners |= is_one(&RUNNERS);
        self.builders |= is_one(&BUILDERS);
        self.makers |= is_one(&MAKERS);
    }
}

/// Whether a word that is looked for begins with this letter.
fn begins_one(letter: u8) -> bool {
    let letter = letter | 0x20;
    (letter.wrapping_sub(b'c') < 4)
        | (letter.wrapping_sub(b'l') < 2)
        | (letter.wrapping_sub(b'o') < 3)
        | (letter == b't')
}

/// By their first letter, the lengths of the words that are looked for, as bits.
const LENGTHS: [u32; 256] = {
    let lists: [&[&[u8]]; 4] = [&WORDS, &RUNNERS, &BUILDERS, &MAKERS];
    let mut table = [0; 256];
    let mut list = 0;
    while list < lists.len() {
        let mut word = 0;
        while word < lists[list].len() {
            let known = lists[list][word];
            table[known[0] as usize] |= 1 << known.len();
            word += 1;
        }
        list += 1;
    }
    table
};

/// Whether a name stands in a text as a word, in quotes or not. The server cuts what is longer than names can be.
pub(crate) fn mentions(text: &[u8], name: &[u8]) -> bool {
    let may_be_cut = name.len() >= sql::NAME_BYTES_MAX;
    let is_quoted = |quote: u8| {
        let end: &[u8] = if may_be_cut { b"" } else { &[quote] };
        memchr::memmem::find(text, &[&[quote], name, end].concat()).is_some()
    };
    let is_it = |word: &[u8]| match may_be_cut {
        true => word.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name)),
        false => word.eq_ignore_ascii_case(name),
    };
    words(text).any(is_it) || is_quoted(b'"') || is_quoted(b'\'')
}

#[cfg(test)]
mod tests {
    use onetrip_sql::Lifter;

    use super::*;

    #[test]
    fn words_that_are_looked_for_begin_as_they_may() {
        for known in WORDS.iter().chain(&RUNNERS).chain(&BUILDERS).chain(&MAKERS) {
            assert!(begins_one(known[0]) && begins_one(known[0].to_ascii_uppercase()) && known.len() < 31);
        }
        for letter in b'a'..=b'z' {
            assert_eq!(begins_one(letter), LENGTHS[usize::from(letter)] != 0, "{letter:#x}");
        }
    }

    /// A DO or CALL counts as harmless only because code with these words is looked for before anything is read ahead.
    #[test]
    fn words_of_texts_that_make_code_are_looked_for_in_functions() {
        let asked = onetrip_sql::purity::Lookup::Cursors.sql();
        for word in BUILDERS.iter().chain(&MAKERS) {
            let word = std::str::from_utf8(word).unwrap();
            assert!(asked.contains(&format!("|{word}|")), "{word}");
        }
    }

    #[test]
    fn code_is_made_by_texts_that_say_so() {
        let mut lifter = Lifter::new();
        let mut makes = |text: &str| {
            let kind = lifter.lift(text.as_bytes(), true).kind();
            makes_cursor_code(kind, text.as_bytes())
        };
        for text in [
            "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS 'BEGIN END'",
            "CREATE FUNCTION f() RETURNS xml RETURN query_to_xml('SELECT 1', true, true, '')",
            "CREATE EXTENSION tablefunc",
            "DO $$BEGIN EXECUTE 'CREATE FUNCTION'; END$$",
            "DO $$BEGIN UPDATE pg_catalog.pg_proc SET prosrc = 'FE' || 'TCH 1 FROM c'; END$$",
            "BEGIN; CREATE RULE r AS ON INSERT TO t DO DELETE FROM u WHERE CURRENT OF c",
            "DO $$BEGIN CREATE RULE r AS ON INSERT TO t DO DELETE FROM u WHERE CURRENT OF c; END$$",
            "DO $$BEGIN CREATE FUNCTION f() RETURNS void BEGIN ATOMIC DELETE FROM t WHERE CURRENT OF c; END; END$$",
        ] {
            assert!(makes(text), "{text}");
        }
        for text in [
            "DO $$BEGIN PERFORM makes(); END$$",
            "DO $$BEGIN DELETE FROM t WHERE CURRENT OF c; EXCEPTION WHEN OTHERS THEN NULL; END$$",
            "FETCH 3 FROM c; CLOSE c",
            "CALL makes()",
            "CREATE TABLE t (id int)",
            "EXECUTE follows(1)",
        ] {
            assert!(!makes(text), "{text}");
        }
    }

    #[test]
    fn a_text_that_depends_on_a_place_names_its_cursor() {
        let mut lifter = Lifter::new();
        let mut moves =
            |text: &str, name: &str| match cursor_use(&lifter.lift(text.as_bytes(), true), text.as_bytes()) {
                Some((CursorUse::Moves(text), _)) => mentions(&text, name.as_bytes()),
                _ => false,
            };
        for text in [
            "FETCH BACKWARD 1 FROM c",
            "MOVE 3 IN \"c\"",
            "UPDATE t SET v = 1 WHERE CURRENT OF C",
            "SELECT 1; FETCH 1 FROM c",
            "DO $$ BEGIN FETCH c INTO x; END $$",
            "COMMIT; BEGIN; DECLARE c CURSOR FOR SELECT 1",
            "WITH x AS (DELETE FROM t WHERE CURRENT OF c RETURNING id) SELECT * FROM x",
            "INSERT INTO t SELECT run('MOVE 5 FROM c')",
        ] {
            assert!(moves(text, "c"), "{text}");
        }
        for text in ["FETCH 10 FROM c", "CLOSE c", "SELECT c.id FROM c", "UPDATE c SET v = 1", "MOVE 3 IN d"]
        {
            assert!(!moves(text, "c"), "{text}");
        }
        let long = "n".repeat(63);
        assert!(moves(&format!("UPDATE t SET v = 0 WHERE CURRENT OF {long}zz"), &long));
        let mut any = |text: &str| {
            matches!(
                cursor_use(&lifter.lift(text.as_bytes(), true), text.as_bytes()),
                Some((CursorUse::MovesAny, _))
            )
        };
        for text in [
            "DO $$ BEGIN EXECUTE 'MO' || 'VE 5 FROM ' || 'c'; END $$",
            "SELECT 1; do 'begin execute x; end'",
            "SELECT Query_To_Xml($1, true, true, '')",
            "SELECT u&\"cursor\\005Fto\\005Fxml\"($1)",
        ] {
            assert!(any(text), "{text}");
        }
        assert!(!any("DO $$ BEGIN PERFORM 1; END $$") && !any("SELECT open, close FROM prices"));
    }
}
