//! Expressions by PostgreSQL's precedences.

use super::parser::Parser;
use super::token::Kind;
use super::tree::{ExprId, Node, Op, Quantity};
use crate::error::SqlResult;
use crate::types::Base;

/// Binding strength of operators, weakest first (manual, "Operator Precedence").
pub(super) mod strength {
    pub(in crate::sql) const OR: u8 = 1;
    pub(in crate::sql) const AND: u8 = 2;
    pub(in crate::sql) const NOT: u8 = 3;
    pub(in crate::sql) const IS: u8 = 4;
    pub(in crate::sql) const COMPARE: u8 = 5;
    pub(in crate::sql) const RANGE: u8 = 6;
    pub(in crate::sql) const OTHER: u8 = 7;
    pub(in crate::sql) const ADD: u8 = 8;
    pub(in crate::sql) const MULTIPLY: u8 = 9;
    pub(in crate::sql) const POWER: u8 = 10;
    pub(in crate::sql) const ZONE: u8 = 11;
    pub(in crate::sql) const COLLATE: u8 = 12;
    pub(in crate::sql) const SIGN: u8 = 13;
}

/// Words that end an expression or an alias-less item; none of them names a column unless quoted.
const RESERVED: [&str; 45] = [
    "all",
    "and",
    "any",
    "as",
    "asc",
    "case",
    "check",
    "collate",
    "cross",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "fetch",
    "for",
    "from",
    "full",
    "group",
    "having",
    "ilike",
    "in",
    "inner",
    "intersect",
    "into",
    "is",
    "join",
    "left",
    "like",
    "limit",
    "natural",
    "not",
    "offset",
    "on",
    "or",
    "order",
    "returning",
    "right",
    "set",
    "then",
    "union",
    "using",
    "when",
    "where",
];

/// Functions that SQL writes without parentheses.
const BARE_FUNCTIONS: [&str; 12] = [
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "system_user",
    "user",
];

/// Types that are written in front of a string: `date '2024-01-01'`.
const LITERAL_TYPES: [&str; 14] = [
    "bool",
    "boolean",
    "bytea",
    "date",
    "float8",
    "int4",
    "int8",
    "interval",
    "json",
    "numeric",
    "text",
    "time",
    "timestamp",
    "timestamptz",
];

