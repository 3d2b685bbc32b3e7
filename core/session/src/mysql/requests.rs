//! Commands of the client: each that is answered is a unit.

use onetrip_ledger::{Moment, Statement, Steps, UnitKind};
use onetrip_sql::StatementKind;
use onetrip_wire::mysql::dialogue::Command;
use onetrip_wire::mysql::{
    BulkExecute, BulkValue, ChangeUser, ColumnType, Execute, Fetch, LongData, TextCommand, command,
};

use super::books::{Books, Sent};
use super::login::on_wire;
use super::prepared::{Given, ModeAfter, Place, Prepared, Text, places};
use super::texts::of_command;
use super::values::{self, Form};
use crate::charset::Charset;
use crate::contract::INSPECT_BYTES_MAX;
use crate::reading::kept_template;
use crate::readings::{Looked, Reading, are_kept};

/// Parameters of one statement whose hashes are kept.
const PARAMETERS_MAX: usize = 256;
/// Bit of a parameter's type.
const UNSIGNED: u8 = 0x80;

impl Books {
    pub(super) fn command(&mut self, now: Moment, command: &Command<'_>) {
        let began_at = std::mem::replace(&mut self.began_at, now);
        if !command.is_answered {
            return self.unanswered_command(now, command);
        }
        let bytes = self.own(command.bytes) + std::mem::take(&mut self.carried_bytes);
        let number = self.open(began_at, kind_of(command.code), bytes);
        self.mode_after = ModeAfter::Set;
        let slot = match command.code {
            command::QUERY => self.query(number, command),
            command::STMT_PREPARE => self.prepare(number, command),
            command::STMT_EXECUTE | command::STMT_BULK_EXECUTE => self.execute(number, command),
            command::STMT_FETCH => self.fetch(number, command),
            command::STMT_RESET => self.reset(number, command),
            command::INIT_DB => self.use_database(number, command),
            code => {
                self.changes_session(command);
                let template = self.names.template(of_command(code).as_bytes(), &mut self.stream);
                self.add_statement(number, &Text { template, ..Text::default() }, Steps::EXECUTE, 0)
            }
        };
        self.awaited.push_back(Sent {
            number: Some(number),
            slot,
            prepared_by: prepared_by(command),
            unit: command.unit,
            code: command.code,
            bytes_booked: 0,
            mode: self.mode_after,
        });
    }

    fn unanswered_command(&mut self, now: Moment, command: &Command<'_>) {
        self.client_sent(self.own(command.bytes));
        match (command.code, prepared_by(command)) {
            (command::QUIT, _) => self.client_left(now),
            (command::STMT_CLOSE, Some(unit)) => self.statements.remove(unit),
            (command::STMT_SEND_LONG_DATA, Some(unit)) => {
                let Ok(data) = LongData::decode(command.payload) else { return };
                self.statements.change(unit, |prepared| {
                    if !prepared.long.contains(&data.parameter) {
                        prepared.long.push(data.parameter);
                    }
                });
            }
            _ => {}
        }
    }

    /// Bytes of the units that are under way, or of the next one.
    pub(super) fn client_sent(&mut self, bytes: u64) {
        match self.units.unanswered() {
            0 => self.carried_bytes += bytes,
            _ => self.units.bytes_sent(bytes as usize),
        }
    }

    fn query(&mut self, number: u64, command: &Command<'_>) -> Option<u16> {
        let text = self.text_read(command, false)?;
        self.mode_after = text.mode;
        let slot = self.add_statement(number, &text, Steps::EXECUTE, 0);
        self.units.add_parameters(number, slot, &mut self.parameters);
        slot
    }

    /// The client's character set is what it logs in with once more, or what it had logged in with.
    fn changes_session(&mut self, command: &Command<'_>) {
        match command.code {
            command::CHANGE_USER => {
                let login = ChangeUser::decode(command.payload, self.capabilities);
                if let Some(more) = login.ok().and_then(|login| login.more) {
                    self.logs_in_with(Charset::of_collation(more.character_set));
                }
            }
            command::RESET_CONNECTION => self.charset = self.charset_of_login,
            _ => {}
        }
    }

