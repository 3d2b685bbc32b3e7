//! Requests: encoded into the output, and booked in the queue.

use std::num::NonZeroU32;

use onetrip_wire::Prefetch;
use onetrip_wire::pg::{Execute, Format, Formats, Parse, StatementOrPortal, encode_bind, frame, frontend};

use super::control::Control;
use super::queue::{Awaited, Due, Kind};
use super::statements::{Slot, Standing, put_name};
use super::{Connection, OperationId};
use crate::error::Usage;
use crate::{Error, Param};

/// Result formats of Bind: one code that holds for all columns.
const BINARY: &[u8] = &[0, 1];

/// Data of a COPY travels in messages of at most this size, in bytes.
const COPY_CHUNK_BYTES: usize = 64 * 1024;

/// The slot of what runs no statement.
pub(super) const NO_SLOT: Slot = Slot::MAX;

/// How much a connection may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Whether pipelines may be used.
    pub pipelining: bool,
    /// Statements that stay prepared; 0 prepares each for one use, for poolers that cannot keep them apart.
    pub statements: usize,
    /// Executions of a statement before it stays prepared.
    pub prepare_after: u32,
    /// Replies that may be awaited at once.
    pub depth: usize,
    /// Longest request and all results that a pipeline keeps, each in bytes.
    pub bytes: usize,
    /// Bytes that may be fetched ahead: of rows by all cursors together, of large values at once.
    pub read_ahead: usize,
    /// What is fetched of large values where neither statement nor column says otherwise.
    pub prefetch: Prefetch,
    /// Notices, and notifications, that may wait to be taken.
    pub notices: usize,
    /// Lines of collected output that may wait to be taken; more stay on the server.
    pub lines: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pipelining: true,
            statements: 256,
            prepare_after: 0,
            depth: 10_000,
            bytes: 256 << 20,
            read_ahead: 8 << 20,
            prefetch: Prefetch::Auto,
            notices: 1000,
            lines: 10_000,
        }
    }
}

/// A statement to run, with parameters of whatever kind; those of a program that awaits have to be `Sync`.
pub struct Request<'a, P: ?Sized = dyn Param + 'a> {
    /// Its text.
    pub text: &'a str,
    /// Its `$1`, `$2`, …
    pub parameters: &'a [&'a P],
    /// How rows are to be written.
    pub format: Format,
    /// The portal to make: empty for one that the next operation replaces.
    pub portal: &'a str,
    /// At most so many rows now, the others by [`Connection::fetch`].
    pub row_limit: Option<NonZeroU32>,
    /// The data of a `COPY … FROM STDIN`.
    pub copy: Option<&'a [u8]>,
    /// Whether the statement is to stay prepared; `None` leaves it to [`Limits::prepare_after`].
    pub keeps: Option<bool>,
}

impl<'a> Request<'a> {
    /// A statement whose rows, if it returns any, come all at once and in binary.
    pub fn new(text: &'a str, parameters: &'a [&'a dyn Param]) -> Self {
        Self {
            text,
            parameters,
            format: Format::Binary,
            portal: "",
            row_limit: None,
            copy: None,
            keeps: None,
        }
    }
}

impl<'a> Request<'a, dyn Param + Sync + 'a> {
    /// The same, with parameters that may cross threads.
    pub fn sync(text: &'a str, parameters: &'a [&'a (dyn Param + Sync)]) -> Self {
        Self {
            text,
            parameters,
            format: Format::Binary,
            portal: "",
            row_limit: None,
            copy: None,
            keeps: None,
        }
    }
}

impl<P: ?Sized> Clone for Request<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ?Sized> Copy for Request<'_, P> {}

impl<P: ?Sized> std::fmt::Debug for Request<'_, P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Request").field("text", &self.text).finish_non_exhaustive()
    }
}

/// The statement that calls a function of the server.
pub(crate) fn call_of(function: &str, arguments: usize) -> String {
    let numbers: Vec<_> = (1..=arguments).map(|number| format!("${number}")).collect();
    format!("SELECT {function}({})", numbers.join(", "))
}

/// The protocol counts parameters in 16 bits.
const PARAMETERS_MAX: usize = u16::MAX as usize;

