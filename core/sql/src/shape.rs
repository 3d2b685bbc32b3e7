//! What the words of a template show beyond its kind: functions called, tables named, keys that rows are found by.

use crate::facts::Name;
use crate::mysql_scan::quoted_identifier_end;
use crate::scan;

/// Functions, tables and names of one template that are listed.
const LISTED_MAX: usize = 64;
/// Keys of one template that are listed.
const KEYS_MAX: usize = 8;

/// A condition `column = $n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EqualityKey<'a> {
    /// The column, without its table.
    pub column: Name<'a>,
    /// The n of its parameter in the template.
    pub parameter: u32,
}

/// What a template's words show. It is read off the words, without a parse tree; where they are not clear, less is
/// listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape<'a> {
    /// Names followed by `(` that are no keywords: functions, and types with a modifier.
    pub calls: Vec<Name<'a>>,
    /// Names behind `FROM` and `JOIN`, those of a `WITH` included.
    pub tables: Vec<Name<'a>>,
    /// All names that are no keywords: columns, tables, functions, aliases.
    pub names: Vec<Name<'a>>,
    /// Keys of the outermost `WHERE`, which every row of the result meets. None if it has an `OR`, a `NOT` or a subquery, or if the template has a list
    /// that lost its length, because parameters then are not numbered by their place.
    pub keys: Vec<EqualityKey<'a>>,
    /// `SELECT` of one constant: what is sent to see whether the server answers.
    pub is_constant: bool,
    /// `SELECT NEXT VALUE FOR` of one sequence, as MariaDB has it of SQL's standard.
    pub is_next_value: bool,
    /// System variables, `@@name`, of a `SELECT` that asks for nothing but these and for functions without arguments.
    pub variables: Vec<Name<'a>>,
    /// A `WITH` stands in it, whose names are listed as tables where they are read.
    pub has_with: bool,
    /// `SKIP LOCKED` stands in it: it takes rows that no other session has taken.
    pub skips_locked: bool,
    /// MySQL's `LOCK IN SHARE MODE` stands in it.
    pub locks_in_share_mode: bool,
}

impl<'a> Shape<'a> {
    /// Reads a template, as [`Lifted::template`](crate::Lifted::template) gives it.
    pub fn of(template: &'a [u8]) -> Self {
        let tokens = tokens(template);
        let has_with = tokens.iter().any(|token| token.is(b"with"));
        let mut shape = Self {
            is_constant: is_constant(&tokens),
            has_with,
            skips_locked: have(&tokens, &[b"skip", b"locked"]),
            locks_in_share_mode: have(&tokens, &[b"lock", b"in", b"share", b"mode"]),
            ..Self::default()
        };
        shape.is_next_value = is_next_value(&tokens);
        shape.variables = variables(&tokens).unwrap_or_default();
        shape.list_names(&tokens);
        shape.list_tables(&tokens);
        shape.list_keys(&tokens);
        shape
    }