    /// The text of a command; an unknown one where bytes of it were not seen, none where it does not decode.
    fn text_read(&mut self, command: &Command<'_>, is_prepared: bool) -> Option<Text> {
        let Some(text) = command.text else {
            self.undecoded += 1;
            return None;
        };
        Some(if is_seen(command) { self.read(text, is_prepared) } else { Text::default() })
    }

    fn prepare(&mut self, number: u64, command: &Command<'_>) -> Option<u16> {
        let text = self.text_read(command, true)?;
        let slot = self.add_statement(number, &text, Steps::PREPARE | Steps::DESCRIBE, 0);
        self.statements.put(command.unit, Prepared { text, ..Prepared::default() });
        slot
    }

    fn execute(&mut self, number: u64, command: &Command<'_>) -> Option<u16> {
        let unit = prepared_by(command);
        self.read_values(command);
        let known = unit.and_then(|unit| self.statements.get(unit));
        let text = known.map(|known| known.text.clone()).unwrap_or_default();
        self.mode_after = text.mode;
        self.place_values(&text);
        let slot = self.add_statement(number, &text, Steps::BIND | Steps::EXECUTE, 0);
        self.units.add_parameters(number, slot, &mut self.parameters);
        if let Some(unit) = unit {
            self.statements.change(unit, |prepared| prepared.long.clear());
        }
        slot
    }

    /// Rows of a cursor.
    fn fetch(&mut self, number: u64, command: &Command<'_>) -> Option<u16> {
        let text = self.text_of(command);
        let rows_max = Fetch::decode(command.payload).map_or(0, |fetch| fetch.rows_max);
        self.add_statement(number, &text, Steps::EXECUTE, rows_max)
    }

    fn reset(&mut self, number: u64, command: &Command<'_>) -> Option<u16> {
        let text = self.text_of(command);
        if let Some(unit) = prepared_by(command) {
            self.statements.change(unit, |prepared| prepared.long.clear());
        }
        self.add_statement(number, &text, Steps::default(), 0)
    }

    /// COM_INIT_DB does what `USE` does.
    fn use_database(&mut self, number: u64, command: &Command<'_>) -> Option<u16> {
        let name = TextCommand::decode(command.code, command.payload).map_or(&b""[..], |name| name.text);
        let text = [b"USE ", name].concat();
        let text = self.read(&text, false);
        self.add_statement(number, &text, Steps::EXECUTE, 0)
    }

    fn text_of(&self, command: &Command<'_>) -> Text {
        let known = prepared_by(command).and_then(|unit| self.statements.get(unit));
        known.map(|known| known.text.clone()).unwrap_or_default()
    }

    /// Looks into a statement's text: its template, what its comments say, and its literals as parameters.
    fn read(&mut self, text: &[u8], is_prepared: bool) -> Text {
        // No more than this, also where more has come: what is booked must not depend on the pieces it came in.
        let text = &self.charset.widened(&text[..text.len().min(INSPECT_BYTES_MAX)]);
        if let Some(charset) = Charset::set_by(text, self.charset_of_login).filter(|_| !is_prepared) {
            self.charset = charset;
        }
        let Self { lifter, names, stream, scopes, values, scratch, parameters, config, mode, .. } = self;
        parameters.clear();
        let bits = [mode.ansi_quotes, mode.no_backslash_escapes, config.keep_values];
        let bits = bits.iter().fold(0, |bits, bit| bits << 1 | u8::from(*bit));
        // Where its literals stand matters to a statement that is prepared.
        let read = config.texts.read().filter(|_| !is_prepared).map(|read| &read.commands);
        let looked = read.map_or(Looked::New, |read| read.look(bits, text));
        if let Looked::Known(reading) = &looked {
            for value in reading.values() {
                parameters.push(values.literal(value), value, config.keep_values);
            }
            let template = names.template(&reading.template, stream);
            return Text { template, markers: reading.found, mode: ModeAfter::Kept, ..Text::default() };
        }
        let mut scanner = config.texts.scanner(lifter);
        let lifted = scanner.get().lift_mysql(text, *mode);
        for literal in lifted.literals().take(PARAMETERS_MAX) {
            let value = literal.value(scratch);
            parameters.push(values.literal(value), value, config.keep_values);
        }
        let (scope, request) = scopes.of_comments(&lifted, values, names, stream);
        let kept = if config.keep_values { lifted.template().into() } else { kept_template(&lifted) };
        let template = names.template(&kept, stream);
        let hashes = parameters.hashes().iter().copied();
        let places = if is_prepared { places(&lifted, hashes, PARAMETERS_MAX) } else { Default::default() };
        let markers = u16::try_from(lifted.parameters().len()).unwrap_or(u16::MAX);
        // The number of a scope is the connection's own.
        let is_of_text = lifted.comments().len() == 0 && are_kept(lifted.kind());
        if let Some(read) = read.filter(|_| is_of_text && matches!(looked, Looked::Again)) {
            let mut reading = Reading::new(bits, text, &kept, markers);
            lifted.literals().take(PARAMETERS_MAX).for_each(|literal| reading.push(literal.value(scratch)));
            read.keep(reading);
        }
        let mode = mode_after(lifted.kind(), lifted.template());
        Text { template, scope, request, places, markers, mode }
    }

