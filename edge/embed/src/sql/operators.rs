//! Operators: their types, and what SQLite writes otherwise.

use super::analysis::{Analysis, Typed, unsupported_at};
use super::functions::{arithmetic_type, common_type};
use super::tree::{ExprId, Node, Op};
use crate::error::SqlResult;
use crate::types::{Base, SqlType};

impl Analysis<'_> {
    pub(super) fn sign(&mut self, arg: ExprId) -> SqlResult<Typed> {
        let typed = self.infer(arg)?;
        let token = self.tokens[self.first(arg)].text(self.text);
        let is_least = matches!(token, "9223372036854775808" | "2147483648");
        if matches!(self.tree.exprs[arg].node, Node::Integer) && is_least {
            let ty = if token.len() > 10 { SqlType::INT8 } else { SqlType::INT4 };
            return Ok(Typed { not_null: true, ..Typed::of(ty) });
        }
        self.coerce(arg, typed, SqlType::of(Base::Float8))
    }

    pub(super) fn binary(
        &mut self,
        op: Op,
        at: (usize, usize),
        left: ExprId,
        right: ExprId,
    ) -> SqlResult<Typed> {
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
}