    fn list_names(&mut self, tokens: &[Token<'a>]) {
        for (position, token) in tokens.iter().enumerate() {
            let Token::Name { whole, .. } = *token else { continue };
            if token.is_any(RESERVED) {
                continue;
            }
            put(&mut self.names, Name(whole));
            if tokens.get(position + 1) == Some(&Token::Symbol(b'(')) && !token.is_any(NEVER_CALLED) {
                put(&mut self.calls, Name(whole));
            }
        }
    }

    fn list_tables(&mut self, tokens: &[Token<'a>]) {
        // Per open parenthesis: whether a FROM there names tables, and whether a comma is followed by the next of them.
        let mut levels = vec![Level { has_verb: true, in_from: false }];
        let mut expected = false;
        for (position, token) in tokens.iter().enumerate() {
            match *token {
                Token::Symbol(b'(') => {
                    // A join in parentheses begins with a table as well.
                    levels.push(Level { has_verb: expected, in_from: expected });
                    continue;
                }
                Token::Symbol(b')') => {
                    levels.truncate(levels.len().max(2) - 1);
                    expected = false;
                    continue;
                }
                _ => {}
            }
            let Some(level) = levels.last_mut() else { return };
            match *token {
                Token::Symbol(b',') => expected = level.in_from,
                Token::Name { .. } if token.is_any(&[b"select", b"delete"]) => {
                    *level = Level { has_verb: true, in_from: false };
                    expected = false;
                }
                Token::Name { .. } if token.is(b"from") => {
                    let compares = position > 0 && tokens[position - 1].is(b"distinct");
                    level.in_from = level.has_verb && !compares;
                    expected = level.in_from;
                }
                Token::Name { .. } if token.is(b"join") => expected = true,
                Token::Name { .. } if token.is_any(&[b"only", b"lateral"]) => {}
                Token::Name { .. } if token.is_any(CLAUSES) => {
                    level.in_from = false;
                    expected = false;
                }
                Token::Name { whole, .. } if expected => {
                    expected = false;
                    if tokens.get(position + 1) != Some(&Token::Symbol(b'(')) {
                        put(&mut self.tables, Name(whole));
                    }
                }
                _ => {}
            }
        }
    }

    fn list_keys(&mut self, tokens: &[Token<'a>]) {
        if tokens.contains(&Token::Ellipsis) {
            return;
        }
        let Some(conditions) = outermost_where(tokens) else { return };
        if conditions.iter().any(|token| token.is_any(UNCLEAR)) {
            return;
        }
        for (position, window) in conditions.windows(3).enumerate() {
            let [Token::Name { last, .. }, Token::Symbol(b'='), Token::Parameter(parameter)] = *window else {
                continue;
            };
            let begins = position
                .checked_sub(1)
                .is_none_or(|before| conditions[before].is(b"and") || conditions[before].is_symbol(b'('));
            if begins && ends_condition(&conditions[position + 3..]) && self.keys.len() < KEYS_MAX {
                self.keys.push(EqualityKey { column: Name(last), parameter });
            }
        }
    }
}

/// What parameters are compared with, wherever that stands. Nothing is listed where a list has lost its length, because
/// parameters then are not numbered by their place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparisons<'a> {
    /// Columns that are compared with a parameter by `=`, or with a list that begins with it.
    pub columns: Vec<EqualityKey<'a>>,
    /// Parameters that say which part of the rows is wanted, by number: those of `LIMIT`, `OFFSET`, `FETCH` and `BETWEEN`,
    /// and those that come before or after a value (`<`, `<=`, `>`, `>=`).
    pub bounds: Vec<u32>,
}

impl<'a> Comparisons<'a> {
    /// Reads a template, as [`Lifted::template`](crate::Lifted::template) gives it.
    pub fn of(template: &'a [u8]) -> Self {
        let tokens = tokens(template);
        let mut comparisons = Self::default();
        if !tokens.contains(&Token::Ellipsis) {
            comparisons.list_columns(&tokens);
            comparisons.list_bounds(&tokens);
        }
        comparisons
    }

    fn list_columns(&mut self, tokens: &[Token<'a>]) {
        for position in 0..tokens.len() {
            let (column, parameter) = match tokens[position..] {
                [Token::Name { last, .. }, Token::Symbol(b'='), Token::Parameter(parameter), ..]
                | [Token::Parameter(parameter), Token::Symbol(b'='), Token::Name { last, .. }, ..] => {
                    (last, parameter)
                }
                [Token::Name { last, .. }, word, Token::Symbol(b'('), Token::Parameter(parameter), ..]
                    if word.is(b"in") =>
                {
                    (last, parameter)
                }
                [
                    Token::Name { last, .. },
                    Token::Symbol(b'='),
                    word,
                    Token::Symbol(b'('),
                    Token::Parameter(parameter),
                    ..,
                ] if word.is(b"any") => (last, parameter),
                _ => continue,
            };
            if self.columns.len() < KEYS_MAX {
                self.columns.push(EqualityKey { column: Name(column), parameter });
            }
        }
    }

    fn list_bounds(&mut self, tokens: &[Token<'a>]) {
        for (position, token) in tokens.iter().enumerate() {
            let Token::Parameter(parameter) = *token else { continue };
            let (before, after) = (&tokens[..position], &tokens[position + 1..]);
            let pages = before.last().is_some_and(|word| word.is_any(PAGING))
                || matches!(before, [.., fetch, first] if fetch.is(b"fetch") && first.is_any(&[b"first", b"next"]));
            if (pages || is_ordered(before, after) || is_between(before)) && self.bounds.len() < LISTED_MAX {
                self.bounds.push(parameter);
            }
        }
    }
}

/// Whether a parameter between these is compared by order, alone or in a row of several.
fn is_ordered(before: &[Token<'_>], after: &[Token<'_>]) -> bool {
    let mut row = before;
    // `(a, b) > ($1, $2)`
    while let [rest @ .., Token::Parameter(_), Token::Symbol(b',')] = row {
        row = rest;
    }
    let row = row.strip_suffix(&[Token::Symbol(b'(')]).unwrap_or(before);
    let ends = |tokens: &[Token<'_>]| operator(tokens.iter().rev().copied(), true);
    ends(before) || ends(row) || operator(after.iter().copied(), false)
}

/// Whether the first symbols are one of the operators of order, and no longer one.
fn operator<'a>(tokens: impl Iterator<Item = Token<'a>>, is_reversed: bool) -> bool {
    let symbols = tokens.map_while(|token| match token {
        Token::Symbol(symbol) if b"<>=!@#%^&|~*+-/?".contains(&symbol) => Some(symbol),
        _ => None,
    });
    let mut symbols: Vec<u8> = symbols.take(3).collect();
    if is_reversed {
        symbols.reverse();
    }
    [&b"<"[..], b"<=", b">", b">="].contains(&symbols.as_slice())
}

/// Whether a parameter behind these is a bound of `BETWEEN`.
fn is_between(before: &[Token<'_>]) -> bool {
    match before {
        [.., word] if word.is(b"between") => true,
        [.., word, Token::Parameter(_), and] if word.is(b"between") && and.is(b"and") => true,
        _ => false,
    }
}

#[derive(Clone, Copy, Debug)]
struct Level {
    has_verb: bool,
    in_from: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A word or quoted identifier, with what dots join to it.
    Name {
        whole: &'a [u8],
        last: &'a [u8],
    },
    Parameter(u32),
    Symbol(u8),
    /// The rest of a list that lost its length.
    Ellipsis,
}

impl Token<'_> {
    fn is(&self, word: &[u8]) -> bool {
        matches!(self, Self::Name { whole, .. } if whole.eq_ignore_ascii_case(word))
    }

    fn is_any(&self, words: &[&[u8]]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    fn is_symbol(&self, symbol: u8) -> bool {
        *self == Token::Symbol(symbol)
    }
}

/// Words that are never a name.
const RESERVED: &[&[u8]] = &[
    b"all",
    b"and",
    b"any",
    b"array",
    b"as",
    b"asc",
    b"between",
    b"both",
    b"by",
    b"case",
    b"cast",
    b"collate",
    b"cross",
    b"delete",
    b"desc",
    b"distinct",
    b"else",
    b"end",
    b"except",
    b"exists",
    b"false",
    b"fetch",
    b"filter",
    b"first",
    b"for",
    b"from",
    b"full",
    b"group",
    b"having",
    b"ilike",
    b"in",
    b"inner",
    b"insert",
    b"intersect",
    b"into",
    b"is",
    b"join",
    b"lateral",
    b"leading",
    b"left",
    b"like",
    b"limit",
    b"natural",
    b"not",
    b"null",
    b"nulls",
    b"offset",
    b"on",
    b"only",
    b"or",
    b"order",
    b"outer",
    b"over",
    b"partition",
    b"recursive",
    b"returning",
    b"right",
    b"rows",
    b"select",
    b"set",
    b"similar",
    b"some",
    b"then",
    b"trailing",
    b"true",
    b"union",
    b"update",
    b"using",
    b"values",
    b"when",
    b"where",
    b"window",
    b"with",
    b"within",
];
/// Words before a number of rows.
const PAGING: &[&[u8]] = &[b"limit", b"offset"];
/// Names before a `(` that open something else than arguments.
const NEVER_CALLED: &[&[u8]] = &[b"materialized", b"row", b"sets", b"cube", b"rollup"];
/// Words behind which a comma separates no tables any more.
const CLAUSES: &[&[u8]] = &[
    b"where",
    b"group",
    b"order",
    b"having",
    b"limit",
    b"offset",
    b"fetch",
    b"for",
    b"window",
    b"union",
    b"except",
    b"intersect",
    b"returning",
    b"set",
    b"on",
    b"using",
    b"values",
];
/// Words that end the outermost `WHERE`.
const BEHIND_WHERE: &[&[u8]] = &[
    b"group",
    b"order",
    b"having",
    b"limit",
    b"offset",
    b"fetch",
    b"for",
    b"window",
    b"union",
    b"except",
    b"intersect",
    b"returning",
];
/// Words in a `WHERE` that keep one of its conditions from holding for every row of the result.
const UNCLEAR: &[&[u8]] = &[b"or", b"not", b"select", b"case", b"exists"];

fn put<'a>(list: &mut Vec<Name<'a>>, name: Name<'a>) {
    if list.len() < LISTED_MAX {
        list.push(name);
    }
}

/// The tokens of the `WHERE` outside all parentheses; `None` if there is none, or if several statements may have one.
fn outermost_where<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<&'t [Token<'a>]> {
    let mut depth = 0_usize;
    let mut start = None;
    for (position, token) in tokens.iter().enumerate() {
        match *token {
            Token::Symbol(b'(') => depth += 1,
            Token::Symbol(b')') => depth = depth.saturating_sub(1),
            Token::Symbol(b';') => return None,
            _ if depth > 0 => {}
            _ if token.is_any(&[b"union", b"except", b"intersect"]) => return None,
            _ if token.is(b"where") => start = Some(position + 1),
            _ => {}
        }
    }
    let conditions = tokens.get(start?..)?;
    let mut depth = 0_usize;
    let end = conditions.iter().position(|token| {
        match *token {
            Token::Symbol(b'(') => depth += 1,
            Token::Symbol(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.is_any(BEHIND_WHERE)
    });
    Some(&conditions[..end.unwrap_or(conditions.len())])
}

/// Whether a condition is over here, but for a cast of its parameter.
fn ends_condition(rest: &[Token<'_>]) -> bool {
    match rest {
        [Token::Symbol(b':'), Token::Symbol(b':'), Token::Name { .. }, rest @ ..] => ends_condition(rest),
        [] => true,
        [next, ..] => next.is(b"and") || next.is_symbol(b')'),
    }
}

/// Whether these words follow one another.
fn have(tokens: &[Token<'_>], words: &[&[u8]]) -> bool {
    let are_meant = |tokens: &[Token<'_>]| tokens.iter().zip(words).all(|(token, word)| token.is(word));
    tokens.windows(words.len()).any(are_meant)
}

fn is_constant(tokens: &[Token<'_>]) -> bool {
    let [select, value, rest @ ..] = tokens else { return false };
    let is_value = matches!(value, Token::Parameter(_)) || value.is_any(&[b"null", b"true", b"false"]);
    let is_alias = |token: &Token<'_>| matches!(token, Token::Name { .. }) && !token.is_any(RESERVED);
    let named = match rest {
        [] => true,
        [alias] => is_alias(alias),
        [word, alias] => word.is(b"as") && is_alias(alias),
        _ => false,
    };
    select.is(b"select") && is_value && named
}

fn is_next_value(tokens: &[Token<'_>]) -> bool {
    let [select, next, value, word, Token::Name { .. }] = tokens else { return false };
    select.is(b"select") && next.is(b"next") && value.is(b"value") && word.is(b"for")
}

/// The system variables that a `SELECT` asks for; `None` if it asks for anything else than these and functions without
/// arguments, with or without aliases.
fn variables<'a>(tokens: &[Token<'a>]) -> Option<Vec<Name<'a>>> {
    const AT: Token<'_> = Token::Symbol(b'@');
    let [select, items @ ..] = tokens else { return None };
    if !select.is(b"select") {
        return None;
    }
    let items = match items {
        [items @ .., limit, Token::Parameter(_)] if limit.is(b"limit") => items,
        items => items,
    };
    let mut found = Vec::new();
    for item in items.split(|token| token.is_symbol(b',')) {
        let alias = match *item {
            [AT, AT, Token::Name { whole, .. }, ref alias @ ..] => {
                put(&mut found, Name(whole));
                alias
            }
            [Token::Name { .. }, Token::Symbol(b'('), Token::Symbol(b')'), ref alias @ ..] => alias,
            _ => return None,
        };
        let alias = match alias {
            [word, alias @ ..] if word.is(b"as") => alias,
            alias => alias,
        };
        if !matches!(alias, [] | [Token::Name { .. }]) || alias.iter().any(|name| name.is_any(RESERVED)) {
            return None;
        }
    }
    Some(found)
}

fn tokens(template: &[u8]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&byte) = template.get(at) {
        at = match byte {
            b' ' => at + 1,
            b'.' if template[at..].starts_with(b"...") => {
                tokens.push(Token::Ellipsis);
                at + 3
            }
            b'$' if template.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                let end = scan::word_end(template, at);
                let digits = std::str::from_utf8(&template[at + 1..end]).ok();
                tokens.push(Token::Parameter(digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)));
                end
            }
            b'"' | b'`' => name(template, at, &mut tokens),
            _ if scan::is_word_byte(byte) => name(template, at, &mut tokens),
            _ => {
                tokens.push(Token::Symbol(byte));
                at + 1
            }
        };
    }
    tokens
}

/// Takes a name and what dots join to it; gives the offset behind it.
fn name<'a>(template: &'a [u8], start: usize, tokens: &mut Vec<Token<'a>>) -> usize {
    let mut part = start;
    loop {
        let end = match template.get(part) {
            Some(&quote @ (b'"' | b'`')) => quoted_identifier_end(template, part, quote).0,
            _ => scan::word_end(template, part),
        };
        let begins_name = |byte: &u8| matches!(byte, b'"' | b'`') || scan::is_word_byte(*byte);
        let is_joined = template.get(end) == Some(&b'.') && template.get(end + 1).is_some_and(begins_name);
        if !is_joined {
            tokens.push(Token::Name { whole: &template[start..end], last: &template[part..end] });
            return end;
        }
        part = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifter;

    fn texts<'a>(names: &[Name<'a>]) -> Vec<&'a str> {
        names.iter().map(|name| std::str::from_utf8(name.as_written()).unwrap()).collect()
    }

    fn calls(template: &str) -> Vec<&str> {
        texts(&Shape::of(template.as_bytes()).calls)
    }

    fn tables(template: &str) -> Vec<&str> {
        texts(&Shape::of(template.as_bytes()).tables)
    }

    fn keys(template: &str) -> Vec<(&str, u32)> {
        let shape = Shape::of(template.as_bytes());
        shape.keys.iter().map(|key| (texts(&[key.column])[0], key.parameter)).collect()
    }

    #[test]
    fn functions_are_names_before_a_parenthesis() {
        assert_eq!(calls("SELECT lo_open($1, $2), pg_catalog.version ()"), ["lo_open", "pg_catalog.version"]);
        assert_eq!(calls("SELECT a FROM t WHERE b IN ($1, $2) AND (c = $3)"), [] as [&str; 0]);
        assert_eq!(calls("SELECT count(*) FILTER (WHERE a) OVER (PARTITION BY b) FROM t"), ["count"]);
    }

    #[test]
    fn system_variables_are_those_of_a_select_of_nothing_else() {
        let variables = |template: &'static str| texts(&Shape::of(template.as_bytes()).variables);
        assert_eq!(variables("SELECT @@session.sql_mode"), ["session.sql_mode"]);
        assert_eq!(
            variables(
                "SELECT @@version AS v, @@global.`tx_isolation` mode, VERSION(), database() AS d LIMIT $1"
            ),
            ["version", "global.`tx_isolation`"]
        );
        for other in [
            "SELECT @own",
            "SELECT @@a, @own",
            "SELECT @@a, b FROM t",
            "SELECT @@a FROM t",
            "SELECT @@a + $1",
            "SELECT f(@@a), @@b",
            "SELECT VERSION()",
            "SET @@a = $1",
        ] {
            assert_eq!(variables(other), [] as [&str; 0], "{other}");
        }
    }

    #[test]
    fn names_in_backticks_are_names() {
        let template =
            "SELECT `o`.`at` FROM `shop`.`orders` `o` JOIN lines ON a = b WHERE `o`.`id` = $1 AND `n` = $2";
        assert_eq!(tables(template), ["`shop`.`orders`", "lines"]);
        assert_eq!(keys(template), [("`id`", 1), ("`n`", 2)]);
        assert!(Shape::of(template.as_bytes()).tables[0].is(b"shop.orders"));
        assert_eq!(tables("SELECT a FROM `odd ``name`"), ["`odd ``name`"]);
    }

    #[test]
    fn tables_stand_behind_from_and_join() {
        assert_eq!(
            tables("SELECT a FROM s.t x, u JOIN \"V\" ON u.a = \"V\".a WHERE b = $1"),
            ["s.t", "u", "\"V\""]
        );
        assert_eq!(tables("SELECT (SELECT max(a) FROM b), c FROM d, f(e) g, h"), ["b", "d", "h"]);
        assert_eq!(tables("SELECT EXTRACT(year FROM born), a IS DISTINCT FROM b FROM people"), ["people"]);
        assert_eq!(tables("SELECT * FROM (a JOIN b ON a.x = b.x), c ORDER BY d, e"), ["a", "b", "c"]);
        assert_eq!(tables("DELETE FROM ONLY t WHERE a = $1"), ["t"]);
    }

    #[test]
    fn compared_columns_are_listed_wherever_they_stand() {
        let compared = |template: &'static str| -> Vec<(&str, u32)> {
            let comparisons = Comparisons::of(template.as_bytes());
            comparisons.columns.iter().map(|key| (texts(&[key.column])[0], key.parameter)).collect()
        };
        assert_eq!(
            compared("SELECT a FROM t WHERE t.b = $1 AND NOT c OR $2 = d AND e IN ($3, $4) OR f = ANY ($5)"),
            [("b", 1), ("d", 2), ("e", 3), ("f", 5)]
        );
        assert_eq!(compared("SELECT a FROM t WHERE b = ANY($1) AND lower(c) = $2 AND d > $3"), [("b", 1)]);
    }

