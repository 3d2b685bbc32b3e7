//! What a statement says about itself, as far as its words tell.

use crate::kind::StatementKind;
use crate::template::Span;

/// Most statements of one text whose kinds are kept in [`Facts::parts`].
pub const PARTS_MAX: usize = 16;

/// How much a `FETCH` or `MOVE` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchCount {
    /// So many rows; negative counts go backward.
    Rows(i64),
    /// Every row up to the end.
    All,
}

/// Which way a `FETCH` or `MOVE` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    /// `NEXT`, `FORWARD`, a count or nothing.
    Forward,
    /// `PRIOR`, `BACKWARD`.
    Backward,
    /// `FIRST`, `LAST`, `ABSOLUTE`, `RELATIVE`.
    Jump,
}

/// What stands behind the `=` or `TO` of a `SET`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// A word, a quoted identifier or `DEFAULT`: its place in the template.
    Word(Span),
    /// The literal with this index in [`Lifted::literals`](crate::Lifted::literals).
    Literal(u32),
}

/// Facts about a text. For several statements ([`StatementKind::Multi`]) flags hold if they hold for any of them,
/// and names are those of the first statement that has one. Spans are places in the template.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// The sort of the statement.
    pub kind: StatementKind,
    /// The kinds of the first [`PARTS_MAX`] non-empty statements; [`StatementKind::Empty`] behind the last.
    pub(crate) parts: [StatementKind; PARTS_MAX],
    /// How many non-empty statements there are.
    pub part_count: u32,
    /// An `INSERT`, `UPDATE`, `DELETE` or `MERGE` stands in it, as main verb, in a CTE or below `EXPLAIN`.
    pub writes: bool,
    /// `SELECT … INTO table`.
    pub into: bool,
    /// `FOR UPDATE`, `FOR SHARE` and their kin.
    pub locks_rows: bool,
    /// A `SELECT` (or `DELETE`, or a joined `UPDATE`) has a `FROM`; that of `EXTRACT(… FROM …)` does not count.
    pub has_from: bool,
    /// The main table's name as written, with its schema: the first behind `FROM`, `INTO`, `UPDATE`; in a `WITH`
    /// before a row-writing verb, that verb's table.
    pub table: Option<Span>,
    /// The name the statement is about: cursor, setting, prepared statement, savepoint or channel.
    pub name: Option<Span>,
    /// `CLOSE ALL`, `DEALLOCATE ALL`, `DISCARD ALL`, `RESET ALL`, `SHOW ALL`.
    pub all: bool,
    /// `DECLARE … WITH HOLD`.
    pub hold: bool,
    /// `SET LOCAL`.
    pub local: bool,
    /// `COMMIT AND CHAIN`, `ROLLBACK AND CHAIN`.
    pub chain: bool,
    /// The first value of a `SET`.
    pub setting: Option<SettingValue>,
    /// How many rows a `FETCH` or `MOVE` asks for; one if it does not say.
    pub fetch_count: Option<FetchCount>,
    /// Which way a `FETCH` or `MOVE` goes.
    pub fetch_direction: Option<FetchDirection>,
    /// There were more literals than [`LITERALS_MAX`](crate::LITERALS_MAX); the rest are replaced but not listed.
    pub literals_cut: bool,
}

impl Facts {
    /// The kinds of the non-empty statements of the text, at most [`PARTS_MAX`]; see `part_count`.
    pub fn parts(&self) -> &[StatementKind] {
        let kept = usize::try_from(self.part_count).unwrap_or(PARTS_MAX).min(PARTS_MAX);
        &self.parts[..kept]
    }

    /// Whether, by its words, the text only reads: functions it calls may still write.
    pub fn only_reads(&self) -> bool {
        let parts_read =
            self.part_count as usize <= PARTS_MAX && self.parts().iter().all(|kind| kind.is_read());
        parts_read && self.part_count > 0 && !self.writes && !self.into && !self.locks_rows
    }
}

/// An SQL name as written: `Orders`, `"Orders"`, `onetrip.scope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a>(pub(crate) &'a [u8]);

impl<'a> Name<'a> {
    /// The bytes as written, quotes included.
    pub fn as_written(self) -> &'a [u8] {
        self.0
    }

    /// Whether it names `folded`: unquoted letters count as small, quoted ones as they stand.
    pub fn is(self, folded: &[u8]) -> bool {
        self.folded().eq(folded.iter().copied())
    }

    /// Its bytes as PostgreSQL folds them (ASCII letters only), without quotes. Backticks, which MySQL has, are quotes.
    pub fn folded(self) -> impl Iterator<Item = u8> + 'a {
        let mut quote = None;
        let mut bytes = self.0.iter().copied().peekable();
        std::iter::from_fn(move || {
            loop {
                let byte = bytes.next()?;
                match quote {
                    None if matches!(byte, b'"' | b'`') => quote = Some(byte),
                    None => return Some(byte.to_ascii_lowercase()),
                    Some(open) if byte != open => return Some(byte),
                    Some(_) if bytes.next_if_eq(&byte).is_some() => return Some(byte),
                    Some(_) => quote = None,
                }
            }
        })
    }
}
