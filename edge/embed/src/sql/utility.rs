//! Statements that the session carries out itself: transactions, settings, cursors, COPY.

use super::parser::Parser;
use super::statement::{CopyFormat, CopyIn, Modes, Utility};
use super::token::{Kind, Token};
use crate::error::{SqlError, SqlResult};

pub(super) fn parse(text: &str, tokens: &[Token]) -> SqlResult<Utility> {
    let mut parser = Parser::new(text, tokens);
    if tokens.first().is_none_or(|token| token.kind != Kind::Word) {
        return Err(parser.syntax_error());
    }
    let word = parser.name()?;
    let utility = match word.as_str() {
        "prepare" => return prepare(parser, text, tokens),
        "declare" => return declare(parser, text, tokens),
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" => {
            transaction(&word, &mut parser)?
        }
        "set" => set(&mut parser)?,
        "reset" => Utility::Reset(all_or(&mut parser, setting_name)?),
        "show" => Utility::Show(setting_name(&mut parser)?),
        "discard" => {
            parser.name()?;
            Utility::Discard
        }
        "deallocate" => {
            parser.take_word("prepare");
            Utility::Deallocate(all_or(&mut parser, Parser::name)?)
        }
        "execute" => execute(&mut parser)?,
        "fetch" => fetch(&mut parser, false)?,
        "move" => fetch(&mut parser, true)?,
        "close" => Utility::CloseCursor(all_or(&mut parser, Parser::name)?),
        "copy" => copy(&mut parser)?,
        "checkpoint" => Utility::Nothing("CHECKPOINT"),
        "unlisten" | "analyze" | "analyse" | "vacuum" => {
            // SQLite's VACUUM INTO writes a file; in PostgreSQL it is no statement.
            if let Some(at) = (1..tokens.len()).find(|at| parser.is_word_at(*at, "into")) {
                parser.set_position(at);
                return Err(parser.syntax_error());
            }
            parser.set_position(tokens.len());
            match word.as_str() {
                "unlisten" => Utility::Nothing("UNLISTEN"),
                "vacuum" => Utility::Vacuum,
                _ => Utility::Analyze,
            }
        }
        "listen" | "notify" => return Err(SqlError::unsupported("LISTEN and NOTIFY are not supported")),
        other if UNSUPPORTED.contains(&other) => {
            return Err(SqlError::unsupported(format!("{} is not supported", word.to_uppercase())));
        }
        _ => {
            parser.set_position(0);
            return Err(parser.syntax_error());
        }
    };
    if parser.is_at_end() { Ok(utility) } else { Err(parser.syntax_error()) }
}

/// First words of statements that PostgreSQL, or SQLite, has and this server does not.
const UNSUPPORTED: [&str; 17] = [
    "pragma", "attach", "detach", "lock", "comment", "grant", "revoke", "do", "call", "merge", "reindex",
    "cluster", "refresh", "import", "security", "reassign", "load",
];

/// `None` for ALL, else what `read` reads.
fn all_or<'t>(
    parser: &mut Parser<'t>,
    read: impl FnOnce(&mut Parser<'t>) -> SqlResult<String>,
) -> SqlResult<Option<String>> {
    if parser.take_word("all") { Ok(None) } else { read(parser).map(Some) }
}

/// What begins, ends or divides a transaction, behind its first word.
fn transaction(word: &str, parser: &mut Parser<'_>) -> SqlResult<Utility> {
    match word {
        "begin" => {
            transaction_word(parser);
            begin(parser)
        }
        "start" => {
            parser.expect_word("transaction")?;
            begin(parser)
        }
        "commit" | "end" => {
            transaction_word(parser);
            no_chain(parser)?;
            refuse_prepared(parser)?;
            Ok(Utility::Commit)
        }
        "savepoint" => parser.name().map(Utility::Savepoint),
        "release" => {
            parser.take_word("savepoint");
            parser.name().map(Utility::Release)
        }
        _ => rollback(parser),
    }
}

