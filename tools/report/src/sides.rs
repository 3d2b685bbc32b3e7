//! Two captures of one path, as a report shows them.

use onetrip_ledger::network::Times;

/// Where each millisecond went, by a capture at the client and one at the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct TwoSides {
    /// The server's clock against the client's; `None` where no bytes tell.
    pub clock: Option<ClockOffset>,
    /// All bytes passed both captures at the same time: no part is known.
    pub one_place: bool,
    /// All connections together.
    pub totals: Split,
    /// Connections that both captures have.
    pub connections: u64,
    /// Connections with data that only the client's capture has.
    pub client_only: u64,
    /// Connections with data that only the server's capture has.
    pub server_only: u64,
    /// Those with most turns, most first.
    pub paths: Vec<NamedSplit>,
}

/// The server's clock against the client's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ClockOffset {
    /// The server's clock less the client's, in nanoseconds.
    pub offset_ns: i64,
    /// The offset is off by at most this.
    pub error_ns: u64,
    /// What the server's clock gains, in billionths.
    pub drift_ppb: i64,
    /// Times that one of the clocks was set or changed its rate.
    pub steps: u64,
    /// What the offset was told from.
    pub samples: u64,
    /// No offset explains the times.
    pub impossible: bool,
}

/// Where the time of turns went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Split {
    /// Turns whose parts are known.
    pub turns: u64,
    /// Turns left out as client and server sent at once.
    pub crossed: u64,
    /// Turns left out as packets of theirs were not captured.
    pub missed: u64,
    /// Turns left out as a clock was set while they lasted, or as no clock is known.
    pub unclocked: u64,
    /// At the client.
    pub client: Times,
    /// On the way to the server.
    pub there: Times,
    /// At the server.
    pub server: Times,
    /// On the way back.
    pub back: Times,
}

/// A connection by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct NamedSplit {
    /// Who connected, as the client's capture has it.
    pub client: String,
    /// To whom.
    pub server: String,
    /// Both as the server's capture has them, where addresses were translated.
    pub seen_as: Option<[String; 2]>,
    /// Where its time went.
    pub split: Split,
}

impl Split {
    /// All of its time, in nanoseconds.
    pub(crate) fn all_ns(&self) -> u64 {
        [self.client, self.there, self.server, self.back].iter().map(|times| times.sum_ns).sum()
    }
}
