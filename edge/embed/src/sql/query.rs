//! SELECT, VALUES, WITH, and what stands in FROM.

use super::parser::Parser;
use super::token::Kind;
use super::tree::{Arm, CommonTable, ExprId, FromItem, Item, Limit, Order, Query, QueryId, Source};
use crate::error::{SqlError, SqlResult};

impl Parser<'_> {
    /// Whether a query starts here, parentheses in front of it included.
    pub(crate) fn is_query_start(&self) -> bool {
        let at = self.behind_parentheses();
        self.is_query_word(at) && (at == self.at || self.closes_as_query(at))
    }

    /// Whether a query starts here where nothing else in parentheses could begin with a query.
    pub(crate) fn is_plain_query_start(&self) -> bool {
        self.is_query_word(self.behind_parentheses())
    }

    fn behind_parentheses(&self) -> usize {
        let mut at = self.at;
        while self.kind_at(at) == Some(Kind::Open) {
            at += 1;
        }
        at
    }

    fn is_query_word(&self, at: usize) -> bool {
        ["select", "values", "with", "table"].iter().any(|word| self.is_word_at(at, word))
    }

    /// `((select 1) + 1)` is an expression, `((select 1) union …)` a query: what follows the inner one tells.
    fn closes_as_query(&self, start: usize) -> bool {
        let mut depth = 1;
        let mut at = start;
        while depth > 0 {
            match self.kind_at(at) {
                Some(Kind::Open) => depth += 1,
                Some(Kind::Close) => depth -= 1,
                Some(_) => {}
                None => return true,
            }
            at += 1;
        }
        let continues = ["union", "intersect", "except", "order", "limit"];
        self.kind_at(at).is_none_or(|kind| kind == Kind::Close)
            || continues.iter().any(|word| self.is_word_at(at, word))
    }

    pub(crate) fn query(&mut self) -> SqlResult<QueryId> {
        self.deeper(Self::query_here)
    }

    fn query_here(&mut self) -> SqlResult<QueryId> {
        let mut query = Query { first: self.at, ..Query::default() };
        query.with = self.with_clause()?;
        query.arms.push(self.arm()?);
        while self.take_any_word(&["union", "intersect", "except"]) {
            self.take_any_word(&["all", "distinct"]);
            query.arms.push(self.arm()?);
        }
        if self.take_words(&["order", "by"]) {
            query.order = self.order_list()?;
        }
        query.limit = self.limit_clause()?;
        query.last = self.at - 1;
        self.tree.queries.push(query);
        Ok(self.tree.queries.len() - 1)
    }

    pub(crate) fn with_clause(&mut self) -> SqlResult<Vec<CommonTable>> {
        let mut tables = Vec::new();
        if !self.take_word("with") {
            return Ok(tables);
        }
        self.take_word("recursive");
        loop {
            let name = self.name()?;
            let columns = self.optional_names()?;
            self.expect_word("as")?;
            if self.take_word("not") {
                self.expect_word("materialized")?;
            } else {
                self.take_word("materialized");
            }
            self.expect(Kind::Open)?;
            if !self.is_query_start() {
                return Err(SqlError::unsupported("INSERT, UPDATE and DELETE inside WITH are not supported"));
            }
            let query = self.query()?;
            self.expect(Kind::Close)?;
            tables.push(CommonTable { name, columns, query });
            if !self.take(Kind::Comma) {
                return Ok(tables);
            }
        }
    }

    fn arm(&mut self) -> SqlResult<Arm> {
        let mut arm = Arm::default();
        if self.take(Kind::Open) {
            arm.nested = Some(self.query()?);
            self.expect(Kind::Close)?;
        } else if self.take_word("values") {
            loop {
                self.expect(Kind::Open)?;
                arm.rows.push(self.expressions()?);
                self.expect(Kind::Close)?;
                if !self.take(Kind::Comma) {
                    break;
                }
            }
        } else {
            self.expect_word("select")?;
            self.select(&mut arm)?;
        }
        Ok(arm)
    }

    fn select(&mut self, arm: &mut Arm) -> SqlResult<()> {
        if self.take_word("distinct") {
            if self.is_word("on") {
                return Err(SqlError::unsupported("SELECT DISTINCT ON is not supported"));
            }
        } else {
            self.take_word("all");
        }
        let is_empty = self.is_at_end() || self.is_word("from") || self.kind() == Some(Kind::Close);
        if is_empty {
            return Err(SqlError::unsupported("SELECT without columns is not supported"));
        }
        arm.items = self.items()?;
        if self.is_word("into") {
            return Err(SqlError::unsupported("SELECT INTO is not supported").hint("Use CREATE TABLE AS."));
        }
        if self.take_word("from") {
            self.table_list(arm)?;
        }
        arm.from_end = self.at - 1;
        if self.take_word("where") {
            let condition = self.expression()?;
            arm.conditions.push(condition);
        }
        if self.take_words(&["group", "by"]) {
            arm.groups = self.expressions()?;
        }
        if self.take_word("having") {
            let condition = self.expression()?;
            arm.conditions.push(condition);
        }
        if self.take_word("window") {
            self.window_definitions()?;
        }
        Ok(())
    }

    fn window_definitions(&mut self) -> SqlResult<()> {
        loop {
            self.name()?;
            self.expect_word("as")?;
            self.expect(Kind::Open)?;
            self.skip_to_close()?;
            if !self.take(Kind::Comma) {
                return Ok(());
            }
        }
    }

    /// The select list, or that of RETURNING.
    pub(crate) fn items(&mut self) -> SqlResult<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            let expr = self.expression()?;
            let alias = if self.take_word("as") {
                Some(self.name()?)
            } else {
                let is_name = matches!(self.kind(), Some(Kind::Word | Kind::QuotedName));
                if is_name && !self.is_clause_word(self.at) { Some(self.name()?) } else { None }
            };
            items.push(Item { expr, alias });
            if !self.take(Kind::Comma) {
                return Ok(items);
            }
        }
    }

    /// Words that cannot be an alias without AS.
    fn is_clause_word(&self, at: usize) -> bool {
        self.is_reserved(at)
            || ["window", "tablesample", "lateral", "values"].iter().any(|word| self.is_word_at(at, word))
    }

    pub(crate) fn table_list(&mut self, arm: &mut Arm) -> SqlResult<()> {
        loop {
            self.join_tree(arm)?;
            if !self.take(Kind::Comma) {
                return Ok(());
            }
        }
    }

    fn join_tree(&mut self, arm: &mut Arm) -> SqlResult<()> {
        self.deeper(|parser| parser.table_item(arm))?;
        loop {
            // What may follow such a join with ON is an INSERT's ON CONFLICT.
            let is_natural = self.take_word("natural");
            let is_cross = self.take_word("cross");
            let is_joined = is_cross || self.take_any_word(&["inner", "left", "right", "full"]);
            self.take_word("outer");
            if !self.take_word("join") {
                return if is_joined { Err(self.syntax_error()) } else { Ok(()) };
            }
            self.deeper(|parser| parser.table_item(arm))?;
            if is_natural || is_cross {
                continue;
            }
            if self.take_word("on") {
                let condition = self.expression()?;
                arm.conditions.push(condition);
            } else if self.take_word("using") {
                self.optional_names()?;
            }
        }
    }

    fn table_item(&mut self, arm: &mut Arm) -> SqlResult<()> {
        let first = self.at;
        if self.is_word("lateral") {
            return Err(SqlError::unsupported("LATERAL is not supported"));
        }
        let source = if self.take(Kind::Open) {
            if !self.is_query_start() {
                self.join_tree(arm)?;
                return self.expect(Kind::Close);
            }
            let query = self.query()?;
            self.expect(Kind::Close)?;
            Source::Query(query)
        } else {
            self.take_word("only");
            let name_at = self.at;
            let (schema, name) = self.qualified_name()?;
            if self.kind() == Some(Kind::Open) {
                self.at = name_at;
                Source::Function(self.expression()?)
            } else {
                self.take_operator("*");
                Source::Table { schema, name }
            }
        };
        let is_numbered = self.take_words(&["with", "ordinality"]);
        let alias = if self.take_word("as") {
            Some(self.name()?)
        } else {
            let is_name = matches!(self.kind(), Some(Kind::Word | Kind::QuotedName));
            if is_name && !self.is_clause_word(self.at) { Some(self.name()?) } else { None }
        };
        let columns = if alias.is_some() { self.optional_names()? } else { Vec::new() };
        arm.from.push(FromItem { source, alias, columns, is_numbered, first, last: self.at - 1 });
        Ok(())
    }

    pub(crate) fn order_list(&mut self) -> SqlResult<Vec<Order>> {
        let mut list = Vec::new();
        loop {
            let expr = self.expression()?;
            let is_descending = self.is_word("desc");
            self.take_any_word(&["asc", "desc"]);
            let has_nulls = self.take_word("nulls");
            if has_nulls && !self.take_any_word(&["first", "last"]) {
                return Err(self.syntax_error());
            }
            list.push(Order { expr, is_descending, has_nulls, last: self.at - 1 });
            if !self.take(Kind::Comma) {
                return Ok(list);
            }
        }
    }

    /// LIMIT, OFFSET, FETCH FIRST and FOR UPDATE, in any order.
    fn limit_clause(&mut self) -> SqlResult<Option<Limit>> {
        let first = self.at;
        let mut limit = Limit { count: None, is_one: false, offset: None, first, last: first };
        loop {
            if self.take_word("limit") {
                limit.count = if self.take_word("all") { None } else { Some(self.expression()?) };
            } else if self.take_word("offset") {
                limit.offset = Some(self.expression()?);
                self.take_any_word(&["row", "rows"]);
            } else if self.take_word("fetch") {
                limit.count = self.fetch_count()?;
                limit.is_one = limit.count.is_none();
            } else if self.is_word("for") {
                self.locking_clause()?;
            } else {
                break;
            }
        }
        limit.last = self.at.saturating_sub(1);
        Ok((self.at > first).then_some(limit))
    }

    /// What stands behind FETCH; `None` is one row.
    fn fetch_count(&mut self) -> SqlResult<Option<ExprId>> {
        if !self.take_any_word(&["first", "next"]) {
            return Err(self.syntax_error());
        }
        let has_count = !self.is_word("row") && !self.is_word("rows");
        let count = if has_count { Some(self.expression()?) } else { None };
        if !self.take_any_word(&["row", "rows"]) {
            return Err(self.syntax_error());
        }
        self.expect_word("only")?;
        Ok(count)
    }

    /// Row locks mean nothing to a database with one writer.
    fn locking_clause(&mut self) -> SqlResult<()> {
        self.expect_word("for")?;
        if self.take_word("no") {
            self.expect_word("key")?;
        } else {
            self.take_word("key");
        }
        if !self.take_any_word(&["update", "share"]) {
            return Err(self.syntax_error());
        }
        if self.take_word("of") {
            self.qualified_name()?;
            while self.take(Kind::Comma) {
                self.qualified_name()?;
            }
        }
        if !self.take_word("nowait") {
            self.take_words(&["skip", "locked"]);
        }
        Ok(())
    }
}