impl Parser<'_> {
    pub(crate) fn expression(&mut self) -> SqlResult<ExprId> {
        self.deeper(|parser| parser.operators(0))
    }

    /// Expressions with commas between.
    pub(crate) fn expressions(&mut self) -> SqlResult<Vec<ExprId>> {
        let mut list = vec![self.expression()?];
        while self.take(Kind::Comma) {
            list.push(self.expression()?);
        }
        Ok(list)
    }

    pub(super) fn is_reserved(&self, at: usize) -> bool {
        self.kind_at(at) == Some(Kind::Word)
            && RESERVED.iter().any(|word| self.token_text(at).eq_ignore_ascii_case(word))
    }

    pub(super) fn operators(&mut self, weakest: u8) -> SqlResult<ExprId> {
        let first = self.at;
        let mut left = self.prefix()?;
        while let Some(next) = self.infix(left, first, weakest)? {
            left = next;
        }
        Ok(left)
    }

    fn prefix(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        if self.take_word("not") {
            let arg = self.deeper(|parser| parser.operators(strength::NOT))?;
            return Ok(self.add(Node::Not(arg), first));
        }
        if self.take_operator("-") || self.take_operator("+") || self.take_operator("~") {
            let arg = self.deeper(|parser| parser.operators(strength::SIGN))?;
            return Ok(self.add(Node::Sign(arg), first));
        }
        let primary = self.primary()?;
        self.postfix(primary, first)
    }

    /// Casts and subscripts behind a primary expression.
    fn postfix(&mut self, mut left: ExprId, first: usize) -> SqlResult<ExprId> {
        loop {
            if self.take(Kind::Cast) {
                let ty = self.type_name()?;
                left = self.add(Node::Cast { arg: left, ty }, first);
            } else if self.kind() == Some(Kind::OpenBracket) {
                self.at += 1;
                let index = self.expression()?;
                self.expect(Kind::CloseBracket)?;
                left = self.add(Node::Subscript { arg: left, index }, first);
            } else {
                return Ok(left);
            }
        }
    }

    /// One operator and its right side; `None` where the next operator binds no stronger than `weakest`.
    fn infix(&mut self, left: ExprId, first: usize, weakest: u8) -> SqlResult<Option<ExprId>> {
        let at = self.at;
        match self.kind() {
            Some(Kind::Operator) => self.symbol(left, first, weakest),
            Some(Kind::Word) => {
                let found = self.word_operator(left, first, weakest)?;
                if found.is_none() {
                    self.at = at;
                }
                Ok(found)
            }
            _ => Ok(None),
        }
    }

    fn symbol(&mut self, left: ExprId, first: usize, weakest: u8) -> SqlResult<Option<ExprId>> {
        let (op, binding) = symbol_meaning(self.token_text(self.at));
        if binding <= weakest {
            return Ok(None);
        }
        let at = self.at;
        self.at += 1;
        if let Some(is_all) = self.quantifier() {
            return self.quantified(left, first, at, is_all).map(Some);
        }
        self.binary(left, first, (op, at, at), binding).map(Some)
    }

    fn binary(
        &mut self,
        left: ExprId,
        first: usize,
        op: (Op, usize, usize),
        binding: u8,
    ) -> SqlResult<ExprId> {
        let right = self.deeper(|parser| parser.operators(binding))?;
        let (op, at, at_last) = op;
        Ok(self.add(Node::Binary { op, at, at_last, left, right }, first))
    }

    fn quantifier(&mut self) -> Option<bool> {
        let is_call = self.kind_at(self.at + 1) == Some(Kind::Open);
        if is_call && self.take_any_word(&["any", "some"]) {
            Some(false)
        } else if is_call && self.take_word("all") {
            Some(true)
        } else {
            None
        }
    }

    fn quantified(&mut self, left: ExprId, first: usize, at: usize, is_all: bool) -> SqlResult<ExprId> {
        self.expect(Kind::Open)?;
        let right = if self.is_query_start() {
            Quantity::Query(self.query()?)
        } else {
            Quantity::Array(self.expression()?)
        };
        self.expect(Kind::Close)?;
        Ok(self.add(Node::Quantified { left, at, is_all, right }, first))
    }

    fn word_operator(&mut self, left: ExprId, first: usize, weakest: u8) -> SqlResult<Option<ExprId>> {
        let at = self.at;
        let binds = |binding: u8| binding > weakest;
        if binds(strength::OR) && self.take_word("or") {
            return self.binary(left, first, (Op::Or, at, at), strength::OR).map(Some);
        }
        if binds(strength::AND) && self.take_word("and") {
            return self.binary(left, first, (Op::And, at, at), strength::AND).map(Some);
        }
        if binds(strength::IS) && self.take_any_word(&["is", "isnull", "notnull"]) {
            return self.test(left, first, at).map(Some);
        }
        if binds(strength::COLLATE) && self.take_word("collate") {
            self.qualified_name()?;
            return Ok(Some(self.add(Node::Collate { arg: left, at }, first)));
        }
        if binds(strength::ZONE) && self.take_words(&["at", "time", "zone"]) {
            let zone = self.deeper(|parser| parser.operators(strength::ZONE))?;
            return Ok(Some(self.add(Node::AtTimeZone { arg: left, zone }, first)));
        }
        if binds(strength::OTHER) && self.is_word("operator") && self.kind_at(at + 1) == Some(Kind::Open) {
            return self.qualified_operator(left, first).map(Some);
        }
        if binds(strength::RANGE) { self.range(left, first, at) } else { Ok(None) }
    }

    /// `OPERATOR(pg_catalog.~)`
    fn qualified_operator(&mut self, left: ExprId, first: usize) -> SqlResult<ExprId> {
        let at = self.at;
        self.at += 2;
        while self.kind_at(self.at + 1) == Some(Kind::Dot) {
            self.name()?;
            self.expect(Kind::Dot)?;
        }
        let (op, _) = symbol_meaning(self.token_text(self.at));
        self.expect(Kind::Operator)?;
        self.expect(Kind::Close)?;
        self.binary(left, first, (op, at, self.at - 1), strength::OTHER)
    }

    fn test(&mut self, left: ExprId, first: usize, at: usize) -> SqlResult<ExprId> {
        if self.is_word_at(at, "is") {
            self.take_word("not");
            if self.take_words(&["distinct", "from"]) {
                return self.binary(left, first, (Op::Distinct, at, self.at - 1), strength::IS);
            }
            if !self.take_any_word(&["null", "true", "false", "unknown"]) {
                return Err(self.syntax_error());
            }
        }
        Ok(self.add(Node::Test { arg: left }, first))
    }

    /// BETWEEN, IN, LIKE and ILIKE, with or without NOT.
    fn range(&mut self, left: ExprId, first: usize, at: usize) -> SqlResult<Option<ExprId>> {
        let is_negated = self.take_word("not");
        if self.take_word("between") {
            self.take_word("symmetric");
            let low = self.deeper(|parser| parser.operators(strength::RANGE))?;
            self.expect_word("and")?;
            let high = self.deeper(|parser| parser.operators(strength::RANGE))?;
            return Ok(Some(self.add(Node::Between { arg: left, low, high }, first)));
        }
        if self.take_word("in") {
            self.expect(Kind::Open)?;
            let node = if self.is_query_start() {
                Node::InQuery { arg: left, query: self.query()? }
            } else {
                Node::InList { arg: left, list: self.expressions()? }
            };
            self.expect(Kind::Close)?;
            return Ok(Some(self.add(node, first)));
        }
        let ignores_case = self.is_word("ilike");
        if self.take_any_word(&["like", "ilike"]) {
            let at_last = self.at - 1;
            if let Some(is_all) = self.quantifier() {
                return self.quantified(left, first, at, is_all).map(Some);
            }
            let right = self.deeper(|parser| parser.operators(strength::RANGE))?;
            let has_escape = self.take_word("escape");
            let op = Op::Like { is_negated, ignores_case, has_escape };
            if has_escape {
                let _escape = self.deeper(|parser| parser.operators(strength::RANGE))?;
            }
            return Ok(Some(self.add(Node::Binary { op, at, at_last, left, right }, first)));
        }
        Ok(None)
    }

    fn primary(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        match self.kind() {
            Some(Kind::Integer) => Ok(self.leaf(Node::Integer)),
            Some(Kind::Decimal) => Ok(self.leaf(Node::Decimal)),
            Some(Kind::Text | Kind::EscapeText | Kind::DollarText) => {
                let text = self.string()?;
                Ok(self.add(Node::Text(text), first))
            }
            Some(Kind::Parameter) => match self.token_text(first)[1..].parse() {
                Ok(number @ 1..=65_535) => Ok(self.leaf(Node::Parameter(number))),
                _ => Err(self.syntax_error()),
            },
            Some(Kind::Open) => self.parenthesis(),
            Some(Kind::Word) => self.word(),
            Some(Kind::QuotedName) => self.name_or_call(),
            Some(Kind::Operator) if self.is_operator("*") => Ok(self.leaf(Node::Star { table: None })),
            _ => Err(self.syntax_error()),
        }
    }

    fn leaf(&mut self, node: Node) -> ExprId {
        self.at += 1;
        self.add(node, self.at - 1)
    }

    fn parenthesis(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        self.at += 1;
        if self.is_query_start() {
            let query = self.query()?;
            self.expect(Kind::Close)?;
            return Ok(self.add(Node::Scalar(query), first));
        }
        let mut list = self.expressions()?;
        self.expect(Kind::Close)?;
        let node = match list.pop() {
            Some(only) if list.is_empty() => Node::Paren(only),
            Some(last) => {
                list.push(last);
                Node::Row(list)
            }
            None => return Err(self.syntax_error()),
        };
        Ok(self.add(node, first))
    }

    fn word(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        let word = self.token_text(first).to_ascii_lowercase();
        let next = self.kind_at(first + 1);
        match word.as_str() {
            "null" => Ok(self.leaf(Node::Null)),
            "true" | "false" => Ok(self.leaf(Node::Bool)),
            "case" => self.case(),
            "cast" if next == Some(Kind::Open) => self.cast(),
            "exists" if next == Some(Kind::Open) => {
                self.at += 2;
                let query = self.query()?;
                self.expect(Kind::Close)?;
                Ok(self.add(Node::Exists(query), first))
            }
            "array" if matches!(next, Some(Kind::Open | Kind::OpenBracket)) => self.array(),
            "row" if next == Some(Kind::Open) => {
                self.at += 2;
                let list = self.expressions()?;
                self.expect(Kind::Close)?;
                Ok(self.add(Node::Row(list), first))
            }
            word if BARE_FUNCTIONS.contains(&word) && next != Some(Kind::Open) && next != Some(Kind::Dot) => {
                self.at += 1;
                Ok(self.call_node(word, Vec::new(), first))
            }
            "current_timestamp" | "current_time" | "localtimestamp" | "localtime" => {
                self.at += 2;
                self.expect(Kind::Integer)?;
                self.expect(Kind::Close)?;
                let node = self.call_node(&word, Vec::new(), first);
                Ok(node)
            }
            word if LITERAL_TYPES.contains(&word) => self.typed_literal(),
            "double" if self.is_word_at(first + 1, "precision") => self.typed_literal(),
            _ if self.is_reserved(first) && next != Some(Kind::Open) => Err(self.syntax_error()),
            _ => self.name_or_call(),
        }
    }

    /// `type 'text'`, where a string follows; otherwise the word is a name.
    fn typed_literal(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        if let Ok(Some(ty)) = self.optional_type_name() {
            if matches!(self.kind(), Some(Kind::Text | Kind::EscapeText | Kind::DollarText)) {
                let text = self.string()?;
                if ty.base == Base::Interval {
                    self.take_any_word(&["year", "month", "day", "hour", "minute", "second"]);
                }
                return Ok(self.add(Node::Typed { ty, text }, first));
            }
        }
        self.at = first;
        self.name_or_call()
    }

    fn case(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        self.at += 1;
        let operand = if self.is_word("when") { None } else { Some(self.expression()?) };
        let mut branches = Vec::new();
        while self.take_word("when") {
            let condition = self.expression()?;
            self.expect_word("then")?;
            branches.push((condition, self.expression()?));
        }
        let otherwise = if self.take_word("else") { Some(self.expression()?) } else { None };
        self.expect_word("end")?;
        Ok(self.add(Node::Case { operand, branches, otherwise }, first))
    }

    fn cast(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        self.at += 2;
        let arg = self.expression()?;
        self.expect_word("as")?;
        let ty = self.type_name()?;
        self.expect(Kind::Close)?;
        Ok(self.add(Node::Cast { arg, ty }, first))
    }

    fn array(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        self.at += 1;
        if self.take(Kind::Open) {
            let query = self.query()?;
            self.expect(Kind::Close)?;
            return Ok(self.add(Node::ArrayOf(query), first));
        }
        self.expect(Kind::OpenBracket)?;
        let list = if self.kind() == Some(Kind::CloseBracket) { Vec::new() } else { self.expressions()? };
        self.expect(Kind::CloseBracket)?;
        Ok(self.add(Node::ArrayList(list), first))
    }

    /// A column, `table.*`, or a function call.
    fn name_or_call(&mut self) -> SqlResult<ExprId> {
        let first = self.at;
        let mut table = None;
        let mut name = self.name()?;
        while self.take(Kind::Dot) {
            if self.take_operator("*") {
                return Ok(self.add(Node::Star { table: Some(name) }, first));
            }
            table = Some(std::mem::replace(&mut name, self.name()?));
        }
        if self.kind() == Some(Kind::Open) {
            return self.call(&name, first);
        }
        Ok(self.add(Node::Column { table, name }, first))
    }
}