impl Connection {
    /// Asks for one statement outside of a block. [`sync`](Self::sync) or [`flush`](Self::flush) has to follow.
    ///
    /// # Errors
    /// Parameters that cannot be written, a connection that is closed or has an open block, COPY without data.
    pub fn submit(&mut self, request: &Request<'_>) -> Result<OperationId, Error> {
        self.check_submit(request)?;
        self.submit_any(request)
    }

    /// What [`submit`](Self::submit) refuses whatever the parameters' values are.
    pub(super) fn check_submit(&self, request: &Request<'_>) -> Result<(), Error> {
        self.check_outside()?;
        if request.copy.is_none() && Control::of(request.text) == Control::Copy {
            return Err(Usage::UseCopy.into());
        }
        self.check_size(request)
    }

    fn check_size(&self, request: &Request<'_>) -> Result<(), Error> {
        let size = request.text.len() + request.copy.map_or(0, <[u8]>::len);
        if size > self.limits.bytes {
            return Err(Error::TooLarge { what: "the request", limit: self.limits.bytes });
        }
        if request.parameters.len() > PARAMETERS_MAX {
            return Err(Error::TooLarge { what: "the number of parameters", limit: PARAMETERS_MAX });
        }
        Ok(())
    }

    /// Like [`submit`](Self::submit), for COPY: its data follows by [`copy_data`](Self::copy_data), or comes.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), and a statement that is not COPY.
    pub fn submit_copy(&mut self, request: &Request<'_>) -> Result<OperationId, Error> {
        self.check_copy(request)?;
        self.submit_any(request)
    }

    /// What [`submit_copy`](Self::submit_copy) refuses.
    pub(super) fn check_copy(&self, request: &Request<'_>) -> Result<(), Error> {
        self.check_outside()?;
        if Control::of(request.text) != Control::Copy {
            return Err(Usage::NotCopy.into());
        }
        self.check_size(request)
    }

    fn submit_any(&mut self, request: &Request<'_>) -> Result<OperationId, Error> {
        let id = self.next_id();
        self.put_operation(id.0, Kind::Operation { shielded: false }, request).map(|()| id)
    }

    /// Asks for more rows of a portal that a request with `row_limit` has opened.
    ///
    /// # Errors
    /// A connection that is closed or has an open block.
    pub fn fetch(
        &mut self,
        of: OperationId,
        request: &Request<'_>,
        row_limit: Option<NonZeroU32>,
    ) -> Result<OperationId, Error> {
        self.check_outside()?;
        self.put_fetch(of.0, Kind::Operation { shielded: false }, request, row_limit);
        Ok(of)
    }

    /// Asks for statements without parameters, separated by semicolons, by the simple protocol. It is its own Sync.
    ///
    /// # Errors
    /// A connection that is closed or has an open block.
    pub fn submit_script(&mut self, text: &str) -> Result<OperationId, Error> {
        self.check_outside()?;
        let id = self.next_id();
        self.sync_if_needed(id.0);
        let text = self.encoded(text);
        frame(&mut self.stream.out, frontend::QUERY, |out| {
            out.extend_from_slice(&text);
            out.push(0);
        });
        self.book(id.0, Kind::Simple, NO_SLOT, 0, Due::NONE, Format::Text);
        self.is_unsynced = false;
        self.is_unflushed = false;
        self.put_lines(id.0);
        Ok(id)
    }

    /// Data of a COPY that was submitted.
    pub fn copy_data(&mut self, data: &[u8]) {
        for chunk in data.chunks(COPY_CHUNK_BYTES) {
            frame(&mut self.stream.out, frontend::COPY_DATA, |out| out.extend_from_slice(chunk));
        }
    }

    /// The end of a COPY's data.
    pub fn copy_done(&mut self) {
        frame(&mut self.stream.out, frontend::COPY_DONE, |_| {});
    }

    /// Gives a COPY up: the server fails it with this message.
    pub fn copy_fail(&mut self, why: &str) {
        frame(&mut self.stream.out, frontend::COPY_FAIL, |out| {
            out.extend_from_slice(why.as_bytes());
            out.push(0);
        });
    }

    /// Tells a server that waits for data that there is none. The Sync that was sent before counts for nothing then, so
    /// that another takes its place.
    pub fn copy_refuse(&mut self, why: &str) {
        self.copy_fail(why);
        frame(&mut self.stream.out, frontend::SYNC, |_| {});
    }

