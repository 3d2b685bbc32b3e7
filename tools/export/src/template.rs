use onetrip_sql::{Comparisons, Lifter, Name, Shape, StatementKind};

/// A template, and what its words say.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// The text.
    pub text: String,
    /// Its sort.
    pub kind: &'static str,
    /// Tables that are read.
    pub tables: Vec<String>,
    /// Numbers of parameters, and the columns that these are compared with.
    pub compared: Vec<(u32, String)>,
    /// Numbers of parameters that choose a part of the rows.
    pub bounds: Vec<u32>,
}

impl Template {
    pub(crate) fn new(lifter: &mut Lifter, text: &[u8]) -> Self {
        // As the analyzer has it.
        let text = String::from_utf8_lossy(text).into_owned();
        let kind = kind(lifter.lift_template(text.as_bytes()).kind());
        let Comparisons { columns, bounds } = Comparisons::of(text.as_bytes());
        let compared = columns.iter().map(|key| (key.parameter, last_part(key.column))).collect();
        let tables = Shape::of(text.as_bytes()).tables.iter().map(|table| last_part(*table)).collect();
        Self { kind, tables, compared, bounds, text }
    }

    /// One whose text is not known.
    pub(crate) fn unknown() -> Self {
        let kind = kind(StatementKind::Other);
        Self { text: String::new(), kind, tables: Vec::new(), compared: Vec::new(), bounds: Vec::new() }
    }
}

/// A name without its schema.
fn last_part(name: Name<'_>) -> String {
    let folded: Vec<u8> = name.folded().collect();
    let folded = String::from_utf8_lossy(&folded);
    folded.rsplit('.').next().unwrap_or(&folded).to_owned()
}

fn kind(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Empty => "empty",
        StatementKind::Multi => "multi",
        StatementKind::Select => "select",
        StatementKind::Values => "values",
        StatementKind::With => "with",
        StatementKind::Insert => "insert",
        StatementKind::Update => "update",
        StatementKind::Delete => "delete",
        StatementKind::Merge => "merge",
        StatementKind::Begin => "begin",
        StatementKind::Commit => "commit",
        StatementKind::Rollback => "rollback",
        StatementKind::Savepoint => "savepoint",
        StatementKind::Release => "release",
        StatementKind::RollbackTo => "rollback-to",
        StatementKind::TwoPhase => "two-phase",
        StatementKind::Set => "set",
        StatementKind::Reset => "reset",
        StatementKind::Show => "show",
        StatementKind::Declare => "declare",
        StatementKind::Fetch => "fetch",
        StatementKind::Move => "move",
        StatementKind::CloseCursor => "close",
        StatementKind::Copy => "copy",
        StatementKind::Prepare => "prepare",
        StatementKind::Execute => "execute",
        StatementKind::Deallocate => "deallocate",
        StatementKind::Discard => "discard",
        StatementKind::Lock => "lock",
        StatementKind::Listen => "listen",
        StatementKind::Notify => "notify",
        StatementKind::Unlisten => "unlisten",
        StatementKind::Explain => "explain",
        StatementKind::Call => "call",
        StatementKind::Do => "do",
        StatementKind::Maintenance => "maintenance",
        StatementKind::Ddl => "ddl",
        StatementKind::Other => "other",
    }
}