fn transaction_word(parser: &mut Parser<'_>) {
    if !parser.take_word("work") {
        parser.take_word("transaction");
    }
}

/// Transaction modes. At every level, isolation is SQLite's.
fn modes(parser: &mut Parser<'_>) -> SqlResult<Modes> {
    const LEVELS: [(&[&str], &str); 3] = [
        (&["repeatable", "read"], "repeatable read"),
        (&["read", "committed"], "read committed"),
        (&["read", "uncommitted"], "read uncommitted"),
    ];
    let mut modes = Modes::default();
    loop {
        if parser.take_words(&["isolation", "level"]) {
            let named = LEVELS.iter().find(|(words, _)| parser.take_words(words));
            if named.is_none() {
                parser.expect_word("serializable")?;
            }
            modes.isolation = Some(named.map_or("serializable", |(_, level)| level));
        } else if parser.take_words(&["read", "only"]) {
            modes.is_read_only = Some(true);
        } else if parser.take_words(&["read", "write"]) {
            modes.is_read_only = Some(false);
        } else if !parser.take_words(&["not", "deferrable"]) && !parser.take_word("deferrable") {
            return Ok(modes);
        }
        parser.take(Kind::Comma);
    }
}

fn begin(parser: &mut Parser<'_>) -> SqlResult<Utility> {
    Ok(Utility::Begin(modes(parser)?))
}

fn no_chain(parser: &mut Parser<'_>) -> SqlResult<()> {
    if parser.take_word("and") && !parser.take_words(&["no", "chain"]) {
        return Err(SqlError::unsupported("AND CHAIN is not supported"));
    }
    Ok(())
}

fn refuse_prepared(parser: &mut Parser<'_>) -> SqlResult<()> {
    if parser.is_word("prepared") {
        return Err(SqlError::unsupported("prepared transactions are not supported"));
    }
    Ok(())
}

fn rollback(parser: &mut Parser<'_>) -> SqlResult<Utility> {
    transaction_word(parser);
    if parser.take_word("to") {
        parser.take_word("savepoint");
        return Ok(Utility::RollbackTo(parser.name()?));
    }
    no_chain(parser)?;
    refuse_prepared(parser)?;
    Ok(Utility::Rollback)
}

fn setting_name(parser: &mut Parser<'_>) -> SqlResult<String> {
    if parser.take_words(&["transaction", "isolation", "level"]) {
        return Ok("transaction_isolation".to_owned());
    }
    if parser.take_words(&["time", "zone"]) {
        return Ok("timezone".to_owned());
    }
    if parser.take_words(&["session", "authorization"]) {
        return Ok("session_authorization".to_owned());
    }
    let mut name = parser.name()?;
    while parser.take(Kind::Dot) {
        name = format!("{name}.{}", parser.name()?);
    }
    Ok(name.to_ascii_lowercase())
}

fn set(parser: &mut Parser<'_>) -> SqlResult<Utility> {
    if parser.take_words(&["session", "characteristics", "as", "transaction"]) {
        return Ok(Utility::SetTransaction { modes: modes(parser)?, is_session: true });
    }
    let is_local = parser.take_word("local");
    if !is_local {
        parser.take_word("session");
    }
    if parser.take_word("transaction") {
        return Ok(Utility::SetTransaction { modes: modes(parser)?, is_session: false });
    }
    if parser.take_word("constraints") {
        return Err(SqlError::unsupported("SET CONSTRAINTS is not supported"));
    }
    if parser.take_words(&["time", "zone"]) {
        let value = setting_value(parser)?;
        return Ok(Utility::Set { name: "timezone".to_owned(), value, is_local });
    }
    if parser.take_word("names") {
        return Ok(Utility::Set {
            name: "client_encoding".to_owned(),
            value: setting_value(parser)?,
            is_local,
        });
    }
    let name = setting_name(parser)?;
    if !parser.take_word("to") && !parser.take_operator("=") {
        return Err(parser.syntax_error());
    }
    Ok(Utility::Set { name, value: setting_value(parser)?, is_local })
}

