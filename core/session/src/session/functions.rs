//! Calls of server functions outside SQL: booked as statements, so that they are told apart.

use onetrip_ledger::{Moment, Steps, UnitKind};
use onetrip_wire::Reader;
use onetrip_wire::pg::{Format, FunctionCall, FunctionCallResponse, Oid};

use super::Session;
use super::core::Core;
use crate::reply_queue::{Due, Expect};
use crate::statements::{ResultFormats, Text};

/// Types of arguments and results, which the protocol does not name: whole numbers by their length.
const INT4: Oid = 23;
const INT8: Oid = 20;

impl Session {
    /// `FunctionCall`: a unit of its own, with one statement `name($1, ...)`.
    pub(crate) fn function_call(&mut self, now: Moment, body: &[u8], is_whole: bool) {
        let unit = self.core.units.open(now, UnitKind::FunctionCall);
        let call = FunctionCall::decode(body);
        let function = match call {
            Ok(call) => call.function,
            Err(_) if !is_whole => Reader::new(body).u32().unwrap_or(0),
            Err(_) => {
                self.undecoded_request(unit, Expect::FunctionCall);
                return self.core.units.close(None);
            }
        };
        self.core.parameters.clear();
        if let Ok(call) = call {
            for (position, value) in call.arguments.iter().enumerate() {
                let format = call.argument_formats.of(position);
                let hash = self.core.values.parameter(value, type_of(value), format);
                let shown = if format == Format::Text { value.unwrap_or(b"NULL") } else { b"(binary)" };
                self.core.parameters.push(hash, shown, self.config.keep_values);
            }
        }
        let template = self.core.template_of_call(function, call.map_or(0, |call| call.arguments.len()));
        let statement = self.add_statement(unit, &Text { template, ..Text::default() }, Steps::EXECUTE);
        self.core.units.add_parameters(unit, statement, &mut self.core.parameters);
        if let (Some(slot), Ok(call)) = (statement, call) {
            let formats = ResultFormats::new(&call.result_format.to_be_bytes());
            if let Some(run) = self.core.units.run_mut(unit, slot) {
                run.formats = formats;
            }
        }
        self.owe(unit, Expect::FunctionCall, statement);
        self.core.units.close(None);
    }

    /// What the function returned, kept where it may be a key: the handle of a large object is one.
    pub(crate) fn function_result(&mut self, due: Due, body: &[u8]) {
        let Ok(response) = FunctionCallResponse::decode(body) else {
            self.core.undecoded += 1;
            return;
        };
        let Some(slot) = due.statement else { return };
        let Core { units, values, .. } = &mut self.core;
        let Some(mut book) = units.result_mut(due.unit, slot) else { return };
        let format = book.formats.map_or(Format::Text, |formats| formats.of(0));
        book.statement.rows = 1;
        book.add_to_digest(values, due.unit, (body, true), format == Format::Binary);
        let value = values.column(response.value, type_of(response.value), format);
        if value != 0 && book.statement.results == 0 && book.values.is_empty() {
            book.statement.key_columns = 1;
            book.statement.results = 1;
            book.values.push(value);
        }
    }
}

/// The type that a binary value of this length is taken for.
fn type_of(value: Option<&[u8]>) -> Oid {
    match value.map(<[u8]>::len) {
        Some(4) => INT4,
        Some(8) => INT8,
        _ => 0,
    }
}
