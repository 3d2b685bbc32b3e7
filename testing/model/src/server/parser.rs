//! From words to statements.

use std::sync::Arc;

use onetrip_sql::purity::{Lookup, SessionQuestion};

use super::failure::Failure;
use super::lexer::{Token, tokens};
use super::schema::{self, TABLES, Table};
use super::syntax::{
    Change, Expression, Insert, Item, Level, Modes, Operator, Question, Rows, Select, Statement,
};
use super::value::Type;

/// The statements of a text; those that are empty are left out.
pub(crate) fn parse(text: &str) -> Result<Vec<Statement>, Failure> {
    if let Some(question) = question(text) {
        return Ok(vec![Statement::Question(question)]);
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, table: None };
    let mut out = Vec::new();
    loop {
        while parser.takes(";") {}
        if parser.at == parser.tokens.len() {
            return Ok(out);
        }
        out.push(parser.statement()?);
        if parser.at < parser.tokens.len() && !parser.takes(";") {
            return Err(parser.bad());
        }
    }
}

fn question(text: &str) -> Option<Question> {
    let about_session = || SessionQuestion::of_sql(text).map(Question::Session);
    Lookup::of_sql(text).map(Question::Lookup).or_else(about_session)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// What columns are of.
    table: Option<Table>,
}

