//! The type of every expression, and its notation in SQLite.

use super::analysis::{Analysis, Typed, unsupported_at};
use super::column::Column;
use super::functions::{common_type, result_type, sqlite_name};
use super::token::{Kind, quote_text};
use super::tree::{Call, Expr, ExprId, Node, Quantity, QueryId};
use crate::error::{SqlError, SqlResult};
use crate::types::{Base, SqlType};

/// Deepest expression, the queries around it counted.
const DEPTH_MAX: u32 = 1_000;

impl Analysis<'_> {
    /// The type of an expression; notes what must change in it.
    pub(crate) fn infer(&mut self, id: ExprId) -> SqlResult<Typed> {
        // A chain of operators is as deep as it is long; SQLite draws the line here too.
        if self.depth == DEPTH_MAX {
            return Err(
                SqlError::new("54001", "expression is nested too deeply").at(self.offset(self.first(id)))
            );
        }
        self.depth += 1;
        let typed = self.infer_here(id);
        self.depth -= 1;
        typed
    }

    fn infer_here(&mut self, id: ExprId) -> SqlResult<Typed> {
        let tree = self.tree;
        let expr = &tree.exprs[id];
        Ok(match &expr.node {
            Node::Null | Node::Star { .. } => Typed::UNKNOWN,
            Node::Bool => Typed { not_null: true, ..Typed::of(SqlType::BOOL) },
            Node::Integer => integer_literal(self.tokens[expr.first].text(self.text)),
            Node::Decimal => decimal_literal(self.tokens[expr.first].text(self.text)),
            Node::Text(text) => self.text_literal(expr.first, text),
            Node::Parameter(number) => {
                self.edits.replace(expr.first, format!("?{number}"));
                Typed::of(self.set_parameter(*number, SqlType::UNKNOWN))
            }
            Node::Column { table, name } => {
                self.drop_schema(id, 3);
                self.find_column(table.as_deref(), name).unwrap_or(Typed::UNKNOWN)
            }
            Node::Paren(inner) => self.infer(*inner)?,
            Node::Row(list) => self.row(expr.first, list)?,
            Node::Sign(arg) => self.sign(*arg)?,
            Node::Not(arg) => {
                self.condition(*arg)?;
                Typed::of(SqlType::BOOL)
            }
            Node::Binary { op, at, at_last, left, right } => {
                self.binary(*op, (*at, *at_last), *left, *right)?
            }
            Node::Cast { arg, ty } => self.cast(id, *arg, *ty)?,
            Node::Typed { ty, text } => {
                let literal = self.literal(*ty, text, self.offset(expr.first))?;
                self.edits.replace_range(expr.first, expr.last, literal);
                Typed::of(*ty)
            }
            Node::Call(call) => self.call(id, call)?,
            Node::Case { operand, branches, otherwise } => self.case(*operand, branches, *otherwise)?,
            Node::ArrayList(list) => self.array_list(expr, list)?,
            Node::Scalar(query) => self.scalar(*query)?,
            Node::ArrayOf(query) => self.array_of_query(expr.first, *query)?,
            Node::Subscript { arg, index } => self.subscript(expr.last, *arg, *index)?,
            Node::AtTimeZone { arg, zone } => self.at_time_zone(*arg, *zone)?,
            Node::Collate { arg, at } => {
                let typed = self.infer(*arg)?;
                self.edits.remove(*at..=expr.last);
                typed
            }
            Node::Exists(query) => self.query(*query).map(|_| Typed::of(SqlType::BOOL))?,
            Node::InList { arg, list } => {
                let all: Vec<_> = [*arg].into_iter().chain(list.iter().copied()).collect();
                self.unify(&all).map(|_| Typed::of(SqlType::BOOL))?
            }
            Node::InQuery { arg, query } => self.in_query(*arg, *query)?,
            Node::Between { arg, low, high } => {
                self.unify(&[*arg, *low, *high]).map(|_| Typed::of(SqlType::BOOL))?
            }
            Node::Test { arg } => self.test(expr.last, *arg)?,
            Node::Quantified { left, at, is_all, right } => {
                self.quantified(id, *left, *at, *is_all, *right)?
            }
        })
    }

    /// A string in whatever notation, at this token.
    fn text_literal(&mut self, at: usize, text: &str) -> Typed {
        if self.tokens[at].kind != Kind::Text {
            self.edits.replace(at, quote_text(text));
        }
        Typed::UNKNOWN
    }

    fn in_query(&mut self, arg: ExprId, query: QueryId) -> SqlResult<Typed> {
        let typed = self.infer(arg)?;
        let columns = self.query(query)?;
        if let [column] = columns.as_slice() {
            self.coerce(arg, typed, column.ty)?;
        }
        Ok(Typed::of(SqlType::BOOL))
    }

    /// `arg IS …`, its last token given.
    fn test(&mut self, last: usize, arg: ExprId) -> SqlResult<Typed> {
        self.infer(arg)?;
        if self.tokens[last].text(self.text).eq_ignore_ascii_case("unknown") {
            self.edits.replace(last, "NULL");
        }
        Ok(Typed::of(SqlType::BOOL))
    }

    fn row(&mut self, first: usize, list: &[ExprId]) -> SqlResult<Typed> {
        for element in list {
            self.infer(*element)?;
        }
        if self.tokens[first].kind == Kind::Word {
            self.edits.remove([first]); // ROW(…) is (…) in SQLite
        }
        Ok(Typed::UNKNOWN)
    }

    fn scalar(&mut self, query: QueryId) -> SqlResult<Typed> {
        let columns = self.query(query)?;
        let typed = |column: &Column| Typed { scale: column.scale, ..Typed::of(column.ty) };
        Ok(columns.first().map_or(Typed::UNKNOWN, typed))
    }

    /// `ARRAY(SELECT …)`, its first token given.
    fn array_of_query(&mut self, array: usize, query: QueryId) -> SqlResult<Typed> {
        let columns = self.query(query)?;
        let (first, last) = (self.tree.queries[query].first, self.tree.queries[query].last);
        self.edits.remove([array]);
        self.edits.before(first, "WITH onetrip_elements(v) AS (");
        self.edits.after(last, ") SELECT json_group_array(v) FROM onetrip_elements");
        Ok(array_of(columns.first().map_or(SqlType::TEXT, |column| column.ty)))
    }

    /// `ARRAY[…]`
    fn array_list(&mut self, expr: &Expr, list: &[ExprId]) -> SqlResult<Typed> {
        let element = self.unify(list)?;
        self.edits.remove([expr.first]);
        self.edits.replace(expr.first + 1, "json_array(");
        self.edits.replace(expr.last, ")");
        Ok(array_of(element))
    }

    /// `array[index]`, its closing bracket given.
    fn subscript(&mut self, close: usize, arg: ExprId, index: ExprId) -> SqlResult<Typed> {
        let typed = self.infer(arg)?;
        let index_typed = self.infer(index)?;
        self.coerce(index, index_typed, SqlType::INT4)?;
        let open = self.last(arg) + 1;
        self.edits.before(self.first(arg), "onetrip_element(");
        self.edits.replace(open, ",");
        self.edits.replace(close, ")");
        Ok(Typed::of(typed.ty.element()))
    }

    fn at_time_zone(&mut self, arg: ExprId, zone: ExprId) -> SqlResult<Typed> {
        let typed = self.infer(arg)?;
        let typed = self.coerce(arg, typed, SqlType::of(Base::Timestamptz))?;
        let zone_typed = self.infer(zone)?;
        self.coerce(zone, zone_typed, SqlType::TEXT)?;
        let (first, last) = (self.last(arg) + 1, self.first(zone) - 1);
        self.edits.remove(first..=last);
        self.edits.replace(first, format!(", {},", typed.ty.oid()));
        self.edits.before(self.first(arg), "onetrip_at_time_zone(");
        self.edits.after(self.last(zone), ")");
        let has_zone = typed.ty.base == Base::Timestamptz;
        Ok(Typed::of(SqlType::of(if has_zone { Base::Timestamp } else { Base::Timestamptz })))
    }

    /// Gives expressions that must agree one type, and says which.
    pub(super) fn unify(&mut self, list: &[ExprId]) -> SqlResult<SqlType> {
        let typed = list.iter().map(|id| self.infer(*id)).collect::<SqlResult<Vec<_>>>()?;
        let common = typed.iter().fold(SqlType::UNKNOWN, |ty, typed| common_type(ty, typed.ty));
        let common = if common.is_unknown() { SqlType::TEXT } else { common };
        for (id, typed) in list.iter().zip(typed) {
            let coerced = self.coerce(*id, typed, common.without_modifier())?;
            if coerced.ty.base.is_moment() && common.base.is_moment() {
                self.convert(*id, coerced.ty, common, false);
            }
        }
        Ok(common)
    }

    fn case(
        &mut self,
        operand: Option<ExprId>,
        branches: &[(ExprId, ExprId)],
        otherwise: Option<ExprId>,
    ) -> SqlResult<Typed> {
        match operand {
            Some(operand) => {
                let mut compared = vec![operand];
                compared.extend(branches.iter().map(|(condition, _)| *condition));
                self.unify(&compared)?;
            }
            None => {
                for (condition, _) in branches {
                    self.condition(*condition)?;
                }
            }
        }
        let values: Vec<_> = branches.iter().map(|(_, value)| *value).chain(otherwise).collect();
        let typed = values.iter().map(|id| self.infer(*id)).collect::<SqlResult<Vec<_>>>()?;
        let ty = typed.iter().fold(SqlType::UNKNOWN, |ty, typed| common_type(ty, typed.ty));
        for (id, typed) in values.iter().zip(&typed) {
            self.coerce(*id, *typed, ty)?;
        }
        let scale = typed.iter().filter_map(|typed| typed.scale).max();
        Ok(Typed { ty, scale, not_null: false })
    }

    fn quantified(
        &mut self,
        id: ExprId,
        left: ExprId,
        at: usize,
        is_all: bool,
        right: Quantity,
    ) -> SqlResult<Typed> {
        let (first, last) = (self.tree.exprs[id].first, self.tree.exprs[id].last);
        let operator = self.tokens[at].text(self.text).to_ascii_uppercase();
        let left_typed = self.infer(left)?;
        let membership = match (operator.as_str(), is_all) {
            ("=", false) => Some("IN"),
            ("<>" | "!=", true) => Some("NOT IN"),
            _ => None,
        };
        let source = match right {
            Quantity::Query(query) => {
                let columns = self.query(query)?;
                let ty = columns.first().map_or(SqlType::UNKNOWN, |column| column.ty);
                self.coerce(left, left_typed, ty)?;
                let query = &self.tree.queries[query];
                format!(
                    "WITH onetrip_any(v) AS ({}) SELECT v FROM onetrip_any",
                    self.render(query.first, query.last)
                )
            }
            Quantity::Array(array) => {
                let typed = self.infer(array)?;
                let element = if left_typed.ty.is_unknown() { Base::Text } else { left_typed.ty.base };
                let typed = self.coerce(array, typed, SqlType::array_of(element))?;
                self.coerce(left, left_typed, typed.ty.element())?;
                format!(
                    "SELECT value AS v FROM json_each({})",
                    self.render(self.first(array), self.last(array))
                )
            }
        };
        let left_text = self.render(self.first(left), self.last(left));
        let text = match membership {
            Some(membership) => format!("{left_text} {membership} ({source})"),
            None if operator == "ILIKE" => {
                return Err(unsupported_at("ILIKE ANY is not supported", self.offset(at)));
            }
            None if is_all => {
                format!("NOT EXISTS (SELECT 1 FROM ({source}) WHERE NOT ({left_text} {operator} v))")
            }
            None => format!("EXISTS (SELECT 1 FROM ({source}) WHERE {left_text} {operator} v)"),
        };
        self.edits.replace_range(first, last, format!("({text})"));
        Ok(Typed::of(SqlType::BOOL))
    }

    fn call(&mut self, id: ExprId, call: &Call) -> SqlResult<Typed> {
        let mut typed = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            typed.push(self.infer(*arg)?);
        }
        for extra in &call.extras {
            self.infer(*extra)?;
        }
        self.coerce_arguments(call, &mut typed)?;
        let result = result_type(&call.name, &typed);
        let (first, last) = (self.first(id), self.last(id));
        // The schema in front of the name goes.
        if first < call.name_at {
            self.edits.remove(first..call.name_at);
        }
        if let Some(text) = self.call_without_arguments(call) {
            self.edits.remove(first..=last);
            self.edits.replace(first, text);
            return Ok(result);
        }
        if let Some(text) = self.trim_of_parts(call) {
            self.edits.replace_range(first, last, text);
            return Ok(result);
        }
        if let Some(text) = self.catalog_function(call) {
            self.uses_catalog = true;
            self.edits.replace_range(first, last, text);
            return Ok(result);
        }
        match call.name.as_str() {
            "onetrip_cast" => return Ok(self.internal_cast(call)),
            "round" | "floor" | "ceil" | "ceiling" | "trunc" | "json_group_array" => {}
            "extract" | "substring" | "position" => self.separators_to_commas(call),
            "array_agg" if call.extras.is_empty() && call.args.len() == 1 => {}
            _ => {}
        }
        if let Some(name) = sqlite_name(&call.name) {
            self.edits.replace(call.name_at, name);
        }
        Ok(result)
    }

    /// Types that the function's arguments must have, given to strings and parameters that have none.
    fn coerce_arguments(&mut self, call: &Call, typed: &mut [Typed]) -> SqlResult<()> {
        let common = typed.iter().fold(SqlType::UNKNOWN, |ty, typed| common_type(ty, typed.ty));
        for (index, id) in call.args.iter().enumerate() {
            let wanted = match (call.name.as_str(), index) {
                ("coalesce" | "nullif" | "greatest" | "least", _) => common,
                ("sum" | "avg" | "sqrt" | "power" | "exp" | "ln", _) => SqlType::of(Base::Float8),
                ("round", 0) => SqlType::of(Base::Numeric),
                (
                    "round" | "left" | "right" | "repeat" | "lpad" | "rpad" | "substr" | "substring"
                    | "split_part",
                    1,
                ) if !matches!(call.name.as_str(), "split_part") => SqlType::INT4,
                ("substr" | "substring" | "split_part", 2) => SqlType::INT4,
                ("pg_sleep", 0) => SqlType::of(Base::Float8),
                ("date_trunc" | "extract" | "date_part", 1) => SqlType::of(Base::Timestamp),
                ("count" | "min" | "max", _) => SqlType::TEXT,
                ("array_to_string" | "array_length" | "cardinality" | "unnest", 0) => {
                    SqlType::array_of(Base::Text)
                }
                ("array_length" | "array_upper" | "array_lower", 1) => SqlType::INT4,
                ("lag" | "lead", 1) => SqlType::INT4,
                _ => SqlType::TEXT,
            };
            typed[index] = self.coerce(*id, typed[index], wanted)?;
        }
        Ok(())
    }

    /// `f(a FROM b FOR c)` becomes `f(a, b, c)`; a bare field name becomes a string.
    fn separators_to_commas(&mut self, call: &Call) {
        for pair in call.args.windows(2) {
            let (end, start) = (self.last(pair[0]) + 1, self.first(pair[1]));
            if start == end + 1 {
                self.edits.replace(end, ",");
            }
        }
        if let (true, Some(field)) = (call.name == "extract", call.args.first()) {
            if let Node::Text(text) = &self.tree.exprs[*field].node {
                self.edits.replace(self.first(*field), quote_text(text));
            }
        }
    }

    /// Functions whose value the session knows, and those SQL writes without parentheses.
    fn call_without_arguments(&self, call: &Call) -> Option<String> {
        if !call.args.is_empty() || call.is_star {
            return None;
        }
        let moment = match call.name.as_str() {
            "now" | "current_timestamp" | "transaction_timestamp" => "timestamptz",
            "statement_timestamp" | "clock_timestamp" => "clock",
            "localtimestamp" => "timestamp",
            "current_date" => "date",
            "current_time" | "localtime" => "time",
            "current_user" | "session_user" | "user" | "current_role" | "current_catalog"
            | "current_schema" => {
                return Some(format!("onetrip_session('{}')", call.name));
            }
            _ => return None,
        };
        if self.is_stored {
            // Stored in the schema, it must work for SQLite alone.
            return Some(
                match moment {
                    "date" => "date('now')",
                    "time" => "time('now')",
                    "timestamp" => "strftime('%Y-%m-%d %H:%M:%f', 'now')",
                    _ => "strftime('%Y-%m-%d %H:%M:%f+00', 'now')",
                }
                .to_owned(),
            );
        }
        Some(format!("onetrip_now('{moment}')"))
    }

    /// `trim([both|leading|trailing] [characters] FROM text)`
    fn trim_of_parts(&self, call: &Call) -> Option<String> {
        let mode = self.tokens.get(call.name_at + 2)?.text(self.text).to_ascii_lowercase();
        let name = match (call.name.as_str(), mode.as_str()) {
            ("trim", "leading") => "ltrim",
            ("trim", "trailing") => "rtrim",
            ("trim", _) => "trim",
            _ => return None,
        };
        let mut parts: Vec<_> =
            call.args.iter().map(|id| self.render(self.first(*id), self.last(*id))).collect();
        if let [characters, text] = call.args.as_slice() {
            let separator = self.tokens[self.last(*characters) + 1].text(self.text);
            if separator.eq_ignore_ascii_case("from") && *characters != *text {
                parts.reverse();
            }
        }
        Some(format!("{name}({})", parts.join(", ")))
    }

    /// Functions that read the catalogue become subqueries of it.
    fn catalog_function(&self, call: &Call) -> Option<String> {
        let arg = |index: usize| call.args.get(index).map(|id| self.render(self.first(*id), self.last(*id)));
        let subquery = crate::catalog::function_query(&call.name)?;
        Some(format!("({})", subquery.replace("$1", &arg(0)?)))
    }

    /// The type that a cast in a stored view was made to.
    fn internal_cast(&self, call: &Call) -> Typed {
        let number = |index: usize| {
            let id = *call.args.get(index)?;
            let (first, last) = (self.first(id), self.last(id));
            let text: String = (first..=last).map(|token| self.tokens[token].text(self.text)).collect();
            text.parse::<i64>().ok()
        };
        let ty = number(1).and_then(|oid| SqlType::of_oid(u32::try_from(oid).ok()?));
        let modifier = number(2).and_then(|modifier| i32::try_from(modifier).ok()).unwrap_or(-1);
        ty.map_or(Typed::UNKNOWN, |ty| Typed::of(SqlType { modifier, ..ty }))
    }
}

fn array_of(element: SqlType) -> Typed {
    Typed::of(SqlType { is_array: true, ..element.without_modifier() })
}

fn integer_literal(text: &str) -> Typed {
    let ty = match text.parse::<i64>() {
        Ok(integer) if i32::try_from(integer).is_ok() => SqlType::INT4,
        Ok(_) => SqlType::INT8,
        Err(_) => SqlType::of(Base::Numeric),
    };
    Typed { not_null: true, ..Typed::of(ty) }
}

fn decimal_literal(text: &str) -> Typed {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len() as u32);
    Typed { ty: SqlType::of(Base::Numeric), scale: Some(decimals), not_null: true }
}