    #[test]
    fn bounds_say_which_part_of_the_rows_is_wanted() {
        let bounds = |template: &str| Comparisons::of(template.as_bytes()).bounds;
        assert_eq!(
            bounds("SELECT a FROM t WHERE b > $1 AND c = $2 ORDER BY b LIMIT $3 OFFSET $4"),
            [1, 3, 4]
        );
        assert_eq!(bounds("SELECT a FROM t WHERE b <= $1 AND $2 >= c AND (d, e) > ($3, $4)"), [1, 2, 3, 4]);
        assert_eq!(
            bounds("SELECT a FROM t WHERE b BETWEEN $1 AND $2 AND c = $3 FETCH FIRST $4 ROWS ONLY"),
            [1, 2, 4]
        );
        let none = "SELECT a FROM t WHERE b <> $1 AND c != $2 AND d ->> $3 = $4 AND e @> $5 AND f(1, $6) AND g << $7";
        assert_eq!(bounds(none), [0_u32; 0]);
    }

    #[test]
    fn keys_are_equalities_that_every_row_meets() {
        assert_eq!(keys("SELECT a FROM t WHERE id = $1 LIMIT $2"), [("id", 1)]);
        assert_eq!(
            keys("SELECT a FROM t WHERE (t.\"id\" = $2::int4 AND b > $1) ORDER BY a"),
            [("\"id\"", 2)]
        );
        assert_eq!(keys("UPDATE t SET a = $1 WHERE id = $2 AND version = $3"), [("id", 2), ("version", 3)]);
        for unclear in [
            "SELECT a FROM t WHERE id = $1 OR b = $2",
            "SELECT a FROM t WHERE NOT (id = $1)",
            "SELECT a FROM t WHERE id = $1 + $2",
            "SELECT a FROM t WHERE b + id = $1",
            "SELECT a FROM t WHERE id = $1 AND b IN ($2, ...)",
            "SELECT a FROM t WHERE id = ANY($1)",
            "SELECT a FROM t WHERE id >= $1",
            "SELECT a FROM (SELECT * FROM t WHERE id = $1) x",
            "SELECT a FROM t WHERE id = $1 UNION SELECT a FROM u WHERE id = $2",
        ] {
            assert_eq!(keys(unclear), [], "{unclear}");
        }
    }

    #[test]
    fn a_constant_is_told_from_what_is_asked() {
        let is_constant = |text: &str| {
            let mut lifter = Lifter::new();
            let lifted = lifter.lift(text.as_bytes(), true);
            Shape::of(lifted.template()).is_constant
        };
        for ping in ["SELECT 1", "select 'x' as ping", "/* ping */ SELECT null", "SELECT true alive;"] {
            assert!(is_constant(ping), "{ping}");
        }
        for question in
            ["SELECT now()", "SELECT 1 + 1", "SELECT a", "SELECT 1 FROM t", "SELECT 1, 2", "SELECT"]
        {
            assert!(!is_constant(question), "{question}");
        }
    }

    #[test]
    fn any_bytes_have_a_shape() {
        for text in
            ["", "$", "$x", "\"", "a.", ".a", "((", "))", ")FROM(", "WHERE", "WHERE a =", "$99999999999"]
        {
            Shape::of(text.as_bytes());
        }
    }
}