impl Parser {
    fn bad(&self) -> Failure {
        match self.tokens.get(self.at) {
            Some(token) => Failure::new("42601", format!("syntax error at or near \"{token:?}\"")),
            None => Failure::new("42601", "syntax error at end of input"),
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Sign(one)) if *one == sign);
        self.at += usize::from(is);
        is
    }

    fn needs(&mut self, sign: &str) -> Result<(), Failure> {
        if self.takes(sign) { Ok(()) } else { Err(self.bad()) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(one)) if one == word)
    }

    /// Takes these words, or none of them.
    fn word(&mut self, words: &str) -> bool {
        let start = self.at;
        for word in words.split(' ') {
            if !self.is_word(word) {
                self.at = start;
                return false;
            }
            self.at += 1;
        }
        true
    }

    fn expect(&mut self, words: &str) -> Result<(), Failure> {
        if self.word(words) { Ok(()) } else { Err(self.bad()) }
    }

    fn any_of(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.word(word))
    }

    fn name(&mut self) -> Result<String, Failure> {
        let name = match self.peek() {
            Some(Token::Word(name) | Token::Quoted(name)) => name.clone(),
            _ => return Err(self.bad()),
        };
        self.at += 1;
        Ok(name)
    }

    fn number(&mut self) -> Result<i64, Failure> {
        let Some(Token::Number(number)) = self.peek() else { return Err(self.bad()) };
        let number = *number;
        self.at += 1;
        Ok(number)
    }

    fn text(&mut self) -> Result<String, Failure> {
        let Some(Token::Text(text)) = self.peek() else { return Err(self.bad()) };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }

    fn statement(&mut self) -> Result<Statement, Failure> {
        self.table = None;
        let verb = match self.peek() {
            Some(Token::Word(verb)) => verb.clone(),
            _ => return Err(self.bad()),
        };
        match verb.as_str() {
            "select" => Ok(Statement::Select(Arc::new(self.select()?))),
            "insert" => self.insert(),
            "update" | "delete" => self.change(),
            "set" | "show" | "reset" => self.setting(),
            "declare" | "fetch" | "move" | "close" => self.cursor(),
            "deallocate" => {
                self.at += 1;
                self.word("prepare");
                Ok(Statement::Deallocate(if self.word("all") { None } else { Some(self.name()?) }))
            }
            "discard" => self.expect("discard all").map(|()| Statement::DiscardAll),
            "alter" => {
                self.expect("alter table w alter column v type")?;
                let is_wide = self.word("bigint");
                if is_wide { Ok(()) } else { self.expect("integer") }?;
                Ok(Statement::Alter { is_wide })
            }
            "lock" => self.lock(),
            _ => self.transaction(),
        }
    }

    fn transaction(&mut self) -> Result<Statement, Failure> {
        let starts = self.word("start transaction");
        if starts || self.word("begin") {
            if !starts {
                self.any_of(&["work", "transaction"]);
            }
            return Ok(Statement::Begin { modes: self.modes()?, starts });
        }
        if self.word("savepoint") {
            return Ok(Statement::Savepoint(self.name()?));
        }
        if self.word("release") {
            self.word("savepoint");
            return Ok(Statement::Release(self.name()?));
        }
        let is_commit = self.any_of(&["commit", "end"]);
        if !is_commit && !self.any_of(&["rollback", "abort"]) {
            return Err(self.bad());
        }
        self.any_of(&["work", "transaction"]);
        if !is_commit && self.word("to") {
            self.word("savepoint");
            return Ok(Statement::RollbackTo(self.name()?));
        }
        let chain = self.word("and chain");
        if !chain {
            self.word("and no chain");
        }
        Ok(if is_commit { Statement::Commit { chain } } else { Statement::Rollback { chain } })
    }

    fn modes(&mut self) -> Result<Modes, Failure> {
        let mut modes = Modes::default();
        loop {
            if self.word("isolation level") {
                modes.level = Some(match () {
                    () if self.word("read committed") => Level::ReadCommitted,
                    () if self.word("repeatable read") => Level::RepeatableRead,
                    () if self.word("serializable") => Level::Serializable,
                    () => return Err(Failure::unknown("this isolation level")),
                });
            } else if self.word("read only") {
                modes.read_only = Some(true);
            } else if self.word("read write") {
                modes.read_only = Some(false);
            } else if self.any_of(&["not deferrable", "deferrable"]) {
                // It only waits at SERIALIZABLE.
            } else if !self.takes(",") {
                return Ok(modes);
            }
        }
    }

    fn setting(&mut self) -> Result<Statement, Failure> {
        if self.word("show") {
            return Ok(Statement::Show(self.name()?));
        }
        if self.word("reset") {
            return Ok(match self.word("all") {
                true => Statement::ResetAll,
                false => Statement::Set { name: self.name()?, value: None, is_local: false },
            });
        }
        self.expect("set")?;
        if self.word("transaction") {
            return Ok(Statement::SetTransaction(self.modes()?));
        }
        let is_local = self.word("local");
        self.word("session");
        let name = self.name()?;
        if !self.takes("=") {
            self.expect("to")?;
        }
        let value = match self.peek() {
            Some(Token::Number(_)) => self.number()?.to_string(),
            Some(Token::Text(_)) => self.text()?,
            _ => self.name()?,
        };
        Ok(Statement::Set { name, value: Some(value), is_local })
    }

    fn cursor(&mut self) -> Result<Statement, Failure> {
        if self.word("close") {
            return Ok(Statement::Close(if self.word("all") { None } else { Some(self.name()?) }));
        }
        if self.word("declare") {
            let name = self.name()?;
            let scroll = match () {
                () if self.word("no scroll") => Some(false),
                () if self.word("scroll") => Some(true),
                () => None,
            };
            self.expect("cursor")?;
            let holds = self.word("with hold");
            if !holds {
                self.word("without hold");
            }
            self.expect("for")?;
            let select = Arc::new(self.select()?);
            return Ok(Statement::Declare { name, holds, scroll, select });
        }
        let is_move = self.word("move");
        if !is_move {
            self.expect("fetch")?;
        }
        let rows = match () {
            () if self.word("all") || self.word("forward all") => Rows::All,
            () if self.word("backward") => Rows::Backward(self.number()? as usize),
            () if self.word("absolute") => Rows::Absolute(self.number()? as usize),
            () => {
                self.word("forward");
                match self.peek() {
                    Some(Token::Number(_)) => Rows::Forward(self.number()? as usize),
                    _ => Rows::Forward(1),
                }
            }
        };
        self.any_of(&["from", "in"]);
        Ok(Statement::Fetch { name: self.name()?, rows, is_move })
    }

    fn lock(&mut self) -> Result<Statement, Failure> {
        self.expect("lock")?;
        self.word("table");
        let mut tables = vec![self.table_name()?];
        while self.takes(",") {
            tables.push(self.table_name()?);
        }
        let is_exclusive = !self.word("in access share mode");
        if is_exclusive {
            self.word("in access exclusive mode");
        }
        let nowait = self.word("nowait");
        Ok(Statement::Lock { tables, is_exclusive, nowait })
    }

    fn table_name(&mut self) -> Result<Table, Failure> {
        let name = self.name()?;
        schema::table_named(&name)
            .ok_or_else(|| Failure::new("42P01", format!("relation \"{name}\" does not exist")))
    }

    fn select(&mut self) -> Result<Select, Failure> {
        self.expect("select")?;
        // Columns are of a table that is named behind them.
        let items_at = self.at;
        let from = self.tokens[items_at..].iter().position(|token| *token == Token::Word("from".into()));
        let end = self.tokens[items_at..].iter().position(|token| *token == Token::Sign(";"));
        if let Some(from) = from.filter(|from| end.is_none_or(|end| *from < end)) {
            self.at = items_at + from + 1;
            self.table = Some(self.table_name()?);
            self.at = items_at;
        }
        let items = self.items()?;
        if self.table.is_some() {
            self.expect("from")?;
            self.name()?;
        }
        let condition = if self.word("where") { Some(self.expression()?) } else { None };
        let order = if self.word("order by") {
            let column = self.column()?;
            Some((column, self.word("desc")))
        } else {
            None
        };
        let limit = if self.word("limit") { Some(self.number()? as usize) } else { None };
        let locks = self.word("for update");
        Ok(Select { items, table: self.table, condition, order, limit, locks })
    }

    fn items(&mut self) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::new();
        loop {
            if self.takes("*") {
                let table = self.table.ok_or_else(|| self.bad())?;
                items.extend(TABLES[table].columns.iter().enumerate().map(|(place, (name, ..))| Item {
                    name: (*name).to_owned(),
                    expression: Expression::Column(place),
                }));
            } else {
                let start = self.at;
                let expression = self.expression()?;
                let name = self.name_of(&expression, start);
                items.push(Item { name, expression });
            }
            if !self.takes(",") {
                return Ok(items);
            }
        }
    }

    /// What the server calls a column that has no name.
    fn name_of(&self, expression: &Expression, start: usize) -> String {
        match (expression, &self.tokens[start]) {
            (Expression::Column(_) | Expression::Count | Expression::Max(_), Token::Word(name))
            | (
                Expression::Side(_)
                | Expression::TryLock(_)
                | Expression::SetConfig(..)
                | Expression::CurrentSetting(_)
                | Expression::UnlockAll
                | Expression::Moves,
                Token::Word(name),
            ) => match &self.tokens[self.at - 2..self.at] {
                _ if name == "pg_catalog" => "set_config".to_owned(),
                _ => name.clone(),
            },
            (Expression::Cast(kind, _), _) => match kind {
                Type::Int4 => "int4".to_owned(),
                Type::Int8 => "int8".to_owned(),
                Type::Text => "text".to_owned(),
                Type::Boolean => "bool".to_owned(),
                Type::Time => "timestamptz".to_owned(),
            },
            _ => "?column?".to_owned(),
        }
    }

    fn insert(&mut self) -> Result<Statement, Failure> {
        self.expect("insert into")?;
        let table = self.table_name()?;
        self.expect("values")?;
        let mut rows = Vec::new();
        loop {
            self.needs("(")?;
            let mut row = vec![self.expression()?];
            while self.takes(",") {
                row.push(self.expression()?);
            }
            self.needs(")")?;
            rows.push(row);
            if !self.takes(",") {
                break;
            }
        }
        self.table = Some(table);
        Ok(Statement::Insert(Arc::new(Insert { table, rows, returning: self.returning()? })))
    }

    fn change(&mut self) -> Result<Statement, Failure> {
        let is_update = self.word("update");
        if !is_update {
            self.expect("delete from")?;
        }
        let table = self.table_name()?;
        self.table = Some(table);
        let mut set = Vec::new();
        if is_update {
            self.expect("set")?;
            loop {
                let column = self.column()?;
                self.needs("=")?;
                set.push((column, self.expression()?));
                if !self.takes(",") {
                    break;
                }
            }
        }
        let condition = if self.word("where") { Some(self.expression()?) } else { None };
        let change = Arc::new(Change { table, set, condition, returning: self.returning()? });
        Ok(if is_update { Statement::Update(change) } else { Statement::Delete(change) })
    }

    fn returning(&mut self) -> Result<Vec<Item>, Failure> {
        if self.word("returning") { self.items() } else { Ok(Vec::new()) }
    }

    fn column(&mut self) -> Result<usize, Failure> {
        let name = self.name()?;
        self.column_named(&name)
    }

    fn column_named(&self, name: &str) -> Result<usize, Failure> {
        let column = self.table.and_then(|table| TABLES[table].column_named(name));
        column.ok_or_else(|| Failure::new("42703", format!("column \"{name}\" does not exist")))
    }

    fn expression(&mut self) -> Result<Expression, Failure> {
        self.level(0)
    }

    /// Operators that bind at least as strongly as this.
    fn level(&mut self, level: usize) -> Result<Expression, Failure> {
        const LEVELS: [&[(&str, Operator)]; 6] = [
            &[("or", Operator::Or)],
            &[("and", Operator::And)],
            &[
                ("=", Operator::Equal),
                ("<>", Operator::Unequal),
                ("<=", Operator::LessOrEqual),
                (">=", Operator::GreaterOrEqual),
                ("<", Operator::Less),
                (">", Operator::Greater),
            ],
            &[("||", Operator::Join)],
            &[("+", Operator::Add), ("-", Operator::Subtract)],
            &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)],
        ];
        let Some(operators) = LEVELS.get(level) else { return self.cast() };
        let mut left = self.level(level + 1)?;
        loop {
            if level == 2 && self.word("is") {
                let is_not = self.word("not");
                self.expect("null")?;
                left = Expression::IsNull(!is_not, Box::new(left));
                continue;
            }
            let found = operators.iter().find(|(name, _)| self.word(name) || self.takes(name));
            let Some((_, operator)) = found else { return Ok(left) };
            let right = self.level(level + 1)?;
            left = Expression::Binary(*operator, Box::new((left, right)));
        }
    }

    fn cast(&mut self) -> Result<Expression, Failure> {
        let mut inner = self.primary()?;
        while self.takes("::") {
            let kind = match self.name()?.as_str() {
                "int" | "int4" | "integer" => Type::Int4,
                "bigint" | "int8" => Type::Int8,
                "text" => Type::Text,
                other => return Err(Failure::unknown(other)),
            };
            inner = Expression::Cast(kind, Box::new(inner));
        }
        Ok(inner)
    }

    fn primary(&mut self) -> Result<Expression, Failure> {
        let token = self.peek().cloned().ok_or_else(|| self.bad())?;
        match token {
            Token::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.needs(")")?;
                Ok(inner)
            }
            Token::Sign("-") => {
                self.at += 1;
                Ok(Expression::Integer(-self.number()?))
            }
            Token::Number(number) => {
                self.at += 1;
                Ok(Expression::Integer(number))
            }
            Token::Text(text) => {
                self.at += 1;
                Ok(Expression::Text(text.into()))
            }
            Token::Parameter(place) => {
                self.at += 1;
                Ok(Expression::Parameter(place))
            }
            Token::Word(word) => self.named(&word),
            _ => Err(self.bad()),
        }
    }

    fn named(&mut self, word: &str) -> Result<Expression, Failure> {
        self.at += 1;
        if word == "pg_catalog" {
            self.needs(".")?;
            let function = self.name()?;
            return self.named_function(&function);
        }
        match word {
            "null" => Ok(Expression::Null),
            "true" => Ok(Expression::Boolean(true)),
            "false" => Ok(Expression::Boolean(false)),
            _ if matches!(self.peek(), Some(Token::Sign("("))) => self.named_function(word),
            _ => Ok(Expression::Column(self.column_named(word)?)),
        }
    }

    fn named_function(&mut self, function: &str) -> Result<Expression, Failure> {
        self.needs("(")?;
        let found = match function {
            "count" => {
                self.needs("*")?;
                Expression::Count
            }
            "max" => Expression::Max(self.column()?),
            "side" => Expression::Side(Box::new(self.expression()?)),
            "pg_try_advisory_lock" => Expression::TryLock(Box::new(self.expression()?)),
            "pg_advisory_unlock_all" => Expression::UnlockAll,
            "moves" => Expression::Moves,
            "current_setting" => Expression::CurrentSetting(self.text()?),
            "set_config" => {
                let name = self.text()?;
                self.needs(",")?;
                let value = self.text()?;
                self.needs(",")?;
                let is_local = self.name()? == "true";
                Expression::SetConfig(name.to_lowercase(), value, is_local)
            }
            _ => {
                let message = format!("function {function}() does not exist");
                return Err(Failure::new("42883", message));
            }
        };
        self.needs(")")?;
        Ok(found)
    }
}