/// The rest of the statement as the setting's text; `None` is DEFAULT.
fn setting_value(parser: &mut Parser<'_>) -> SqlResult<Option<String>> {
    if parser.take_word("default") {
        return Ok(None);
    }
    let mut value = String::new();
    loop {
        match parser.kind() {
            Some(Kind::Text | Kind::EscapeText) => value.push_str(&parser.string()?),
            Some(Kind::Word | Kind::QuotedName) => value.push_str(&parser.name()?),
            Some(Kind::Integer | Kind::Decimal | Kind::Operator) => {
                value.push_str(parser.token_text(parser.at));
                parser.at += 1;
                if matches!(parser.kind(), Some(Kind::Integer | Kind::Decimal)) {
                    continue; // a sign
                }
            }
            _ => return Err(parser.syntax_error()),
        }
        if !parser.take(Kind::Comma) {
            return Ok(Some(value));
        }
        value.push_str(", ");
    }
}

/// The text from a token to the statement's end.
fn rest_of(text: &str, tokens: &[Token], at: usize) -> String {
    match (tokens.get(at), tokens.last()) {
        (Some(first), Some(last)) => text[first.start as usize..last.end as usize].to_owned(),
        _ => String::new(),
    }
}

fn prepare(mut parser: Parser<'_>, text: &str, tokens: &[Token]) -> SqlResult<Utility> {
    if parser.is_word("transaction") {
        return Err(SqlError::unsupported("prepared transactions are not supported"));
    }
    let name = parser.name()?;
    let mut types = Vec::new();
    if parser.take(Kind::Open) {
        loop {
            types.push(parser.type_name()?);
            if !parser.take(Kind::Comma) {
                break;
            }
        }
        parser.expect(Kind::Close)?;
    }
    parser.expect_word("as")?;
    Ok(Utility::Prepare { name, types, text: rest_of(text, tokens, parser.position()) })
}

fn execute(parser: &mut Parser<'_>) -> SqlResult<Utility> {
    let name = parser.name()?;
    let mut arguments = Vec::new();
    if parser.take(Kind::Open) {
        loop {
            arguments.push(execute_argument(parser)?);
            if !parser.take(Kind::Comma) {
                break;
            }
        }
        parser.expect(Kind::Close)?;
    }
    Ok(Utility::Execute { name, arguments })
}

fn execute_argument(parser: &mut Parser<'_>) -> SqlResult<Option<String>> {
    let mut text = if parser.take_operator("-") { "-".to_owned() } else { String::new() };
    match parser.kind() {
        Some(Kind::Text | Kind::EscapeText | Kind::DollarText) => text.push_str(&parser.string()?),
        Some(Kind::Integer | Kind::Decimal) => {
            text.push_str(parser.token_text(parser.at));
            parser.at += 1;
        }
        _ if parser.take_word("null") => return Ok(None),
        _ if parser.is_word("true") || parser.is_word("false") => text = parser.name()?,
        _ => return Err(SqlError::unsupported("EXECUTE takes literals only")),
    }
    if parser.take(Kind::Cast) {
        parser.type_name()?;
    }
    Ok(Some(text))
}

fn declare(mut parser: Parser<'_>, text: &str, tokens: &[Token]) -> SqlResult<Utility> {
    let cursor = parser.name()?;
    loop {
        if parser.is_word("binary") {
            return Err(SqlError::unsupported("BINARY cursors are not supported"));
        }
        if parser.is_word("scroll") {
            return Err(SqlError::unsupported("SCROLL cursors are not supported"));
        }
        let is_option = parser.take_word("insensitive")
            || parser.take_word("asensitive")
            || parser.take_words(&["no", "scroll"]);
        if !is_option {
            break;
        }
    }
    parser.expect_word("cursor")?;
    let is_held = parser.take_words(&["with", "hold"]);
    if !is_held {
        parser.take_words(&["without", "hold"]);
    }
    parser.expect_word("for")?;
    Ok(Utility::Declare { cursor, text: rest_of(text, tokens, parser.position()), is_held })
}

