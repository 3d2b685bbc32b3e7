//! One statement of a client: what it asks for, ready to run.

use onetrip_sql::purity::{Lookup, SessionQuestion};

use super::analysis::Analysis;
use super::column::Column;
use super::ddl::{self, Ddl};
use super::parser::Parser;
use super::schema::Schema;
use super::token::{Kind, Token, tokenize};
use super::utility;
use crate::error::{SqlError, SqlResult};
use crate::types::SqlType;

/// A statement by who carries it out.
#[derive(Debug)]
pub(crate) enum Statement {
    Empty,
    /// SQLite runs it.
    Run(Run),
    /// SQLite runs its parts one after the other; they return no rows.
    Ddl(Ddl),
    /// The session does it.
    Utility(Utility),
}

/// SELECT, VALUES, INSERT, UPDATE, DELETE or EXPLAIN in SQLite's words.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) sql: String,
    pub(crate) verb: Verb,
    pub(crate) parameters: Vec<SqlType>,
    pub(crate) columns: Vec<OutputColumn>,
    /// Whether it needs the views of PostgreSQL's catalogue.
    pub(crate) uses_catalog: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Select,
    Insert,
    Update,
    Delete,
    Explain,
}

/// A result column as it is described.
#[derive(Debug, Clone)]
pub(crate) struct OutputColumn {
    pub(crate) name: String,
    pub(crate) ty: SqlType,
    pub(crate) scale: Option<u32>,
    /// Index of SQLite's column.
    pub(crate) source: usize,
}

/// What the session does itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Utility {
    Begin(Modes),
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    /// `None` is DEFAULT.
    Set {
        name: String,
        value: Option<String>,
        is_local: bool,
    },
    /// SET TRANSACTION and SET SESSION CHARACTERISTICS.
    SetTransaction {
        modes: Modes,
        is_session: bool,
    },
    Reset(Option<String>),
    Show(String),
    Discard,
    Deallocate(Option<String>),
    /// PREPARE: the text of the statement to prepare.
    Prepare {
        name: String,
        types: Vec<SqlType>,
        text: String,
    },
    /// EXECUTE: arguments as literals, `None` is NULL.
    Execute {
        name: String,
        arguments: Vec<Option<String>>,
    },
    Declare {
        cursor: String,
        text: String,
        is_held: bool,
    },
    Fetch {
        cursor: String,
        count: Option<u64>,
        is_move: bool,
    },
    CloseCursor(Option<String>),
    /// LISTEN, UNLISTEN, LOCK and others that are accepted and do nothing.
    Nothing(&'static str),
    Analyze,
    Vacuum,
    Copy(CopyIn),
    /// What a gateway of onetrip asks.
    Question(Question),
}

/// What a transaction is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Modes {
    /// As SHOW gives it. All of a transaction's reads see one state at every level.
    pub(crate) isolation: Option<&'static str>,
    pub(crate) is_read_only: Option<bool>,
}

/// A question of a gateway of onetrip, known by its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// About its session.
    Session(SessionQuestion),
    /// About the catalogue.
    Lookup(Lookup),
}

impl Question {
    fn of_sql(text: &str) -> Option<Self> {
        let about_session = || SessionQuestion::of_sql(text).map(Self::Session);
        Lookup::of_sql(text).map(Self::Lookup).or_else(about_session)
    }

    /// The types of its parameters; an array is read as a text.
    pub(crate) fn parameters(&self) -> &'static [SqlType] {
        match self {
            Self::Lookup(lookup) if lookup.sql().contains("$1") => &[SqlType::TEXT],
            _ => &[],
        }
    }

    /// How many columns its answer has.
    pub(crate) fn column_count(&self) -> usize {
        match self {
            Self::Session(question) => question.column_count(),
            Self::Lookup(lookup) => lookup.column_count(),
        }
    }
}

/// COPY … FROM STDIN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyIn {
    pub(crate) table: String,
    pub(crate) columns: Vec<String>,
    pub(crate) format: CopyFormat,
    pub(crate) has_header: bool,
    pub(crate) delimiter: u8,
    pub(crate) null: String,
}

/// How COPY's data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    Text,
    Csv,
    Binary,
}

/// Splits a text at its semicolons; empty statements between them are left out.
pub(crate) fn split(text: &str) -> SqlResult<Vec<&str>> {
    let mut statements = Vec::new();
    let mut start = None;
    let mut end = 0;
    for token in tokenize(text)? {
        if token.kind == Kind::Semicolon {
            statements.extend(start.take().map(|start| &text[start..end]));
        } else {
            start.get_or_insert(token.start as usize);
            end = token.end as usize;
        }
    }
    statements.extend(start.map(|start| &text[start..end]));
    Ok(statements)
}

