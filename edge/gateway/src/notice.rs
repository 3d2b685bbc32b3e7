//! One line about something that went wrong and did not stop the gateway. A thread of its own writes it: whoever has
//! something to tell never waits for whoever reads standard error.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onetrip_session::SessionError;
use onetrip_wire::calendar;

use crate::error::{GatewayError, with_causes};

/// Lines of one kind that are printed in a period: a broken network, or a port scan, must not fill a disk, nor hide
/// what is of another kind.
const LINES_MAX: u32 = 10;
const PERIOD: Duration = Duration::from_secs(60);
/// Lines that may wait for standard error; those beyond are dropped and counted.
const WAITING_MAX: usize = 256;
/// How long the end waits until they are written.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a line is about; each is limited by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Clients that do not speak the protocol.
    Client,
    /// The database cannot be reached.
    Dial,
    /// Connections to the database that broke, or do not speak the protocol.
    Server,
    /// Cancel requests.
    Cancel,
    /// Connections that cannot be accepted.
    Accept,
    /// What may never end at the level that the gateway sets.
    Level,
    /// Connections that cannot be seen into.
    Unseen,
    /// The trace.
    Trace,
}

/// Whose connection it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// The connection's number, as in the trace.
    pub(crate) number: u32,
    /// Where the client is; `None` on a Unix socket.
    pub(crate) address: Option<SocketAddr>,
}

/// How many lines of a kind were printed.
#[derive(Debug, Clone, Copy)]
struct Printed {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

const KINDS: usize = Kind::Trace as usize + 1;

static PRINTED: Mutex<[Printed; KINDS]> = Mutex::new([Printed { since: None, lines: 0, left_out: 0 }; KINDS]);

/// Lines on their way to standard error.
#[derive(Debug)]
struct Lines {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug)]
struct Waiting {
    lines: VecDeque<String>,
    dropped: u64,
    /// The thread has taken a line and not written it yet.
    is_writing: bool,
    /// There is a thread that writes.
    is_served: bool,
}

static LINES: Lines = Lines::new();

/// Prints a line, unless there were many of its kind lately; then it is counted, and the next line tells the count.
pub(crate) fn notice(kind: Kind, peer: Option<Peer>, text: &str) {
    let now = Instant::now();
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(left_out) = printed[kind as usize].line_at(now) else { return };
    LINES.print(line(SystemTime::now(), peer, text, left_out));
}

/// Tells what was left out and not told yet, and waits until all lines are written, but not for long.
pub(crate) fn tell_the_rest() {
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    let left_out: u64 = printed.iter_mut().map(|printed| std::mem::take(&mut printed.left_out)).sum();
    drop(printed);
    if left_out > 0 {
        let text = format!("{left_out} more lines like the last ones of their kind were not printed");
        LINES.print(line(SystemTime::now(), None, &text, 0));
    }
    wait_until_told();
}

/// Prints a line of the program that the gateway is in, without waiting for who reads standard error.
pub fn tell(line: String) {
    LINES.print(line);
}

/// Waits until all lines are written, but not for long.
pub fn wait_until_told() {
    LINES.wait(PATIENCE);
}

impl Lines {
    const fn new() -> Self {
        let waiting = Waiting { lines: VecDeque::new(), dropped: 0, is_writing: false, is_served: false };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    /// Hands a line to the thread, which is started for the first one.
    fn print(&'static self, line: String) {
        let mut waiting = self.waiting();
        if !waiting.is_served {
            let thread = thread::Builder::new().name("onetrip-notice".to_owned());
            // Not through `io::stderr`: its lock would make others wait as well.
            waiting.is_served = thread.spawn(move || self.write(write_all)).is_ok();
        }
        waiting.hand_over(line);
        self.changed.notify_all();
    }

    /// Writes what comes, for ever.
    fn write(&self, mut write: impl FnMut(&[u8])) {
        let mut waiting = self.waiting();
        loop {
            let Some(line) = waiting.take() else {
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(waiting);
            write(line.as_bytes());
            waiting = self.waiting();
            waiting.is_writing = false;
            self.changed.notify_all();
        }
    }

    /// Waits until all is written, but not for longer than `patience`.
    fn wait(&self, patience: Duration) {
        let done = self.changed.wait_timeout_while(self.waiting(), patience, |waiting| !waiting.is_empty());
        drop(done.unwrap_or_else(PoisonError::into_inner));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn hand_over(&mut self, line: String) {
        if self.lines.len() < WAITING_MAX {
            self.lines.push_back(line);
        } else {
            self.dropped += 1;
        }
    }

    /// The next line to write: that on dropped ones comes after those before them.
    fn take(&mut self) -> Option<String> {
        let next = self.lines.pop_front().or_else(|| {
            let dropped = std::mem::take(&mut self.dropped);
            let text = format!("{dropped} lines were dropped: nobody read standard error");
            (dropped > 0).then(|| line(SystemTime::now(), None, &text, 0))
        });
        self.is_writing = next.is_some();
        next
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0 && !self.is_writing
    }
}

/// Writes to standard error, for as long as that takes. Nobody may be there to read it.
fn write_all(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::write(std::io::stderr(), bytes)) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) => return,
        }
    }
}

