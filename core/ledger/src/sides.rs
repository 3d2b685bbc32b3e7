//! What captures at both ends of a path say together: where each millisecond went. Captures gather it, a report shows it.

use serde::Serialize;

use crate::network::Times;

/// What two captures of one path say together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TwoSides {
    /// The server's clock against the client's; `None` where no connection has data that both captures saw in both directions.
    pub clock: Option<ClockOffset>,
    /// All bytes passed both captures at the same time: they were made at one place, or one is a copy of the other. There is no
    /// clock then, and no turn with parts.
    #[serde(rename = "one_place")]
    pub is_one_place: bool,
    /// All connections together.
    pub totals: Split,
    /// Connections that both captures have.
    pub connections: u64,
    /// Connections with data that only the client's capture has.
    pub client_only: u64,
    /// Connections with data that only the server's capture has.
    pub server_only: u64,
    /// Those with most turns, most first, at most [`Self::PATHS_MAX`].
    pub paths: Vec<NamedSplit>,
}

impl TwoSides {
    /// Most connections that are named.
    pub const PATHS_MAX: usize = 50;
}

/// The server's clock against the client's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ClockOffset {
    /// The server's clock less the client's when the client's capture began, in nanoseconds.
    pub offset_ns: i64,
    /// The offset is off by at most this: half of the shortest way there and back that was seen.
    pub error_ns: u64,
    /// What the server's clock gains, in billionths; zero where a constant offset explains all times.
    pub drift_ppb: i64,
    /// Times that one of the clocks was set or changed its rate.
    pub steps: u64,
    /// Bytes' ways of which both ends were seen, and which the offset was told from.
    pub samples: u64,
    /// No offset explains the times: bytes arrive before they leave. The captures are of different paths, or the two are mistaken
    /// for each other.
    #[serde(rename = "impossible")]
    pub is_impossible: bool,
}

/// Where the time of turns went. The four parts add up to the time from the first request to the last reply of the turns that
/// are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Split {
    /// Turns whose parts are known: a request, and its reply.
    pub turns: u64,
    /// Turns that are left out because the reply's end left the server before the request's end arrived: the client pipelines.
    pub crossed: u64,
    /// Turns that are left out because one of the captures missed packets of theirs, or has not seen them.
    pub missed: u64,
    /// Turns that are left out because a clock was set while they lasted, or because no clock is known.
    pub unclocked: u64,
    /// From a reply's end to the end of the next request, at the client.
    pub client: Times,
    /// A request's end on its way to the server, and waits for the path while the request was sent.
    pub there: Times,
    /// From the request's end to the end of its reply, at the server.
    pub server: Times,
    /// The reply's end on its way to the client, and waits for the path while the reply was sent.
    pub back: Times,
}

/// A connection by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NamedSplit {
    /// Who connected, as the client's capture has it.
    pub client: String,
    /// To whom.
    pub server: String,
    /// Both as the server's capture has them, where addresses were translated between the captures.
    pub seen_as: Option<[String; 2]>,
    /// Where its time went.
    pub split: Split,
}

impl Split {
    /// All of its time, in nanoseconds.
    pub fn all_ns(&self) -> u64 {
        [self.client, self.there, self.server, self.back].iter().map(|times| times.sum_ns).sum()
    }

    /// All of another.
    pub fn join(&mut self, other: &Self) {
        self.turns += other.turns;
        self.crossed += other.crossed;
        self.missed += other.missed;
        self.unclocked += other.unclocked;
        self.client.join(&other.client);
        self.there.join(&other.there);
        self.server.join(&other.server);
        self.back.join(&other.back);
    }
}
