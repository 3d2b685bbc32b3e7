//! Whether a statement is a plain insertion of one row of parameters, which can be written as one of many rows.

use onetrip_sql::scan;

/// `INSERT INTO table [(columns)] VALUES ($1, …, $n)`, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Insert {
    /// The table's name as it is written.
    pub(crate) table: String,
    /// The columns as they are written, with the parentheses; empty where none are.
    pub(crate) columns: String,
    /// How many parameters.
    pub(crate) width: usize,
}

impl Insert {
    /// Reads a statement. `None` is every other kind; comments make it one.
    pub(crate) fn of(statement: &str) -> Option<Self> {
        let mut text = Text { rest: statement };
        text.word("INSERT")?;
        text.word("INTO")?;
        let table = text.taken(Text::name)?;
        let columns = text.taken(|text| {
            text.sign('(')?;
            text.identifier()?;
            while text.sign(',').is_some() {
                text.identifier()?;
            }
            text.sign(')')
        });
        text.word("VALUES")?;
        text.sign('(')?;
        let mut width = 0;
        loop {
            width += 1;
            text.parameter(width)?;
            if text.sign(',').is_none() {
                break;
            }
        }
        text.sign(')')?;
        text.sign(';');
        text.skip_blanks();
        let insert =
            || Self { table: table.to_owned(), columns: columns.unwrap_or_default().to_owned(), width };
        text.rest.is_empty().then(insert)
    }

    /// Whether COPY can take its rows: without a list of columns it would want all of them.
    pub(crate) fn names_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The names of the columns as the server has them; `None` where none are, or it depends on the server's encoding.
    pub(crate) fn column_names(&self) -> Option<Vec<String>> {
        let mut text = Text { rest: self.columns.strip_prefix('(')? };
        let mut names = Vec::new();
        loop {
            let name = text.taken(Text::identifier)?;
            if !name.starts_with('"') && !name.is_ascii() {
                return None;
            }
            names.push(folded(name));
            if text.sign(',').is_none() {
                return Some(names);
            }
        }
    }

    /// Which row of a COPY into the table an error is about, counted from one, by the error's context.
    pub(crate) fn row_of_copy(&self, context: &str) -> Option<usize> {
        let name = self.table_name();
        context.lines().find_map(|line| {
            // "COPY table, line 3, column a": words may be translated.
            let place = line.strip_prefix("COPY ")?.strip_prefix(name.as_str())?.strip_prefix(", ")?;
            let number = place.trim_start_matches(|sign: char| !sign.is_ascii_digit());
            number.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
        })
    }

    /// The table's own name as the server writes it.
    fn table_name(&self) -> String {
        let mut text = Text { rest: &self.table };
        let mut last = "";
        while let Some(part) = text.taken(Text::identifier) {
            last = part;
            text.sign('.');
        }
        folded(last)
    }
}

/// A name as the server has it.
fn folded(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_ascii_lowercase(),
    }
}

/// What is left of a statement.
struct Text<'s> {
    rest: &'s str,
}