/// Tells why a connection ended.
pub(crate) fn tell_end(peer: Peer, end: &Result<(), GatewayError>) {
    match end {
        // A client that vanishes is its own affair.
        Ok(()) | Err(GatewayError::Socket { side: "client", .. }) => {}
        Err(error) => notice(kind_of(error), Some(peer), &with_causes(error)),
    }
}

/// What a connection's end is about.
fn kind_of(error: &GatewayError) -> Kind {
    match error {
        GatewayError::Session(
            SessionError::Client(_) | SessionError::BindingMissed | SessionError::PasswordKept(_),
        )
        | GatewayError::ClientTls { .. }
        | GatewayError::NoProtocol
        | GatewayError::NoTls => Kind::Client,
        GatewayError::Dial(_) | GatewayError::Descriptors { .. } | GatewayError::Tls(_) => Kind::Dial,
        _ => Kind::Server,
    }
}

impl Printed {
    /// Whether a line may be printed now, and how many were left out before it.
    fn line_at(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.duration_since(since) >= PERIOD) {
            self.since = Some(now);
            self.lines = 0;
        }
        if self.lines >= LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

fn line(now: SystemTime, peer: Option<Peer>, text: &str, left_out: u64) -> String {
    let mut line = String::from("onetrip: ");
    put_time(&mut line, now);
    // Writing to a string does not fail.
    let _ = match peer {
        None => Ok(()),
        Some(Peer { number, address: Some(address) }) => write!(line, " connection {number} from {address}:"),
        Some(Peer { number, address: None }) => write!(line, " connection {number}:"),
    };
    let text = text.replace(['\n', '\r'], "; ").replace("; \t", "; ");
    let _ = write!(line, " {text}");
    if left_out > 0 {
        let _ = write!(line, " ({left_out} lines like it were left out before)");
    }
    line.push('\n');
    line
}

/// Puts a time as RFC 3339 has it, in UTC, to the millisecond.
fn put_time(out: &mut String, time: SystemTime) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (year, month, day) = calendar::date_of((seconds / 86_400) as i64);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // Writing to a string does not fail.
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_time_connection_and_peer() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7);
        let peer = Peer { number: 12, address: Some(([127, 0, 0, 1], 51_234).into()) };
        assert_eq!(
            line(at(1_795_385_541), Some(peer), "gone\n\tfor good", 0),
            "onetrip: 2026-11-22T22:12:21.007Z connection 12 from 127.0.0.1:51234: gone; for good\n"
        );
        assert_eq!(
            line(at(951_782_400), None, "full", 3),
            "onetrip: 2000-02-29T00:00:00.007Z full (3 lines like it were left out before)\n"
        );
    }

    #[test]
    fn who_prints_does_not_wait_for_who_reads_and_what_is_dropped_is_counted() {
        static BLOCKED: Lines = Lines::new();
        let (reads, read) = std::sync::mpsc::channel::<()>();
        let (writes, written) = std::sync::mpsc::channel();
        BLOCKED.waiting().is_served = true;
        thread::spawn(move || {
            BLOCKED.write(|line| {
                let _ = read.recv();
                let _ = writes.send(String::from_utf8_lossy(line).into_owned());
            });
        });
        let numbered = |number: usize| format!("line {number}\n");
        BLOCKED.print(numbered(0));
        while !BLOCKED.waiting().lines.is_empty() {
            thread::yield_now();
        }
        (1..=WAITING_MAX + 7).for_each(|number| BLOCKED.print(numbered(number)));
        let started = Instant::now();
        BLOCKED.wait(Duration::from_millis(50));
        assert!((50..5_000).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
        drop(reads); // from here on it is read
        BLOCKED.wait(Duration::from_secs(60));
        let lines: Vec<String> = written.try_iter().collect();
        assert_eq!(lines[..=WAITING_MAX], (0..=WAITING_MAX).map(numbered).collect::<Vec<_>>());
        let [told] = &lines[WAITING_MAX + 1..] else { panic!("{lines:?}") };
        assert!(told.contains(" 7 lines were dropped: nobody read standard error"), "{told}");
    }

    #[test]
    fn a_kind_falls_silent_for_a_minute_and_never_for_good() {
        let mut printed = Printed { since: None, lines: 0, left_out: 0 };
        let start = Instant::now();
        let told: Vec<_> = (0..25).map(|_| printed.line_at(start)).collect();
        assert_eq!(told.iter().filter(|line| line.is_some()).count(), 10);
        assert_eq!(printed.line_at(start + PERIOD), Some(15));
        assert_eq!(printed.line_at(start + PERIOD), Some(0));
    }
}
