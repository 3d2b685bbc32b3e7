//! One direction of one connection: what enters it, and when that leaves.
//!
//! ```text
//! admit ──> backlog ──window──> bottleneck ──half a round trip, jitter──> releases ──> pop_due
//!              ^                                                             │
//!              └──────────── acknowledgement, half a round trip ─────────────┘
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use crate::Moment;
use crate::bottleneck::Bottleneck;
use crate::jitter::Jitter;
use crate::spec::LinkSpec;
use crate::window::{MSS, TcpWindow};

/// The schedule of one direction of one connection. Bytes come out in the order in which they went in, all of them,
/// and none earlier than half a round trip later. It holds counts, not contents.
///
/// Contract: `admit`, `finish` or `abort` when something enters; then whenever [`next_event`](Self::next_event) is
/// reached, `advance` and `pop_due` until it returns `None`. The moments passed in must not run backwards by more
/// than the lanes of one bottleneck may be seen out of order.
#[derive(Debug, Clone)]
pub struct Lane {
    one_way: Duration,
    jitter: Jitter,
    window: Option<TcpWindow>,
    /// Admitted, not yet sent.
    backlog: usize,
    /// Follows the backlog.
    finish: bool,
    /// When the backlog may next move: the connection is open, its bytes have come, an acknowledgement is back.
    turn: Moment,
    releases: VecDeque<Release>,
    last_release: Moment,
}

/// Something that leaves the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// When.
    pub at: Moment,
    /// What.
    pub payload: Payload,
}

/// What travels in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// The next so many bytes.
    Bytes(usize),
    /// The sender will send no more (FIN). Nothing follows.
    Finish,
    /// The sender is gone (RST). Nothing follows.
    Reset,
}

/// How one burst crossed a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// When its first bytes arrived.
    pub first: Moment,
    /// When its last bytes arrived.
    pub last: Moment,
}

impl Lane {
    /// A lane of `link` whose sender may send from `opened_at` on. `stream` numbers the lanes of one link, so that
    /// each has its own jitter.
    pub fn new(link: &LinkSpec, opened_at: Moment, stream: u64) -> Self {
        Self {
            one_way: link.one_way(),
            jitter: Jitter::new(link.jitter / 2, link.seed, stream),
            window: link.tcp_window.then(|| TcpWindow::new(link.rtt)),
            backlog: 0,
            finish: false,
            turn: opened_at,
            releases: VecDeque::new(),
            last_release: Moment::ZERO,
        }
    }

    /// When the client of a connection begun at `started` may first send: it has waited for the SYN-ACK.
    pub fn client_opens_at(link: &LinkSpec, started: Moment) -> Moment {
        started + link.rtt
    }

    /// When the server of a connection begun at `started` may first send: the client's ACK has come.
    pub fn server_opens_at(link: &LinkSpec, started: Moment) -> Moment {
        started + link.rtt + link.one_way()
    }

    /// `bytes` enter at `now`.
    pub fn admit(&mut self, now: Moment, bytes: usize, bottleneck: &mut Bottleneck) {
        self.advance(now, bottleneck);
        if self.backlog == 0 {
            self.turn = self.turn.max(now);
            if let Some(window) = &mut self.window {
                window.begin_burst(self.turn);
            }
        }
        self.backlog += bytes;
        self.advance(now, bottleneck);
    }

    /// The sender closes its half at `now`; that arrives after everything it sent.
    pub fn finish(&mut self, now: Moment, bottleneck: &mut Bottleneck) {
        self.turn = self.turn.max(if self.backlog == 0 { now } else { Moment::ZERO });
        self.finish = true;
        self.advance(now, bottleneck);
    }

    /// The sender is gone at `now`: what it had not yet sent is lost, what is under way arrives before the news.
    pub fn abort(&mut self, now: Moment) {
        self.backlog = 0;
        self.finish = false;
        self.release(now, Payload::Reset);
    }

    /// Moves what may move by `now`.
    pub fn advance(&mut self, now: Moment, bottleneck: &mut Bottleneck) {
        while self.backlog > 0 && self.turn <= now {
            let room = self.window.as_mut().map_or(usize::MAX, |window| window.room(self.turn));
            if room == 0 {
                // A full window is under way, so its acknowledgement is too.
                let Some(next) = self.window.as_ref().and_then(TcpWindow::next_acknowledgement) else {
                    return;
                };
                self.turn = next;
                continue;
            }
            self.send(self.backlog.min(room), bottleneck);
        }
        if self.finish && self.backlog == 0 && self.turn <= now {
            self.finish = false;
            let passed = bottleneck.pass(self.turn, 0);
            self.release(passed, Payload::Finish);
        }
    }

    /// When `advance` or `pop_due` next has something to do; `None` while the lane is empty.
    pub fn next_event(&self) -> Option<Moment> {
        let release = self.releases.front().map(|release| release.at);
        let turn = (self.backlog > 0 || self.finish).then_some(self.turn);
        match (release, turn) {
            (Some(release), Some(turn)) => Some(release.min(turn)),
            (release, turn) => release.or(turn),
        }
    }

    /// What leaves next, and when, as far as it is known.
    pub fn next_release(&self) -> Option<Release> {
        self.releases.front().copied()
    }

    /// Takes what leaves by `now`, one release at a time.
    pub fn pop_due(&mut self, now: Moment) -> Option<Release> {
        if self.releases.front()?.at > now { None } else { self.releases.pop_front() }
    }

    /// Carries one burst to its end at once, as a forecast needs it: nothing else uses the lane meanwhile.
    pub fn carry(&mut self, now: Moment, bytes: usize, bottleneck: &mut Bottleneck) -> Transfer {
        self.admit(now, bytes, bottleneck);
        while self.backlog > 0 {
            self.advance(self.turn, bottleneck);
        }
        let first = self.releases.front().map_or(now, |release| release.at);
        let last = self.releases.back().map_or(now, |release| release.at);
        self.releases.clear();
        Transfer { first, last }
    }

    fn send(&mut self, bytes: usize, bottleneck: &mut Bottleneck) {
        let piece = bottleneck.piece(MSS);
        self.backlog -= bytes;
        let mut left = bytes;
        while left > 0 {
            let size = left.min(piece);
            left -= size;
            let passed = bottleneck.pass(self.turn, size);
            let released = self.release(passed, Payload::Bytes(size));
            if let Some(window) = &mut self.window {
                window.sent(self.turn, size, released + self.one_way);
            }
        }
    }

    /// Schedules the arrival of what has `passed` the bottleneck, never before what was sent earlier.
    fn release(&mut self, passed: Moment, payload: Payload) -> Moment {
        let at = (passed + self.one_way + self.jitter.delay()).max(self.last_release);
        self.last_release = at;
        match (self.releases.back_mut(), payload) {
            (Some(Release { at: last, payload: Payload::Bytes(held) }), Payload::Bytes(more))
                if *last == at =>
            {
                *held += more;
            }
            _ => self.releases.push_back(Release { at, payload }),
        }
        at
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
