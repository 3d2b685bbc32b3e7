//! What the server says: each message is for the front of the queue, or for nobody in particular.

use std::sync::Arc;

use onetrip_wire::pg::{
    NotificationResponse, ParameterDescription, ParameterStatus, RowDescription, TransactionStatus, backend,
};

use super::control::Control;
use super::event::{Event, Notification, RowSpan};
use super::queue::{Awaited, Due, Kind};
use super::request::NO_SLOT;
use super::statements::Standing;
use super::stream::Frame;
use super::{Connection, OperationId};
use crate::row::Row;
use crate::{Columns, CommandTag, Error, ResultSet, Retry, ServerError};

/// An error has happened and the server skips what follows, up to the next Sync.
#[derive(Debug)]
pub(super) enum Skipping {
    /// This operation failed.
    By(OperationId),
    /// A statement of our own failed: its error is that of the operation that depends on it.
    Inherited(Box<Error>),
}

/// Whether the caller has to hear of it.
type Handled = Result<Option<Event>, Error>;

impl Connection {
    /// What the server said next; `None` until more has arrived. Operations of a block are booked there and make no
    /// events.
    ///
    /// # Errors
    /// The connection has ended and everything that was asked has been failed; why, the first time.
    pub fn next_event(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.skip() {
                return Ok(Some(event));
            }
            if self.lost.is_none() {
                match self.stream.next_frame() {
                    Ok(None) => return Ok(None),
                    Ok(Some(frame)) => match self.handle(frame) {
                        Ok(None) => continue,
                        Ok(Some(event)) => return Ok(Some(event)),
                        Err(error) => self.lost = Some(error),
                    },
                    Err(error) => self.lost = Some(error.into()),
                }
            }
            if let Some(event) = self.fail_awaited()? {
                return Ok(Some(event));
            }
        }
    }

    /// Reads a row. It borrows the input buffer.
    pub fn row(&self, span: RowSpan) -> Row<'_> {
        let columns = span.slot.map_or(&self.simple_columns, |slot| &self.statements[slot].columns);
        Row::new(columns, span.format, self.stream.span(span.start..span.end))
    }

    /// Takes the rows that follow one of an operation which makes events, as far as they have come: each would be such an
    /// event too.
    pub(super) fn take_rows(&mut self, rows: &mut ResultSet) {
        let (span, count) = self.stream.next_frames(backend::DATA_ROW);
        rows.push_messages(self.stream.span(span), count);
    }

    /// Reads a piece of a COPY's data. It borrows the input buffer.
    pub fn copied(&self, span: RowSpan) -> &[u8] {
        self.stream.span(span.start..span.end)
    }

    /// The columns of the operation at the front, once it is bound.
    pub fn front_columns(&self) -> &Columns {
        match self.queue.front() {
            Some(front) if front.slot != NO_SLOT => &self.statements[front.slot].columns,
            _ => &self.simple_columns,
        }
    }

    fn handle(&mut self, frame: Frame) -> Handled {
        match frame.tag {
            backend::DATA_ROW => self.handle_row(&frame),
            backend::BIND_COMPLETE => self.handle_bound(),
            backend::COMMAND_COMPLETE => {
                let body = self.stream.span(frame.body);
                let tag = CommandTag::new(body.strip_suffix(&[0]).unwrap_or(body));
                self.handle_complete(tag)
            }
            backend::EMPTY_QUERY_RESPONSE => self.handle_complete(CommandTag::new(b"")),
            backend::PORTAL_SUSPENDED => self.handle_suspended(),
            backend::READY_FOR_QUERY => self.handle_ready(&frame),
            backend::PARSE_COMPLETE => self.handle_parsed(),
            backend::PARAMETER_DESCRIPTION => self.handle_parameters(&frame),
            backend::ROW_DESCRIPTION => self.handle_columns(&frame),
            backend::NO_DATA => self.handle_no_columns(),
            backend::CLOSE_COMPLETE => self.handle_closed(),
            backend::ERROR_RESPONSE => self.handle_error(&frame),
            backend::COPY_IN_RESPONSE => {
                Ok(self.front_operation()?.map(|operation| Event::CopyIn { operation }))
            }
            backend::COPY_DATA => self.handle_copy_data(&frame),
            backend::COPY_OUT_RESPONSE | backend::COPY_DONE => Ok(None),
            _ => self.handle_unasked(&frame).map(|()| None),
        }
    }

    fn front(&mut self) -> Result<&mut Awaited, Error> {
        self.queue.front_mut().ok_or(Error::Protocol("it answers what nobody asked"))
    }

    fn take_due(&mut self, reply: Due) -> Result<Awaited, Error> {
        let front = self.front()?;
        if !front.due.take(reply) {
            return Err(Error::Protocol("its replies are out of order"));
        }
        Ok(*front)
    }

    /// The operation at the front, if it is one that makes events.
    fn front_operation(&mut self) -> Result<Option<OperationId>, Error> {
        let front = *self.front()?;
        let is_event =
            matches!(front.kind, Kind::Operation { .. } | Kind::Simple) && !self.block.holds(front.id);
        Ok(is_event.then_some(OperationId(front.id)))
    }

    fn handle_parsed(&mut self) -> Handled {
        let Awaited { slot, number, kind, due, .. } = self.take_due(Due::PARSE)?;
        let statement = &mut self.statements[slot];
        if statement.number == number && statement.standing == Standing::Asked && kind == Kind::Own {
            statement.standing = Standing::Ready;
        }
        if due.is_empty() {
            self.statements.release(slot);
            self.queue.pop_front();
        }
        Ok(None)
    }

    fn handle_parameters(&mut self, frame: &Frame) -> Handled {
        let Awaited { slot, .. } = self.take_due(Due::PARAMETERS)?;
        let description = ParameterDescription::decode(self.stream.span(frame.body.clone()))?;
        let statement = &mut self.statements[slot];
        statement.parameters.clear();
        statement.parameters.extend(description.oids());
        Ok(None)
    }

    fn handle_columns(&mut self, frame: &Frame) -> Handled {
        let front = *self.front()?;
        let description = RowDescription::decode(self.stream.span(frame.body.clone()))?;
        let columns = Columns::of(&description, |name| self.decoded(name));
        if front.kind == Kind::Simple {
            self.simple_columns = columns;
            return Ok(Some(Event::Bound { operation: OperationId(front.id) }));
        }
        self.described(columns)
    }

    fn handle_no_columns(&mut self) -> Handled {
        self.described(Columns::default())
    }

    /// Now all is known of a statement.
    fn described(&mut self, columns: Columns) -> Handled {
        let Awaited { slot, number, due, .. } = self.take_due(Due::COLUMNS)?;
        let statement = &mut self.statements[slot];
        statement.columns = columns;
        if statement.number == number && statement.standing == Standing::Asked {
            statement.standing = Standing::Ready;
        }
        if due.is_empty() {
            self.statements.release(slot);
            self.queue.pop_front();
        }
        Ok(None)
    }

    fn handle_bound(&mut self) -> Handled {
        let Awaited { slot, due, .. } = self.take_due(Due::BIND)?;
        if due.is_empty() {
            self.statements.release(slot);
            self.queue.pop_front();
            return Ok(None);
        }
        Ok(self.front_operation()?.map(|operation| Event::Bound { operation }))
    }

    fn handle_row(&mut self, frame: &Frame) -> Handled {
        let front = *self.queue.front().ok_or(Error::Protocol("it sends rows that nobody asked for"))?;
        let is_simple = front.kind == Kind::Simple;
        if !is_simple && front.due != Due::EXECUTE {
            return Err(Error::Protocol("it sends rows before the portal is bound"));
        }
        if front.kind == Kind::Lines {
            let body = self.stream.span(frame.body.clone()).to_vec();
            self.take_lines(&body);
            return Ok(None);
        }
        if self.block.holds(front.id) {
            if let Kind::Operation { .. } = front.kind {
                let columns = &self.statements[front.slot].columns;
                let body = self.stream.span(frame.body.clone());
                self.block.add_row(front.id, columns, front.format, body, self.limits.bytes);
            }
            return Ok(None);
        }
        let slot = (!is_simple).then_some(front.slot);
        let row = RowSpan { slot, format: front.format, start: frame.body.start, end: frame.body.end };
        Ok(Some(Event::Row { operation: OperationId(front.id), row }))
    }

    fn handle_copy_data(&mut self, frame: &Frame) -> Handled {
        let Some(operation) = self.front_operation()? else { return Ok(None) };
        let (start, end) = (frame.body.start, frame.body.end);
        let data = RowSpan { slot: None, format: Default::default(), start, end };
        Ok(Some(Event::CopyData { operation, data }))
    }

    fn handle_complete(&mut self, tag: CommandTag) -> Handled {
        let front = *self.front()?;
        if matches!(tag.as_bytes(), b"DEALLOCATE ALL" | b"DISCARD ALL") {
            self.statements.forget_all();
        }
        self.tables_may_have_changed(tag.as_bytes());
        if front.kind == Kind::Simple {
            return Ok(Some(Event::Complete { operation: OperationId(front.id), tag }));
        }
        self.take_due(Due::EXECUTE)?;
        let control = self.statements[front.slot].control;
        let in_block = self.block.holds(front.id) && matches!(front.kind, Kind::Operation { .. });
        let is_event = !in_block && matches!(front.kind, Kind::Operation { .. });
        let operation = OperationId(front.id);
        let is_rolled_back = control == Control::Commit && tag.as_bytes() == b"ROLLBACK";
        if in_block {
            let columns = &self.statements[front.slot].columns;
            self.block.complete(front.id, tag, false, columns, front.format);
            self.book_control(front.id, control);
            if is_rolled_back {
                self.block.fail(front.id, Error::RolledBack);
            }
        }
        self.pop_statement();
        Ok(match (is_event, is_rolled_back) {
            (false, _) => None,
            (true, true) => Some(Event::Failed { operation, error: Error::RolledBack }),
            (true, false) => Some(Event::Complete { operation, tag }),
        })
    }

    /// Where an implicit transaction begins or becomes an explicit one.
    fn book_control(&mut self, id: u64, control: Control) {
        match control {
            Control::Begin => self.block.implicit_from = None,
            Control::Commit | Control::Rollback => self.block.implicit_from = Some(id + 1),
            _ => {}
        }
    }

    fn handle_suspended(&mut self) -> Handled {
        let front = self.take_due(Due::EXECUTE)?;
        let event = self.front_operation()?.map(|operation| Event::Suspended { operation });
        if event.is_none() {
            let columns = &self.statements[front.slot].columns;
            self.block.complete(front.id, CommandTag::new(b""), true, columns, front.format);
        }
        self.pop_statement();
        Ok(event)
    }

    fn pop_statement(&mut self) {
        if let Some(front) = self.queue.pop_front() {
            if front.slot != NO_SLOT {
                self.statements.release(front.slot);
            }
        }
    }

    fn handle_closed(&mut self) -> Handled {
        if self.front()?.kind != Kind::Close {
            return Err(Error::Protocol("it closes what nobody asked it to"));
        }
        self.queue.pop_front();
        Ok(None)
    }

    fn handle_ready(&mut self, frame: &Frame) -> Handled {
        let status = TransactionStatus::decode(self.stream.span(frame.body.clone()))?;
        let front = *self.front()?;
        if !matches!(front.kind, Kind::Sync | Kind::Simple) {
            return Err(Error::Protocol("it is ready before it has answered"));
        }
        self.queue.pop_front();
        self.status = status;
        self.skipping = None;
        self.block.implicit_from = (status == TransactionStatus::Idle).then_some(front.id + 1);
        Ok(Some(Event::Ready(status)))
    }

    fn handle_error(&mut self, frame: &Frame) -> Handled {
        let error = ServerError::new(&self.decoded(self.stream.span(frame.body.clone())))?;
        let Some(front) = self.queue.front().copied() else {
            // Between statements the server speaks only to say that the session ends.
            return Err(error.into());
        };
        let operation = OperationId(front.id);
        match front.kind {
            Kind::Operation { shielded } => {
                let error = self.explained(&front, error);
                Ok(self.fail_operation(&front, shielded, error))
            }
            Kind::Own => {
                let error = self.explained(&front, error);
                self.drop_front();
                self.skipping = Some(match self.block.stopped_by {
                    Some(by) => Skipping::By(by),
                    None => Skipping::Inherited(Box::new(error)),
                });
                Ok(None)
            }
            Kind::Seal => {
                self.block.fail(front.id, error.into());
                self.skipping = Some(Skipping::By(operation));
                Ok(None)
            }
            Kind::Lines => {
                self.drop_front();
                self.skipping = Some(Skipping::By(operation));
                self.fail_lines(error);
                Ok(None)
            }
            Kind::Sync => Ok(self.fail_sync(&front, error.into())),
            Kind::Simple => Ok(Some(Event::Failed { operation, error: error.into() })),
            Kind::Close => Err(error.into()),
        }
    }

    /// The error that an operation fails with. One that was sent with the name of a statement that turned out not to
    /// be prepared failed for the reason for which it was not.
    fn explained(&mut self, front: &Awaited, error: ServerError) -> Error {
        let statement = &mut self.statements[front.slot];
        if front.due.has(Due::PARSE) {
            statement.parse_error = Some(Box::new(error.clone()));
        }
        if error.is_about_a_stale_statement() {
            let was_never_prepared = error.sqlstate() == "26000" && statement.standing != Standing::Ready;
            if let Some(reason) = statement.parse_error.clone().filter(|_| was_never_prepared) {
                return Error::Server(reason);
            }
            if error.sqlstate() == "0A000"
                && statement.standing == Standing::Ready
                && statement.number == front.number
            {
                self.statements.to_close.push(front.number);
            }
            let is_lost =
                error.sqlstate() == "26000" && self.statements[front.slot].standing == Standing::Ready;
            self.statements.forget(front.slot, front.number);
            if is_lost {
                // As with DEALLOCATE ALL within a function: so are the others, most likely.
                self.statements.renew_all();
            }
        }
        error.into()
    }

    fn fail_operation(&mut self, front: &Awaited, shielded: bool, error: Error) -> Option<Event> {
        let operation = OperationId(front.id);
        self.drop_front();
        if !self.block.holds(front.id) {
            self.skipping = Some(Skipping::By(operation));
            return Some(Event::Failed { operation, error });
        }
        let failed_before = self.block.stopped_by.filter(|_| error.sqlstate() == Some("25P02"));
        match failed_before {
            Some(by) => self.block.abort(front.id, by),
            None => self.block.fail(front.id, error),
        }
        self.skipping = Some(Skipping::By(failed_before.unwrap_or(operation)));
        if !shielded {
            self.block.stopped_by.get_or_insert(operation);
        }
        self.block.undo_implicit(front.id, Some(operation), None);
        None
    }

    /// The commit that a Sync stands for has failed, as deferred constraints make it.
    fn fail_sync(&mut self, front: &Awaited, error: Error) -> Option<Event> {
        if self.block.holds(front.id) {
            self.block.undo_implicit(front.id + 1, None, Some(&error));
            return None;
        }
        Some(Event::Failed { operation: OperationId(front.id), error })
    }

    /// Takes the front away without its replies.
    fn drop_front(&mut self) {
        let Some(front) = self.queue.pop_front() else { return };
        if front.kind == Kind::Close && front.number != 0 {
            self.statements.to_close.push(front.number);
        }
        if front.slot != NO_SLOT {
            if front.due.has(Due::PARSE) {
                self.statements.forget(front.slot, front.number);
            } else if front.due.has(Due::PARAMETERS.and(Due::COLUMNS)) {
                // It is prepared, but nothing is known of it.
                self.statements.to_close.push(front.number);
                self.statements.forget(front.slot, front.number);
            }
            self.statements.release(front.slot);
        }
    }

    /// Takes away what the server skips.
    fn skip(&mut self) -> Option<Event> {
        loop {
            let skipping = self.skipping.as_mut()?;
            let front = *self.queue.front()?;
            let by = match skipping {
                _ if matches!(front.kind, Kind::Sync | Kind::Simple) => return None,
                Skipping::Inherited(error) => {
                    if let Kind::Operation { .. } = front.kind {
                        let error = (**error).clone();
                        let event = self.fail_operation(&front, false, error);
                        if event.is_some() {
                            return event;
                        }
                        continue;
                    }
                    OperationId(front.id)
                }
                Skipping::By(by) => *by,
            };
            self.drop_front();
            if let Kind::Operation { .. } = front.kind {
                if !self.block.holds(front.id) {
                    let operation = OperationId(front.id);
                    return Some(Event::Failed { operation, error: Error::Aborted { by } });
                }
                self.block.abort(front.id, by);
            }
        }
    }

    /// Fails what a lost connection still owes, one operation at a time.
    fn fail_awaited(&mut self) -> Result<Option<Event>, Error> {
        let cause = self.lost.clone().unwrap_or(Error::Closed);
        self.skipping = None;
        while let Some(front) = self.queue.front().copied() {
            // A Sync stands for the commit of what has been answered before it.
            let is_unsent = front.kind != Kind::Sync && front.end > self.stream.position_sent();
            let retry = if is_unsent { Retry::Safe } else { Retry::Unknown };
            self.drop_front();
            let error = lost_with(&cause, retry);
            if self.block.holds(front.id) {
                match front.kind {
                    Kind::Operation { .. } => self.block.fail(front.id, error),
                    Kind::Seal => self.block.fail_done(front.id, error),
                    Kind::Lines => {}
                    // What was done before it may have been committed, or not.
                    _ => {
                        self.block.undo_implicit(front.id + 1, None, Some(&lost_with(&cause, Retry::Unknown)))
                    }
                }
            } else if matches!(front.kind, Kind::Operation { .. } | Kind::Simple | Kind::Sync) {
                return Ok(Some(Event::Failed { operation: OperationId(front.id), error }));
            }
        }
        let unknown = lost_with(&cause, Retry::Unknown);
        self.block.undo_implicit(self.last_id + 1, None, Some(&unknown));
        self.block.implicit_from = None;
        match self.lost.replace(Error::Closed) {
            Some(error) => Err(error),
            None => Err(Error::Closed),
        }
    }

    fn handle_unasked(&mut self, frame: &Frame) -> Result<(), Error> {
        let body = self.stream.span(frame.body.clone());
        let text = |bytes: &[u8]| String::from_utf8_lossy(&self.decoded(bytes)).into_owned();
        match frame.tag {
            backend::NOTICE_RESPONSE => {
                let notice = ServerError::new(&self.decoded(body))?;
                self.book_notice(notice);
            }
            backend::NOTIFICATION_RESPONSE => {
                let NotificationResponse { process_id, channel, payload } =
                    NotificationResponse::decode(body)?;
                let (channel, payload) = (text(channel), text(payload));
                self.notifications.push_back(Notification { process_id, channel, payload });
            }
            backend::PARAMETER_STATUS => {
                let ParameterStatus { name, value } = ParameterStatus::decode(body)?;
                let (name, value) = (text(name), text(value));
                Arc::make_mut(&mut self.settings).insert(name, value);
            }
            _ => return Err(Error::Protocol("it sends a message that does not exist")),
        }
        let most = self.limits.notices;
        self.unheard += u64::from(self.notices.len() > most) + u64::from(self.notifications.len() > most);
        if self.notices.len() > most {
            self.notices.pop_front();
        }
        if self.notifications.len() > most {
            self.notifications.pop_front();
        }
        Ok(())
    }
}

/// The error of an operation that a lost connection owed.
fn lost_with(cause: &Error, retry: Retry) -> Error {
    match cause {
        Error::Lost { cause, .. } => Error::Lost { retry, cause: cause.clone() },
        Error::Server(_) | Error::Protocol(_) | Error::Wire(_) if retry == Retry::Unknown => cause.clone(),
        _ => Error::Lost { retry, cause: None },
    }
}
