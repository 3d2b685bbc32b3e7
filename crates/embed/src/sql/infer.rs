//! The type of every expression, and its notation in SQLite.

use super::analysis::{Analysis, Typed, unsupported_at};
use super::functions::{arithmetic_type, common_type, result_type, sqlite_name};
use super::token::{Kind, quote_text};
use super::tree::{Call, ExprId, Node, Op, Quantity};
use crate::error::SqlResult;
use crate::types::{Base, SqlType};

impl Analysis<'_> {
    pub(crate) fn infer(&mut self, id: ExprId) -> SqlResult<Typed> {
        let tree = self.tree;
        let expr = &tree.exprs[id];
        Ok(match &expr.node {
            Node::Null => Typed::UNKNOWN,
            Node::Bool => Typed { not_null: true, ..Typed::of(SqlType::BOOL) },
            Node::Integer => integer_literal(self.tokens[expr.first].text(self.text)),
            Node::Decimal => decimal_literal(self.tokens[expr.first].text(self.text)),
            Node::Text(text) => {
                if self.tokens[expr.first].kind != Kind::Text {
                    self.edits.replace(expr.first, quote_text(text));
                }
                Typed::UNKNOWN
            }
            Node::Parameter(number) => {
                self.edits.replace(expr.first, format!("?{number}"));
                Typed::of(self.set_parameter(*number, SqlType::UNKNOWN))
            }
            Node::Column { table, name } => {
                self.drop_schema(id, 3);
                self.find_column(table.as_deref(), name).unwrap_or(Typed::UNKNOWN)
            }
            Node::Star { .. } => Typed::UNKNOWN,
            Node::Paren(inner) => self.infer(*inner)?,
            Node::Row(list) => {
                for element in list {
                    self.infer(*element)?;
                }
                if self.tokens[expr.first].kind == Kind::Word {
                    self.edits.remove([expr.first]); // ROW(…) is (…) in SQLite
                }
                Typed::UNKNOWN
            }
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
            Node::Scalar(query) => {
                let columns = self.query(*query)?;
                columns
                    .first()
                    .map_or(Typed::UNKNOWN, |column| Typed { scale: column.scale, ..Typed::of(column.ty) })
            }
            Node::Exists(query) => {
                self.query(*query)?;
                Typed::of(SqlType::BOOL)
            }
            Node::ArrayOf(query) => {
                let columns = self.query(*query)?;
                let (first, last) = (tree.queries[*query].first, tree.queries[*query].last);
                self.edits.remove([expr.first]);
                self.edits.before(first, "WITH onetrip_elements(v) AS (");
                self.edits.after(last, ") SELECT json_group_array(v) FROM onetrip_elements");
                array_of(columns.first().map_or(SqlType::TEXT, |column| column.ty))
            }
            Node::ArrayList(list) => {
                let element = self.unify(list)?;
                self.edits.remove([expr.first]);
                self.edits.replace(expr.first + 1, "json_array(");
                self.edits.replace(expr.last, ")");
                array_of(element)
            }
            Node::InList { arg, list } => {
                let mut all = vec![*arg];
                all.extend(list);
                self.unify(&all)?;
                Typed::of(SqlType::BOOL)
            }
            Node::InQuery { arg, query } => {
                let typed = self.infer(*arg)?;
                let columns = self.query(*query)?;
                if let [column] = columns.as_slice() {
                    self.coerce(*arg, typed, column.ty)?;
                }
                Typed::of(SqlType::BOOL)
            }
            Node::Between { arg, low, high } => {
                self.unify(&[*arg, *low, *high])?;
                Typed::of(SqlType::BOOL)
            }
            Node::Test { arg } => {
                self.infer(*arg)?;
                if self.tokens[expr.last].text(self.text).eq_ignore_ascii_case("unknown") {
                    self.edits.replace(expr.last, "NULL");
                }
                Typed::of(SqlType::BOOL)
            }
            Node::Quantified { left, at, is_all, right } => {
                self.quantified(id, *left, *at, *is_all, *right)?
            }
            Node::Subscript { arg, index } => {
                let typed = self.infer(*arg)?;
                let index_typed = self.infer(*index)?;
                self.coerce(*index, index_typed, SqlType::INT4)?;
                let open = self.last(*arg) + 1;
                self.edits.before(self.first(*arg), "onetrip_element(");
                self.edits.replace(open, ",");
                self.edits.replace(expr.last, ")");
                Typed::of(typed.ty.element())
            }
            Node::AtTimeZone { arg, zone } => {
                let typed = self.infer(*arg)?;
                let typed = self.coerce(*arg, typed, SqlType::of(Base::Timestamptz))?;
                let zone_typed = self.infer(*zone)?;
                self.coerce(*zone, zone_typed, SqlType::TEXT)?;
                let (first, last) = (self.last(*arg) + 1, self.first(*zone) - 1);
                self.edits.remove(first..=last);
                self.edits.replace(first, format!(", {},", typed.ty.oid()));
                self.edits.before(self.first(*arg), "onetrip_at_time_zone(");
                self.edits.after(self.last(*zone), ")");
                let has_zone = typed.ty.base == Base::Timestamptz;
                Typed::of(SqlType::of(if has_zone { Base::Timestamp } else { Base::Timestamptz }))
            }
            Node::Collate { arg, at } => {
                let typed = self.infer(*arg)?;
                self.edits.remove(*at..=expr.last);
                typed
            }
        })
    }

    /// Gives expressions that must agree one type, and says which.
    fn unify(&mut self, list: &[ExprId]) -> SqlResult<SqlType> {
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

    fn sign(&mut self, arg: ExprId) -> SqlResult<Typed> {
        let typed = self.infer(arg)?;
        let token = self.tokens[self.first(arg)].text(self.text);
        let is_least = matches!(token, "9223372036854775808" | "2147483648");
        if matches!(self.tree.exprs[arg].node, Node::Integer) && is_least {
            let ty = if token.len() > 10 { SqlType::INT8 } else { SqlType::INT4 };
            return Ok(Typed { not_null: true, ..Typed::of(ty) });
        }
        self.coerce(arg, typed, SqlType::of(Base::Float8))
    }

    fn binary(&mut self, op: Op, at: (usize, usize), left: ExprId, right: ExprId) -> SqlResult<Typed> {
        match op {
            Op::And | Op::Or => {
                self.condition(left)?;
                self.condition(right)?;
                Ok(Typed::of(SqlType::BOOL))
            }
            Op::Compare | Op::Distinct => {
                self.unify(&[left, right])?;
                Ok(Typed::of(SqlType::BOOL))
            }
            Op::Like { .. } | Op::Regex { .. } => self.pattern(op, at, left, right),
            Op::Concat => self.concat(at.0, left, right),
            Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Modulo | Op::Power => {
                self.arithmetic(op, at.0, left, right)
            }
            Op::Json | Op::JsonText => {
                self.infer(left)?;
                let key = self.infer(right)?;
                self.coerce(right, key, SqlType::TEXT)?;
                Ok(Typed::of(if op == Op::Json { SqlType::of(Base::Json) } else { SqlType::TEXT }))
            }
            Op::Bits | Op::Other => {
                let (left_typed, right_typed) = (self.infer(left)?, self.infer(right)?);
                self.coerce(left, left_typed, right_typed.ty)?;
                self.coerce(right, right_typed, left_typed.ty)?;
                Ok(Typed::of(common_type(left_typed.ty, right_typed.ty)))
            }
        }
    }

    fn pattern(&mut self, op: Op, at: (usize, usize), left: ExprId, right: ExprId) -> SqlResult<Typed> {
        for side in [left, right] {
            let typed = self.infer(side)?;
            self.coerce(side, typed, SqlType::TEXT)?;
        }
        let function = match op {
            Op::Like { ignores_case: true, has_escape: true, .. } => {
                return Err(unsupported_at("ILIKE with ESCAPE is not supported", self.offset(at.0)));
            }
            Op::Like { is_negated, ignores_case: true, .. } => Some((is_negated, "onetrip_ilike", "")),
            Op::Regex { is_negated, ignores_case: true } => Some((is_negated, "onetrip_regex", ", 1")),
            Op::Regex { is_negated, .. } => Some((is_negated, "onetrip_regex", ", 0")),
            Op::Like { is_negated, has_escape, .. } => {
                let word = if is_negated { "NOT LIKE" } else { "LIKE" };
                // The token before `at_last` is NOT where the negation is a word.
                let not_at = self.last(left) + 1;
                self.edits.remove(not_at..=at.1);
                self.edits.replace(not_at, format!(" {word} "));
                let is_plain =
                    matches!(&self.tree.exprs[right].node, Node::Text(text) if !text.contains('\\'));
                if !has_escape && !is_plain {
                    self.edits.after(self.last(right), " ESCAPE '\\'");
                }
                None
            }
            _ => None,
        };
        if let Some((is_negated, name, flag)) = function {
            let between = self.last(left) + 1;
            self.edits.remove(between..=at.1);
            self.edits.replace(between, ",");
            self.edits.before(self.first(left), format!("({}{name}(", if is_negated { "NOT " } else { "" }));
            self.edits.after(self.last(right), format!("{flag}))"));
        }
        Ok(Typed::of(SqlType::BOOL))
    }

    /// Concatenation takes text of anything; what SQLite would print differently is converted.
    fn concat(&mut self, at: usize, left: ExprId, right: ExprId) -> SqlResult<Typed> {
        let array = matches!(self.tree.exprs[left].node, Node::ArrayList(_) | Node::ArrayOf(_))
            || matches!(self.tree.exprs[right].node, Node::ArrayList(_) | Node::ArrayOf(_));
        if array {
            let ty = self.unify(&[left, right])?;
            self.as_function("onetrip_array_concat", at, left, right);
            return Ok(Typed::of(ty));
        }
        for side in [left, right] {
            let typed = self.infer(side)?;
            let typed = self.coerce(side, typed, SqlType::TEXT)?;
            if typed.ty.is_array {
                return Err(unsupported_at(
                    "concatenation of arrays is not supported",
                    self.offset(self.first(side)),
                ));
            }
            if !typed.ty.is_unknown() && !typed.ty.base.is_text() && !typed.ty.base.is_integer() {
                self.convert(side, typed.ty, SqlType::TEXT, true);
            }
            if matches!(self.tree.exprs[side].node, Node::Binary { op, .. } if op != Op::Concat) {
                self.wrap(side, "(", ")"); // || binds more tightly in SQLite
            }
        }
        Ok(Typed::of(SqlType::TEXT))
    }

    fn arithmetic(&mut self, op: Op, at: usize, left: ExprId, right: ExprId) -> SqlResult<Typed> {
        let (left_typed, right_typed) = (self.infer(left)?, self.infer(right)?);
        if let Some(moment) = self.moment_arithmetic(op, at, (left, left_typed), (right, right_typed))? {
            return Ok(moment);
        }
        let number = |ty: SqlType| if ty.is_unknown() { SqlType::INT4 } else { ty };
        let left_typed = self.coerce(left, left_typed, number(right_typed.ty))?;
        let right_typed = self.coerce(right, right_typed, number(left_typed.ty))?;
        let mut ty = arithmetic_type(left_typed.ty, right_typed.ty);
        let scale = match op {
            Op::Multiply => match (left_typed.scale, right_typed.scale) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            },
            Op::Divide | Op::Power => None,
            _ => left_typed.scale.max(right_typed.scale),
        };
        let is_exact_integer = ty.base.is_integer() || ty.is_unknown();
        if matches!(op, Op::Divide | Op::Modulo) {
            let is_nonzero = matches!(self.tree.exprs[right].node, Node::Integer | Node::Decimal)
                && self.tokens[self.first(right)]
                    .text(self.text)
                    .bytes()
                    .any(|byte| matches!(byte, b'1'..=b'9'));
            if !is_nonzero {
                self.wrap(right, "onetrip_divisor(", ")");
            }
        }
        match op {
            Op::Divide if !is_exact_integer => self.wrap(left, "CAST(", " AS REAL)"),
            Op::Modulo if !is_exact_integer => self.as_function("mod", at, left, right),
            Op::Power => {
                self.as_function("power", at, left, right);
                ty = SqlType::of(if ty.base == Base::Numeric { Base::Numeric } else { Base::Float8 });
            }
            _ => {}
        }
        let scale = if ty.base == Base::Numeric { scale } else { None };
        Ok(Typed { ty, scale, not_null: left_typed.not_null && right_typed.not_null })
    }

    fn as_function(&mut self, name: &str, at: usize, left: ExprId, right: ExprId) {
        self.edits.replace(at, ",");
        self.edits.before(self.first(left), format!("{name}("));
        self.edits.after(self.last(right), ")");
    }

    /// Dates, timestamps and intervals; `None` where neither side is one.
    fn moment_arithmetic(
        &mut self,
        op: Op,
        at: usize,
        (left, left_typed): (ExprId, Typed),
        (right, right_typed): (ExprId, Typed),
    ) -> SqlResult<Option<Typed>> {
        let (a, b) = (left_typed.ty.base, right_typed.ty.base);
        let sign = if op == Op::Subtract { "-" } else { "+" };
        let result = match (op, a, b) {
            (Op::Subtract, Base::Date, Base::Date) => {
                self.as_function("onetrip_days_between", at, left, right);
                SqlType::INT4
            }
            (Op::Add | Op::Subtract, Base::Date, _) if b.is_integer() || b == Base::Unknown => {
                self.coerce(right, right_typed, SqlType::INT4)?;
                self.as_function("onetrip_add_days", at, left, right);
                self.edits.before(self.first(right), sign);
                SqlType::of(Base::Date)
            }
            (Op::Add | Op::Subtract, a, Base::Interval) if a.is_moment() => {
                self.edits.replace(at, format!(", '{sign}',"));
                self.edits.before(self.first(left), "onetrip_add_interval(");
                self.edits.after(self.last(right), ")");
                SqlType::of(if a == Base::Date { Base::Timestamp } else { a })
            }
            (Op::Add | Op::Subtract, a, b) if a.is_moment() || b.is_moment() || b == Base::Interval => {
                let message = "this arithmetic of dates and times is not supported";
                return Err(unsupported_at(message, self.offset(at)));
            }
            _ => return Ok(None),
        };
        Ok(Some(Typed { not_null: left_typed.not_null && right_typed.not_null, ..Typed::of(result) }))
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