    /// Closes a portal, along with the next statement.
    pub fn close_portal(&mut self, portal: &str) {
        self.portals_to_close.push(portal.to_owned());
    }

    /// Ends what was submitted: outside of a transaction it is committed here, and after an error the server goes on
    /// here.
    pub fn sync(&mut self) {
        let id = self.last_id;
        self.put_sync(id);
        self.put_lines(id);
    }

    /// Lets the server send what it has, without ending anything.
    pub fn flush(&mut self) {
        if self.is_unflushed {
            frame(&mut self.stream.out, frontend::FLUSH, |_| {});
            self.is_unflushed = false;
        }
    }

    /// Says goodbye; nothing can be asked afterwards.
    pub fn terminate(&mut self) {
        frame(&mut self.stream.out, frontend::TERMINATE, |_| {});
    }

    /// Ends whatever is half done, so that only answers are left to come: an open block, a missing Sync.
    pub fn finish_requests(&mut self) {
        if self.block.is_open {
            // A block that is open can be ended.
            let _ = self.end_block();
        }
        if self.is_unsynced {
            self.sync();
        }
    }

    fn check_outside(&self) -> Result<(), Error> {
        match () {
            () if self.is_lost() => Err(Error::Closed),
            () if self.block.is_open => Err(Usage::InsideBlock.into()),
            () => Ok(()),
        }
    }

    pub(super) fn put_sync(&mut self, id: u64) {
        frame(&mut self.stream.out, frontend::SYNC, |_| {});
        self.book(id, Kind::Sync, NO_SLOT, 0, Due::NONE, Format::Text);
        self.is_unsynced = false;
        self.is_unflushed = false;
    }

    pub(super) fn sync_if_needed(&mut self, id: u64) {
        if self.is_unsynced {
            self.put_sync(id);
        }
    }

    /// Parse (where the server does not know the statement), Bind, Execute, and a COPY's data.
    pub(super) fn put_operation(&mut self, id: u64, kind: Kind, request: &Request<'_>) -> Result<(), Error> {
        self.check_size(request)?;
        self.put_closes(id);
        let slot = self.statements.acquire(request.text, request.parameters);
        let start = self.stream.out.len();
        let mut due = Due::BIND.and(Due::EXECUTE);
        let keeps =
            request.keeps.unwrap_or(self.statements[slot].is_used_more_than(self.limits.prepare_after));
        let prepares = self.statements.needs_parse(slot);
        if prepares {
            due = due.and(self.put_parse(slot, keeps)).and(self.put_describe(slot));
        }
        if let Err(error) = self.put_bind(slot, request) {
            self.stream.out.truncate(start);
            if prepares {
                self.statements[slot].standing = Standing::Absent;
            }
            self.statements.release(slot);
            return Err(error);
        }
        let execute = Execute { portal: request.portal.as_bytes(), row_limit: request.row_limit };
        execute.encode(&mut self.stream.out);
        if let Some(data) = request.copy {
            self.copy_data(data);
            self.copy_done();
        }
        let number = self.statements[slot].number;
        self.book(id, kind, slot, number, due, request.format);
        Ok(())
    }

    /// Execute of a portal that an earlier operation has bound.
    pub(super) fn put_fetch(
        &mut self,
        id: u64,
        kind: Kind,
        request: &Request<'_>,
        row_limit: Option<NonZeroU32>,
    ) {
        let slot = self.statements.acquire(request.text, request.parameters);
        Execute { portal: request.portal.as_bytes(), row_limit }.encode(&mut self.stream.out);
        let number = self.statements[slot].number;
        self.book(id, kind, slot, number, Due::EXECUTE, request.format);
    }

    /// Parse alone, of a statement of our own.
    pub(super) fn put_prepare(&mut self, id: u64, slot: Slot) {
        let due = self.put_parse(slot, true);
        let number = self.statements[slot].number;
        // Released when it is answered, as an operation's.
        self.book(id, Kind::Own, slot, number, due, Format::Text);
    }