impl<'s> Text<'s> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// What `take` reads, as it is written; nothing is read where it fails.
    fn taken(&mut self, take: impl FnOnce(&mut Self) -> Option<()>) -> Option<&'s str> {
        self.skip_blanks();
        let before = self.rest;
        if take(self).is_none() {
            self.rest = before;
            return None;
        }
        Some(&before[..before.len() - self.rest.len()])
    }

    fn sign(&mut self, sign: char) -> Option<()> {
        self.skip_blanks();
        self.rest = self.rest.strip_prefix(sign)?;
        Some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.taken(Self::identifier)?;
        found.eq_ignore_ascii_case(word).then_some(())
    }

    fn name(&mut self) -> Option<()> {
        self.identifier()?;
        while self.rest.starts_with('.') {
            self.sign('.')?;
            self.identifier()?;
        }
        Some(())
    }

    fn identifier(&mut self) -> Option<()> {
        self.skip_blanks();
        let text = self.rest.as_bytes();
        let end = match text.first()? {
            b'"' => {
                let (end, is_closed) = scan::quoted_identifier_end(text, 0);
                (is_closed && end > "\"\"".len()).then_some(end)?
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => scan::word_end(text, 0),
            _ => return None,
        };
        self.rest = &self.rest[end..];
        Some(())
    }

    fn parameter(&mut self, number: usize) -> Option<()> {
        self.sign('$')?;
        let end = self.rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        (digits.parse() == Ok(number)).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_insertions_are_known_and_all_others_are_not() {
        let insert = |table: &str, columns: &str, width| {
            Some(Insert { table: table.to_owned(), columns: columns.to_owned(), width })
        };
        assert_eq!(Insert::of("INSERT INTO t VALUES ($1)"), insert("t", "", 1));
        assert_eq!(
            Insert::of(" insert  into \"My s\".\"a \"\"b\"\"\" (a , \"B\",c$1) values($1,$2 , $3) ; "),
            insert("\"My s\".\"a \"\"b\"\"\"", "(a , \"B\",c$1)", 3)
        );
        for other in [
            "INSERT INTO t VALUES ($1, $1)",
            "INSERT INTO t VALUES ($2, $1)",
            "INSERT INTO t VALUES ($1 + 1)",
            "INSERT INTO t VALUES ($1::int)",
            "INSERT INTO t VALUES ($1, 7)",
            "INSERT INTO t VALUES ($1), ($2)",
            "INSERT INTO t VALUES ($1) RETURNING a",
            "INSERT INTO t VALUES ($1) ON CONFLICT DO NOTHING",
            "INSERT INTO t AS x VALUES ($1)",
            "INSERT INTO t (a[1]) VALUES ($1)",
            "INSERT INTO t (a) OVERRIDING SYSTEM VALUE VALUES ($1)",
            "INSERT INTO t SELECT $1",
            "INSERT /* why */ INTO t VALUES ($1)",
            "WITH x AS (SELECT 1) INSERT INTO t VALUES ($1)",
            "INSERT INTO t VALUES ($1); DROP TABLE t",
            "INSERT INTO \"t VALUES ($1)",
            "INSERT INTO t VALUES ()",
            "UPDATE t SET a = $1",
            "",
        ] {
            assert_eq!(Insert::of(other), None, "{other}");
        }
    }

    #[test]
    fn names_of_columns_are_folded_as_the_server_folds_them() {
        let names = |statement| Insert::of(statement).and_then(|insert| insert.column_names());
        let statement = "INSERT INTO t (a , \"B \"\" c\",D$1) VALUES ($1, $2, $3)";
        assert_eq!(names(statement), Some(vec!["a".to_owned(), "B \" c".to_owned(), "d$1".to_owned()]));
        assert_eq!(names("INSERT INTO t (\"é\") VALUES ($1)"), Some(vec!["é".to_owned()]));
        assert_eq!(names("INSERT INTO t (É) VALUES ($1)"), None, "it depends on the encoding");
        assert_eq!(names("INSERT INTO t VALUES ($1)"), None);
    }

    #[test]
    fn the_row_that_a_copy_failed_at_stands_in_the_context() {
        let row = |statement, context| Insert::of(statement).and_then(|insert| insert.row_of_copy(context));
        let plain = "INSERT INTO public.Kept (a) VALUES ($1)";
        assert_eq!(row(plain, "COPY kept, line 3, column a: \"x, line 9\""), Some(3));
        assert_eq!(row(plain, "PL/pgSQL function f() line 7 at RAISE\nCOPY kept, Zeile 12"), Some(12));
        assert_eq!(row(plain, "COPY kept, line 4: \"1\""), Some(4));
        assert_eq!(row(plain, "COPY other, line 3"), None);
        assert_eq!(row("INSERT INTO \"a, line 5\" (a) VALUES ($1)", "COPY a, line 5, line 2"), Some(2));
    }
}