fn symbol_meaning(symbol: &str) -> (Op, u8) {
    match symbol {
        "=" | "<>" | "!=" | "<" | ">" | "<=" | ">=" | "==" => (Op::Compare, strength::COMPARE),
        "+" => (Op::Add, strength::ADD),
        "-" => (Op::Subtract, strength::ADD),
        "*" => (Op::Multiply, strength::MULTIPLY),
        "/" => (Op::Divide, strength::MULTIPLY),
        "%" => (Op::Modulo, strength::MULTIPLY),
        "^" => (Op::Power, strength::POWER),
        "||" => (Op::Concat, strength::OTHER),
        "~" | "~*" | "!~" | "!~*" => {
            let op = Op::Regex { is_negated: symbol.starts_with('!'), ignores_case: symbol.ends_with('*') };
            (op, strength::OTHER)
        }
        "~~" | "~~*" | "!~~" | "!~~*" => {
            let (is_negated, ignores_case) = (symbol.starts_with('!'), symbol.ends_with('*'));
            (Op::Like { is_negated, ignores_case, has_escape: false }, strength::OTHER)
        }
        "->" => (Op::Json, strength::OTHER),
        "->>" => (Op::JsonText, strength::OTHER),
        "&" | "|" | "<<" | ">>" => (Op::Bits, strength::OTHER),
        _ => (Op::Other, strength::OTHER),
    }
}