fn fetch(parser: &mut Parser<'_>, is_move: bool) -> SqlResult<Utility> {
    let mut count = Some(1);
    if parser.take_word("next") {
    } else if parser.take_word("all") {
        count = None;
    } else {
        for backward in ["prior", "backward", "absolute", "relative", "first", "last"] {
            if parser.is_word(backward) {
                return Err(SqlError::new("55000", "cursor can only scan forward"));
            }
        }
        let has_direction = parser.take_word("forward");
        if has_direction && parser.take_word("all") {
            count = None;
        } else if parser.kind() == Some(Kind::Integer) {
            count = Some(parser.token_text(parser.at).parse().map_err(|_| parser.syntax_error())?);
            parser.at += 1;
        }
    }
    if !parser.take_word("from") {
        parser.take_word("in");
    }
    Ok(Utility::Fetch { cursor: parser.name()?, count, is_move })
}

fn copy(parser: &mut Parser<'_>) -> SqlResult<Utility> {
    let unsupported = || SqlError::unsupported("only COPY table FROM STDIN is supported");
    if parser.kind() == Some(Kind::Open) {
        return Err(unsupported());
    }
    let (_, table) = parser.qualified_name()?;
    let columns = parser.optional_names()?;
    if !parser.take_words(&["from", "stdin"]) {
        return Err(unsupported());
    }
    let mut copy = CopyIn {
        table,
        columns,
        format: CopyFormat::Text,
        has_header: false,
        delimiter: b'\t',
        null: "\\N".to_owned(),
    };
    let (mut delimiter, mut null) = (None, None);
    parser.take_word("with");
    let has_list = parser.take(Kind::Open);
    while !parser.is_at_end() && parser.kind() != Some(Kind::Close) {
        copy_option(parser, &mut copy, &mut delimiter, &mut null)?;
        parser.take(Kind::Comma);
    }
    if has_list {
        parser.expect(Kind::Close)?;
    }
    let is_csv = copy.format == CopyFormat::Csv;
    copy.delimiter = delimiter.unwrap_or(if is_csv { b',' } else { b'\t' });
    copy.null = null.unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_owned() });
    Ok(Utility::Copy(copy))
}

/// One option of COPY; what depends on the format is left to the end.
fn copy_option(
    parser: &mut Parser<'_>,
    copy: &mut CopyIn,
    delimiter: &mut Option<u8>,
    null: &mut Option<String>,
) -> SqlResult<()> {
    match parser.name()?.as_str() {
        "format" => match format_name(parser)?.as_str() {
            "text" => {}
            "binary" => copy.format = CopyFormat::Binary,
            "csv" => copy.format = CopyFormat::Csv,
            other => return Err(SqlError::new("22023", format!("COPY format \"{other}\" not recognized"))),
        },
        "binary" => copy.format = CopyFormat::Binary,
        "csv" => copy.format = CopyFormat::Csv,
        "freeze" | "on" | "off" | "true" => {}
        "header" => {
            let is_off = parser.take_word("false") || parser.take_word("off");
            copy.has_header = !is_off;
            let _ = parser.take_word("true") || parser.take_word("on");
        }
        "delimiter" => {
            parser.take_word("as");
            *delimiter = parser.string()?.bytes().next();
        }
        "null" => {
            parser.take_word("as");
            *null = Some(parser.string()?);
        }
        "encoding" => drop(parser.string()?),
        other => return Err(SqlError::unsupported(format!("COPY option \"{other}\" is not supported"))),
    }
    Ok(())
}

/// A format's name, quoted or not.
fn format_name(parser: &mut Parser<'_>) -> SqlResult<String> {
    if parser.kind() == Some(Kind::Text) { parser.string() } else { parser.name() }
}