    /// Hashes the values of a run of a prepared statement; of many sets, those of the first.
    fn read_values(&mut self, command: &Command<'_>) {
        self.given.clear();
        let (Some(unit), Some(statement)) = (prepared_by(command), command.statement) else { return };
        let Some(known) = self.statements.get(unit) else { return };
        let count = statement.parameters.unwrap_or(known.text.markers);
        let payload = &command.payload[..command.payload.len().min(INSPECT_BYTES_MAX)];
        let is_read = match command.code {
            command::STMT_BULK_EXECUTE => self.read_first_set(unit, payload, count),
            _ => self.read_set(unit, payload, count),
        };
        if !is_read && is_seen(command) && command.payload_len <= INSPECT_BYTES_MAX as u64 {
            self.undecoded += 1;
        }
    }

    fn read_set(&mut self, unit: u64, payload: &[u8], count: u16) -> bool {
        let Ok(execute) = Execute::decode(payload, self.capabilities, count) else { return false };
        let Some(parameters) = execute.parameters else { return true };
        if parameters.has_types() {
            self.keep_types(unit, parameters.types().map(|kind| (kind.column_type, kind.flags)));
        }
        let Self { statements, given, values, scratch, config, .. } = self;
        let Some(known) = statements.get(unit) else { return true };
        let is_long = |index: usize| known.long.iter().any(|long| usize::from(*long) == index);
        let all = parameters.values(known.types(), is_long).zip(&known.types).enumerate();
        for (index, (value, form)) in all {
            let Ok(value) = value else { break };
            let given_one = match is_long(index) {
                // Its bytes passed before.
                true => Given::default(),
                false => give(values, value, *form, scratch, config.keep_values),
            };
            given.push(given_one);
        }
        true
    }

    fn read_first_set(&mut self, unit: u64, payload: &[u8], count: u16) -> bool {
        let Ok(bulk) = BulkExecute::decode(payload, count) else { return false };
        if bulk.types().len() > 0 {
            self.keep_types(unit, bulk.types());
        }
        let Self { statements, given, values, scratch, config, .. } = self;
        let Some(known) = statements.get(unit) else { return true };
        let types: Vec<ColumnType> = known.types().collect();
        for (value, form) in bulk.values(&types).zip(&known.types) {
            let value = match value {
                Ok(BulkValue::Value(value)) => Some(value),
                Ok(_) => None,
                Err(_) => break,
            };
            given.push(give(values, value, *form, scratch, config.keep_values));
        }
        true
    }

    /// Later runs need not send them again.
    fn keep_types(&mut self, unit: u64, types: impl Iterator<Item = (ColumnType, u8)>) {
        let forms = types.map(|(column_type, flags)| of_parameter(column_type, flags));
        self.statements.change(unit, |prepared| prepared.types = forms.take(PARAMETERS_MAX).collect());
    }