    /// Parse and Describe of a statement whether it is prepared or not: with its Parse the server locks its tables until
    /// the end of the transaction.
    pub(super) fn put_prepare_anew(&mut self, id: u64, text: &str, parameters: &[&dyn Param]) {
        let slot = self.statements.acquire(text, parameters);
        let statement = &self.statements[slot];
        if statement.standing != Standing::Absent && !statement.name.is_empty() {
            let number = statement.number;
            self.statements.to_close.push(number);
        }
        let due = self.put_parse(slot, self.prepares()).and(self.put_describe(slot));
        let number = self.statements[slot].number;
        self.book(id, Kind::Own, slot, number, due, Format::Text);
    }

    /// Makes the server lock a statement's tables until the end of the transaction: by a Bind that nothing executes, or
    /// where it is not prepared by a Parse.
    pub(super) fn put_lock(&mut self, id: u64, text: &str, parameters: &[&dyn Param]) {
        let slot = self.statements.acquire(text, parameters);
        let start = self.stream.out.len();
        let is_ready =
            self.statements[slot].standing == Standing::Ready && !self.statements.needs_parse(slot);
        if is_ready && self.put_bind(slot, &Request::new(text, parameters)).is_ok() {
            let number = self.statements[slot].number;
            return self.book(id, Kind::Own, slot, number, Due::BIND, Format::Text);
        }
        self.stream.out.truncate(start);
        self.statements.release(slot);
        self.put_prepare_anew(id, text, parameters);
    }

    fn put_parse(&mut self, slot: Slot, keeps: bool) -> Due {
        self.statements.rename(slot, keeps);
        let statement = &self.statements[slot];
        let declared = statement.declared();
        let mut oids = Vec::new();
        if declared.iter().any(|oid| *oid != 0) {
            oids.extend(declared.iter().flat_map(|oid| oid.to_be_bytes()));
        }
        let text = self.encoded(statement.text());
        Parse::typed(&statement.name, &text, &oids).encode(&mut self.stream.out);
        Due::PARSE
    }

    fn put_describe(&mut self, slot: Slot) -> Due {
        let name = &self.statements[slot].name;
        StatementOrPortal::Statement(name).encode(frontend::DESCRIBE, &mut self.stream.out);
        Due::PARAMETERS.and(Due::COLUMNS)
    }

    fn put_bind(&mut self, slot: Slot, request: &Request<'_>) -> Result<(), Error> {
        let statement = &self.statements[slot];
        let types = if statement.standing == Standing::Ready { &statement.parameters[..] } else { &[] };
        let limit = PARAMETERS_MAX;
        let count = u16::try_from(request.parameters.len())
            .map_err(|_| Error::TooLarge { what: "the number of parameters", limit })?;
        let formats = match request.format {
            Format::Binary => Formats::of_codes(BINARY),
            Format::Text => Formats::default(),
        };
        let start = self.stream.out.len();
        let portal = request.portal.as_bytes();
        encode_bind(&mut self.stream.out, portal, &statement.name, formats, count, |index, out| {
            let parameter = request.parameters[index];
            parameter
                .put(types.get(index).copied().unwrap_or_default(), out)
                .map_err(|problem| Error::Parameter { number: index + 1, problem: problem.into() })
        })?;
        if self.stream.out.len() - start > self.limits.bytes {
            return Err(Error::TooLarge { what: "the request", limit: self.limits.bytes });
        }
        Ok(())
    }

    /// Close for the statements that were pushed out of the cache, and for portals.
    fn put_closes(&mut self, id: u64) {
        while let Some(portal) = self.portals_to_close.pop() {
            StatementOrPortal::Portal(portal.as_bytes()).encode(frontend::CLOSE, &mut self.stream.out);
            // Number 0 is no statement's: it is not closed again if the server skips it, for then it is gone.
            self.book(id, Kind::Close, NO_SLOT, 0, Due::NONE, Format::Text);
        }
        while let Some(number) = self.statements.to_close.pop() {
            let mut name = Vec::new();
            put_name(&mut name, number);
            StatementOrPortal::Statement(&name).encode(frontend::CLOSE, &mut self.stream.out);
            self.book(id, Kind::Close, NO_SLOT, number, Due::NONE, Format::Text);
        }
    }

    fn book(&mut self, id: u64, kind: Kind, slot: Slot, number: u32, due: Due, format: Format) {
        let end = self.stream.position();
        self.count_trip();
        self.queue.push_back(Awaited { id, kind, slot, number, due, format, end });
        self.is_unsynced = true;
        self.is_unflushed = true;
    }
}
