//! Function calls, with the words that some functions have between their arguments.

use super::expression::strength;
use super::parser::Parser;
use super::token::Kind;
use super::tree::{Call, ExprId, Node};
use crate::error::SqlResult;

impl Parser<'_> {
    pub(super) fn call_node(&mut self, name: &str, args: Vec<ExprId>, first: usize) -> ExprId {
        let call = Call {
            name: name.to_owned(),
            args,
            is_star: false,
            extras: Vec::new(),
            is_window: false,
            name_at: first,
            close_at: self.at - 1,
        };
        self.add(Node::Call(call), first)
    }

    pub(super) fn call(&mut self, name: &str, first: usize) -> SqlResult<ExprId> {
        let mut call = Call {
            name: name.to_owned(),
            args: Vec::new(),
            is_star: false,
            extras: Vec::new(),
            is_window: false,
            name_at: self.at - 1,
            close_at: 0,
        };
        self.expect(Kind::Open)?;
        if self.is_operator("*") && self.kind_at(self.at + 1) == Some(Kind::Close) {
            self.at += 1;
            call.is_star = true;
        } else if self.kind() != Some(Kind::Close) {
            self.arguments(&mut call)?;
        }
        self.expect(Kind::Close)?;
        call.close_at = self.at - 1;
        if self.is_word("filter") && self.kind_at(self.at + 1) == Some(Kind::Open) {
            self.at += 2;
            self.expect_word("where")?;
            call.extras.push(self.expression()?);
            self.expect(Kind::Close)?;
        }
        if self.take_word("over") {
            call.is_window = true;
            self.window(&mut call)?;
        }
        Ok(self.add(Node::Call(call), first))
    }

    /// Arguments, and the words that some functions have between them.
    fn arguments(&mut self, call: &mut Call) -> SqlResult<()> {
        match call.name.as_str() {
            "extract" => {
                let at = self.at;
                let field = if self.kind() == Some(Kind::Word) { self.name()? } else { self.string()? };
                let field = self.add(Node::Text(field), at);
                self.expect_word("from")?;
                call.args = vec![field, self.expression()?];
                return Ok(());
            }
            "trim" => {
                if self.take_any_word(&["both", "leading", "trailing"]) && self.take_word("from") {
                    call.args.push(self.expression()?);
                    return Ok(());
                }
            }
            _ => {
                self.take_any_word(&["distinct", "all", "variadic"]);
            }
        }
        let separators: &[&str] = match call.name.as_str() {
            "substring" | "overlay" => &["from", "for", "placing"],
            "trim" => &["from"],
            _ => &[],
        };
        loop {
            let argument = match call.name.as_str() {
                "position" => self.deeper(|parser| parser.operators(strength::RANGE))?,
                _ => self.expression()?,
            };
            call.args.push(argument);
            let goes_on = self.take(Kind::Comma)
                || self.take_any_word(separators)
                || (call.name == "position" && self.take_word("in"));
            if !goes_on {
                break;
            }
        }
        if self.take_words(&["order", "by"]) {
            for order in self.order_list()? {
                call.extras.push(order.expr);
            }
        }
        Ok(())
    }

    fn window(&mut self, call: &mut Call) -> SqlResult<()> {
        if !self.take(Kind::Open) {
            self.name()?;
            return Ok(());
        }
        if self.take_words(&["partition", "by"]) {
            call.extras.extend(self.expressions()?);
        }
        if self.take_words(&["order", "by"]) {
            for order in self.order_list()? {
                call.extras.push(order.expr);
            }
        }
        self.skip_to_close()
    }
}