    /// Puts the values of a run in the order of the statement's template.
    fn place_values(&mut self, text: &Text) {
        let Self { parameters, given, config, .. } = self;
        parameters.clear();
        for place in &text.places {
            match place {
                Place::Literal(hash) => parameters.push(*hash, b"(in the text)", config.keep_values),
                Place::Marker(position) => match given.get(usize::from(*position)) {
                    Some(given) => parameters.push(given.hash, &given.text, config.keep_values),
                    None => parameters.push(0, b"(not seen)", config.keep_values),
                },
            }
        }
    }

    /// Adds a statement to a unit; `None` where there is too much of it.
    fn add_statement(&mut self, number: u64, text: &Text, steps: Steps, row_limit: u32) -> Option<u16> {
        let may_be_left_out = self.names.leaves_out_templates() || self.statements.leaves_out();
        let is_left_out = self.names.leaves_out_results() || text.template == 0 && may_be_left_out;
        if let Some(exchange) = self.exchange_mut(number) {
            if text.scope != 0 {
                exchange.scope = text.scope;
            }
            if text.request != 0 {
                exchange.request = text.request;
            }
            exchange.cut.untold += u64::from(is_left_out);
        }
        let statement = Statement { template: text.template, steps, row_limit, ..Statement::default() };
        self.units.add_statement(number, statement)
    }

    /// The client sent so many bytes of a file; none end it.
    pub(super) fn file_sent(&mut self, now: Moment, bytes: u64) {
        let began_at = std::mem::replace(&mut self.began_at, now);
        if self.awaited.front().and_then(|sent| sent.number) != Some(self.units.newest()) {
            return;
        }
        self.units.open(began_at, UnitKind::CopyIn);
        self.units.bytes_sent(self.own(on_wire(bytes)) as usize);
        if bytes == 0 {
            self.units.close(None);
        }
    }
}

/// Whether all of a command that is looked at has come.
fn is_seen(command: &Command<'_>) -> bool {
    command.payload.len() as u64 >= command.payload_len.min(INSPECT_BYTES_MAX as u64)
}

/// The unit of the dialogue that prepared a command's statement.
/// What a text does to the `sql_mode`. One of several statements may set it.
fn mode_after(kind: StatementKind, template: &[u8]) -> ModeAfter {
    const SETS: &[u8] = b"set statement ";
    let sets = || template.get(..SETS.len()).is_some_and(|words| words.eq_ignore_ascii_case(SETS));
    let template = template.trim_ascii_end();
    let template = template.strip_suffix(b";").unwrap_or(template);
    match kind {
        _ if template.contains(&b';') => ModeAfter::Set,
        StatementKind::Call => ModeAfter::Restored,
        StatementKind::Set if sets() => ModeAfter::Restored,
        kind if are_kept(kind) => ModeAfter::Kept,
        _ => ModeAfter::Set,
    }
}

fn prepared_by(command: &Command<'_>) -> Option<u64> {
    command.statement.and_then(|statement| statement.prepared_by)
}

fn kind_of(code: u8) -> UnitKind {
    match code {
        command::STMT_PREPARE
        | command::STMT_EXECUTE
        | command::STMT_BULK_EXECUTE
        | command::STMT_FETCH
        | command::STMT_RESET => UnitKind::Group,
        _ => UnitKind::Query,
    }
}

fn of_parameter(column_type: ColumnType, flags: u8) -> Form {
    Form { column_type, is_unsigned: flags & UNSIGNED != 0, is_binary: false }
}

fn give(
    values: &crate::canonical::Values,
    value: Option<&[u8]>,
    form: Form,
    scratch: &mut Vec<u8>,
    keeps_text: bool,
) -> Given {
    let hash = values::parameter(values, value, form, scratch);
    let text = match value {
        _ if !keeps_text => Vec::new(),
        None => b"NULL".to_vec(),
        Some(value) => form.text(value, true, scratch).unwrap_or(b"(binary)").to_vec(),
    };
    Given { hash, text }
}
