//! Patterns of avoidable trips: their codes, what proves them, and what to do about them.

mod code;
mod concepts;
mod mute;
mod page;
mod would;

pub use code::Code;
pub use concepts::{CONCEPTS, Concept};
pub use mute::{MuteError, MuteRule, Mutes};
pub use page::{Example, page};
pub use would::Would;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Driver, Moment, Obstacle};

/// One pattern of avoidable trips, with everything that shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Which pattern.
    pub code: Code,
    /// The statement that is run too often; the source of a loop comes second.
    pub statements: Vec<String>,
    /// Who sent it.
    pub driver: Driver,
    /// Where it happened, at most [`Finding::SCOPES_MAX`] labels.
    pub scopes: Vec<String>,
    /// How often the whole pattern was seen: loops, runs, connections.
    pub occurrences: u64,
    /// Trips that the pattern took.
    pub trips: u64,
    /// Trips of them that the fix saves.
    pub avoidable: u64,
    /// Trips that remedies took out of the pattern.
    pub removed: u64,
    /// Trips of the pattern that remedies would have taken out, at least, had they been on.
    pub would: Would,
    /// Trips that are left, by what kept remedies from them, where that is known.
    pub left: BTreeMap<Obstacle, u64>,
    /// Why the statement is not known to only read, where that kept remedies from it.
    pub impure: Option<String>,
    /// Time that the program waited in the avoidable trips, in nanoseconds.
    pub waited_ns: u64,
    /// What of that time the path took, in nanoseconds.
    pub wire_ns: u64,
    /// What shows it.
    pub evidence: Evidence,
    /// Some of its exchanges, at most [`Finding::SPOTS_MAX`].
    #[serde(skip)]
    pub spots: Vec<Spot>,
    /// The lines of the program that sent them, most first, where these are known; at most [`Finding::SITES_MAX`].
    pub sites: Vec<Site>,
    /// What to change.
    pub fix: String,
}

/// One exchange, by which the line of the program that sent it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// When its connection was opened.
    pub opened_at: Moment,
    /// When its first byte came.
    pub sent_at: Moment,
}

/// A line of the program that has sent exchanges of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Where it was called, such as `shop/views.py:41 in orders`; the innermost first.
    pub frames: Vec<String>,
    /// How many of the finding's spots it has sent.
    pub spots: u64,
}

impl Finding {
    /// Most scopes that a finding names.
    pub const SCOPES_MAX: usize = 5;
    /// Most exchanges that a finding keeps.
    pub const SPOTS_MAX: usize = 64;
    /// Most lines of the program that a finding names.
    pub const SITES_MAX: usize = 3;

    /// Names the lines of the program that sent the finding's exchanges: `frames_of` tells those of one, if it knows them.
    pub fn locate<'f>(&mut self, mut frames_of: impl FnMut(&Spot) -> Option<&'f [String]>) {
        let mut sites: Vec<Site> = Vec::new();
        for frames in self.spots.iter().filter_map(&mut frames_of) {
            match sites.iter_mut().find(|site| site.frames == frames) {
                Some(site) => site.spots += 1,
                None => sites.push(Site { frames: frames.to_vec(), spots: 1 }),
            }
        }
        sites.sort_by(|a, b| (b.spots, &a.frames).cmp(&(a.spots, &b.frames)));
        sites.truncate(Self::SITES_MAX);
        self.sites = sites;
    }

    /// Time that the fix saves where a round trip takes `rtt_ns`, in nanoseconds.
    pub fn price_ns(&self, rtt_ns: f64) -> f64 {
        self.waited_ns.saturating_sub(self.wire_ns) as f64 + self.avoidable as f64 * rtt_ns
    }

    /// Code of its driver's programs that makes such a finding, and what to write instead; `None` where there is no example of that
    /// driver, or where the fix is another one than the example shows.
    pub fn example(&self) -> Option<Example> {
        (self.fix == self.driver.fix(self.code)).then(|| page::example(self.code, self.driver))?
    }
}