/// Translates one statement; `given` are the parameter types that the client fixed, unknown where it did not.
pub(crate) fn translate(text: &str, given: &[SqlType], schema: &dyn Schema) -> SqlResult<Statement> {
    if let Some(question) = Question::of_sql(text) {
        return Ok(Statement::Utility(Utility::Question(question)));
    }
    let mut tokens = tokenize(text)?;
    while tokens.last().is_some_and(|token| token.kind == Kind::Semicolon) {
        tokens.pop();
    }
    if let Some(semicolon) = tokens.iter().find(|token| token.kind == Kind::Semicolon) {
        return Err(SqlError::new("42601", "cannot insert multiple commands into a prepared statement")
            .at(semicolon.start as usize));
    }
    let Some(first) = tokens.first() else { return Ok(Statement::Empty) };
    match first.text(text).to_ascii_lowercase().as_str() {
        "select" | "values" | "with" | "table" | "(" | "insert" | "update" | "delete" => {
            run(text, &tokens, given, schema).map(Statement::Run)
        }
        "explain" => explain(text, &tokens, given, schema).map(Statement::Run),
        "create" | "alter" | "drop" | "truncate" => ddl::translate(text, &tokens, schema).map(Statement::Ddl),
        _ => utility::parse(text, &tokens).map(Statement::Utility),
    }
}

fn run(text: &str, tokens: &[Token], given: &[SqlType], schema: &dyn Schema) -> SqlResult<Run> {
    let mut parser = Parser::new(text, tokens);
    if parser.is_word("table") {
        return Err(SqlError::unsupported("TABLE is not supported").hint("Use SELECT * FROM."));
    }
    let with = parser.with_clause()?;
    let verb = match () {
        () if parser.is_word("insert") => Verb::Insert,
        () if parser.is_word("update") => Verb::Update,
        () if parser.is_word("delete") => Verb::Delete,
        () => Verb::Select,
    };
    if verb == Verb::Select {
        parser.set_position(0);
        let query = parser.query()?;
        if !parser.is_at_end() {
            return Err(parser.syntax_error());
        }
        let tree = parser.into_tree();
        let mut analysis = prepared(text, tokens, &tree, given, schema);
        let columns = analysis.query(query)?;
        if analysis.parameters.is_empty() {
            let text_of = |id: usize| analysis.render(tree.exprs[id].first, tree.exprs[id].last);
            if let Some(run) = super::sequence::run(&tree.queries[query], &tree, text_of) {
                return Ok(run);
            }
        }
        return Ok(finish(analysis, verb, columns));
    }
    let change = parser.change(with)?;
    let tree = parser.into_tree();
    let mut analysis = prepared(text, tokens, &tree, given, schema);
    let columns = analysis.change(&change)?;
    Ok(finish(analysis, verb, columns))
}

fn prepared<'a>(
    text: &'a str,
    tokens: &'a [Token],
    tree: &'a super::tree::Tree,
    given: &[SqlType],
    schema: &'a dyn Schema,
) -> Analysis<'a> {
    let mut analysis = Analysis::new(text, tokens, tree, schema);
    analysis.parameters = given.iter().map(|ty| (!ty.is_unknown()).then_some(*ty)).collect();
    analysis
}

fn finish(analysis: Analysis<'_>, verb: Verb, columns: Vec<Column>) -> Run {
    let text_unless_known = |ty: SqlType| if ty.is_unknown() { SqlType::TEXT } else { ty };
    Run {
        sql: analysis.render(0, analysis.tokens.len() - 1),
        verb,
        parameters: analysis
            .parameters
            .iter()
            .map(|ty| ty.map_or(SqlType::TEXT, text_unless_known))
            .collect(),
        columns: columns
            .into_iter()
            .enumerate()
            .map(|(source, column)| OutputColumn {
                name: column.name,
                ty: text_unless_known(column.ty),
                scale: column.scale,
                source,
            })
            .collect(),
        uses_catalog: analysis.uses_catalog,
    }
}

/// EXPLAIN shows SQLite's plan, one line a row.
fn explain(text: &str, tokens: &[Token], given: &[SqlType], schema: &dyn Schema) -> SqlResult<Run> {
    let mut start = 1;
    if tokens.get(start).is_some_and(|token| token.kind == Kind::Open) {
        let close = tokens.iter().position(|token| token.kind == Kind::Close);
        start = close.map_or(start, |close| close + 1);
    }
    while tokens.get(start).is_some_and(|token| {
        ["verbose", "costs", "analyze"].iter().any(|word| token.text(text).eq_ignore_ascii_case(word))
    }) {
        start += 1;
    }
    let inner = run(text, tokens.get(start..).unwrap_or_default(), given, schema)?;
    Ok(Run {
        sql: format!("EXPLAIN QUERY PLAN {}", inner.sql),
        verb: Verb::Explain,
        columns: vec![OutputColumn {
            name: "QUERY PLAN".to_owned(),
            ty: SqlType::TEXT,
            scale: None,
            source: 3,
        }],
        ..inner
    })
}