/// What shows that a pattern is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Evidence {
    /// Parameters walked the rows of an earlier result.
    Walk {
        /// For each parameter that varied: its number, and the column that it came from.
        sources: Vec<(u16, String)>,
        /// First and last row that was walked, counted from one, of the longest loop.
        rows: (u64, u64),
    },
    /// One statement wrote a row each time.
    Rows {
        /// Rows written.
        rows: u64,
        /// Transactions that they took.
        transactions: u64,
    },
    /// A result was fetched in small pieces.
    Fetches {
        /// Rows asked for each time.
        size: u64,
        /// Rows in all.
        rows: u64,
    },
    /// The same statement with the same values gave the same result.
    Repeats {
        /// Different sets of values.
        distinct: u64,
        /// Runs in all.
        runs: u64,
    },
    /// Transaction control with nothing else in its trip.
    Alone {
        /// BEGINs.
        begins: u64,
        /// COMMITs of transactions with at most one statement.
        commits: u64,
        /// Transactions.
        transactions: u64,
    },
    /// A statement was prepared again although it had been prepared on that connection.
    Prepares {
        /// Trips that only prepared.
        prepares: u64,
        /// Runs of the statement.
        runs: u64,
    },
    /// Connections one after another, each for a statement or two.
    Connections {
        /// Connections.
        connections: u64,
        /// Trips that opened them.
        connect_trips: u64,
    },
    /// One template run once for each of many values that come from nowhere in the traffic.
    Values {
        /// Different sets of values, summed over the bursts.
        distinct: u64,
        /// Runs in all.
        runs: u64,
    },
    /// Large objects, each read by several calls.
    Objects {
        /// Objects opened.
        objects: u64,
        /// Calls with a trip of their own, opening and closing included.
        calls: u64,
    },
    /// Trips that did no work of the program's.
    Chatter {
        /// Pings.
        pings: u64,
        /// SET, RESET, SHOW and DISCARD.
        settings: u64,
        /// Reads of the system catalogue and of session functions.
        lookups: u64,
    },
    /// Reads one after another, none of which needs the result of another of its group.
    Groups {
        /// Groups.
        groups: u64,
        /// Reads in them.
        statements: u64,
    },
    /// Two statements that one could replace: the first is run for the sake of the second.
    Pairs {
        /// Pairs.
        pairs: u64,
    },
    /// Transactions that only read and were rolled back.
    CheckIns {
        /// ROLLBACKs with a trip of their own.
        rollbacks: u64,
        /// Reads that these ended.
        reads: u64,
    },
}

impl Evidence {
    /// Adds what shows another occurrence of the same pattern.
    pub(crate) fn merge(&mut self, more: Self) {
        match (self, more) {
            (Self::Walk { rows, sources }, Self::Walk { rows: other, sources: other_sources }) => {
                if other.1 - other.0 > rows.1 - rows.0 {
                    *rows = other;
                    *sources = other_sources;
                }
            }
            (Self::Rows { rows, transactions }, Self::Rows { rows: r, transactions: t }) => {
                *rows += r;
                *transactions += t;
            }
            (Self::Fetches { size, rows }, Self::Fetches { size: s, rows: r }) => {
                *size = (*size).min(s);
                *rows += r;
            }
            (Self::Repeats { distinct, runs }, Self::Repeats { distinct: d, runs: r }) => {
                *distinct += d;
                *runs += r;
            }
            (
                Self::Alone { begins, commits, transactions },
                Self::Alone { begins: b, commits: c, transactions: t },
            ) => {
                *begins += b;
                *commits += c;
                *transactions += t;
            }
            (Self::Prepares { prepares, runs }, Self::Prepares { prepares: p, runs: r }) => {
                *prepares += p;
                *runs += r;
            }
            (
                Self::Connections { connections, connect_trips },
                Self::Connections { connections: c, connect_trips: t },
            ) => {
                *connections += c;
                *connect_trips += t;
            }
            (Self::Values { distinct, runs }, Self::Values { distinct: d, runs: r }) => {
                *distinct += d;
                *runs += r;
            }
            (Self::Objects { objects, calls }, Self::Objects { objects: o, calls: c }) => {
                *objects += o;
                *calls += c;
            }
            (
                Self::Chatter { pings, settings, lookups },
                Self::Chatter { pings: p, settings: s, lookups: l },
            ) => {
                *pings += p;
                *settings += s;
                *lookups += l;
            }
            (Self::Groups { groups, statements }, Self::Groups { groups: g, statements: s }) => {
                *groups += g;
                *statements += s;
            }
            (Self::Pairs { pairs }, Self::Pairs { pairs: p }) => *pairs += p,
            (Self::CheckIns { rollbacks, reads }, Self::CheckIns { rollbacks: b, reads: r }) => {
                *rollbacks += b;
                *reads += r;
            }
            // Entries are keyed by code, and a code has one kind of evidence.
            (_, _) => {}
        }
    }
}
