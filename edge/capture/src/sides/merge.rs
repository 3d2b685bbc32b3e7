//! The marks of two captures, connection by connection, to where the time went.

use std::collections::{HashMap, HashSet};

use onetrip_ledger::sides::{NamedSplit, Split, TwoSides};

use super::clock::{Bounds, Clock};
use super::side::{Kind, Log, Mark};
use crate::tcp::{Way, place};

/// A place in a stream where numbers begin: those before have places, too.
const BASE: u64 = 1 << 32;

/// One of so many ends of segments is at the same place at both ends of a connection. By accident it is one in a hundred or less.
const LIKE_PART: usize = 8;

/// The same connection at both ends.
struct Pair<'a> {
    client: &'a Log,
    server: &'a Log,
    at_client: Ends,
    at_server: Ends,
}

/// Both directions at one end.
#[derive(Default)]
struct Ends {
    up: Passed,
    down: Passed,
}

/// When the bytes of one direction passed.
#[derive(Default)]
struct Passed {
    /// Sorted by place.
    points: Vec<Point>,
}

/// All bytes before a place had passed.
#[derive(Clone, Copy)]
struct Point {
    end: u64,
    at_ns: u64,
    /// Time in which the sender waited for the path since the connection began.
    waited_ns: u64,
    kind: Kind,
}

/// A request and its reply, as the client sees them: places in the streams, and times.
struct Turn {
    /// When the reply before ended, or the first request began.
    before_ns: u64,
    request: (u64, u64),
    request_ends_ns: u64,
    /// Waits for the path while it was sent.
    waited_ns: u64,
    reply: (u64, u64),
    reply_ends_ns: u64,
    is_reply_end_exact: bool,
    /// All of its times are those of segments that the capture has.
    is_exact: bool,
}

/// Why a turn's parts are not known.
enum Untold {
    Crossed,
    Missed,
    Unclocked,
}

/// What two captures say together; their clocks have steps of `step_ns`.
pub(super) fn merge(client: &[Log], server: &[Log], step_ns: u64) -> TwoSides {
    let pairs = pair(client, server);
    let times = || client.iter().flat_map(|log| &log.marks).map(|mark| mark.at_ns);
    let first_ns = times().min().unwrap_or_default();
    let mut bounds = Bounds::new(first_ns, times().max().unwrap_or_default());
    for pair in &pairs {
        pair.bound(&mut bounds);
    }
    let is_one_place = bounds.are_of_one_place();
    let clock = if is_one_place { Clock::default() } else { bounds.clock(step_ns) };
    let mut merged = TwoSides {
        is_one_place,
        clock: clock.told(first_ns),
        connections: pairs.len() as u64,
        client_only: (client.len() - pairs.len()) as u64,
        server_only: (server.len() - pairs.len()) as u64,
        ..TwoSides::default()
    };
    for pair in &pairs {
        let split = pair.split(&clock, step_ns);
        merged.totals.join(&split);
        let names = |log: &Log| [log.client.to_string(), log.server.to_string()];
        let [client, server] = names(pair.client);
        let is_same = (pair.client.client, pair.client.server) == (pair.server.client, pair.server.server);
        let seen_as = (!is_same).then(|| names(pair.server));
        merged.paths.push(NamedSplit { client, server, seen_as, split });
    }
    merged.paths.sort_by_key(|named| std::cmp::Reverse(named.split.turns));
    merged.paths.truncate(TwoSides::PATHS_MAX);
    merged
}

/// Finds the connections that both have: by the numbers of their SYNs, which no translation of addresses changes, else by addresses
/// and by numbers that both have seen.
fn pair<'a>(client: &'a [Log], server: &'a [Log]) -> Vec<Pair<'a>> {
    let mut by_isns: HashMap<_, Vec<usize>> = HashMap::new();
    let mut by_addresses: HashMap<_, Vec<usize>> = HashMap::new();
    for (place, log) in server.iter().enumerate() {
        if let [Some(up), Some(down)] = log.isns {
            by_isns.entry((up, down)).or_default().push(place);
        }
        by_addresses.entry((log.client, log.server)).or_default().push(place);
    }
    let mut used = HashSet::new();
    let mut pairs = Vec::new();
    for log in client {
        let isns = log.isns[0].zip(log.isns[1]);
        let alike = isns.and_then(|isns| by_isns.get(&isns)).into_iter().flatten();
        let same = by_addresses.get(&(log.client, log.server)).into_iter().flatten();
        let found = alike.chain(same).find_map(|place| {
            let is_free = !used.contains(place);
            let pair = is_free.then(|| Pair::new(log, &server[*place])).flatten()?;
            used.insert(*place);
            Some(pair)
        });
        pairs.extend(found);
    }
    pairs
}

impl<'a> Pair<'a> {
    /// The two together, if they are one connection: the numbers of their SYNs agree, and so do those of their segments.
    fn new(client: &'a Log, server: &'a Log) -> Option<Self> {
        let contradicts =
            |one: Option<u32>, other: Option<u32>| one.zip(other).is_some_and(|(one, other)| one != other);
        if (0..2).any(|way| contradicts(client.isns[way], server.isns[way])) {
            return None;
        }
        let at_client = Ends::of(client, &Ends::default());
        let at_server = Ends::of(server, &at_client);
        let likenesses = [at_client.up.likeness(&at_server.up), at_client.down.likeness(&at_server.down)];
        let mut told = likenesses.into_iter().flatten().peekable();
        if told.peek().is_none() || told.any(|is_alike| !is_alike) {
            return None;
        }
        Some(Self { client, server, at_client, at_server })
    }

    /// What its bytes say of the clocks.
    fn bound(&self, bounds: &mut Bounds) {
        for (left, arrived) in self.at_client.up.ways_to(&self.at_server.up) {
            bounds.went(left, arrived);
        }
        for (left, arrived) in self.at_server.down.ways_to(&self.at_client.down) {
            bounds.came(left, arrived);
        }
    }

    fn split(&self, clock: &Clock, step_ns: u64) -> Split {
        let mut split = Split::default();
        for turn in turns(self.client) {
            match self.parts(&turn, clock, step_ns) {
                Ok([client, there, server, back]) => {
                    split.turns += 1;
                    split.client.add(client);
                    split.there.add(there);
                    split.server.add(server);
                    split.back.add(back);
                }
                Err(Untold::Crossed) => split.crossed += 1,
                Err(Untold::Missed) => split.missed += 1,
                Err(Untold::Unclocked) => split.unclocked += 1,
            }
        }
        split
    }

    /// Times of a turn at the client, there, at the server, and back.
    fn parts(&self, turn: &Turn, clock: &Clock, step_ns: u64) -> Result<[u64; 4], Untold> {
        let Ends { up, down } = &self.at_server;
        if !(turn.is_exact && turn.is_reply_end_exact) {
            return Err(Untold::Missed);
        }
        let arrived = up.passed(turn.request.1).filter(|point| point.kind.has_arrival());
        let left = down.passed(turn.reply.1).filter(|point| point.kind.has_leaving());
        let (arrived, left) = arrived.zip(left).ok_or(Untold::Missed)?;
        if left.at_ns < arrived.at_ns {
            return Err(Untold::Crossed);
        }
        // By neither clock it is known how long the server took then.
        if clock.was_set(turn.request_ends_ns, turn.reply_ends_ns) {
            return Err(Untold::Unclocked);
        }
        let at_client = |at_ns, near_ns| clock.at_client(at_ns, near_ns).ok_or(Untold::Unclocked);
        // The error of the clocks is told apart; a step of theirs may put an arrival before its leaving.
        let after = |later: u64, earlier: u64| match later.checked_sub(earlier) {
            Some(passed) => Ok(passed),
            None if earlier - later <= 2 * step_ns => Ok(0),
            None => Err(Untold::Unclocked),
        };
        let there = after(at_client(arrived.at_ns, turn.request_ends_ns)?, turn.request_ends_ns)?;
        let back = after(turn.reply_ends_ns, at_client(left.at_ns, turn.reply_ends_ns)?)?;
        let all = turn.reply_ends_ns.saturating_sub(turn.request_ends_ns);
        let server = all.checked_sub(there + back).ok_or(Untold::Unclocked)?;
        let held = down.waited_ns(turn.reply).min(server);
        let sent = turn.request_ends_ns.saturating_sub(turn.before_ns);
        let waited = turn.waited_ns.min(sent);
        Ok([sent - waited, there + waited, server - held, back + held])
    }
}

impl Ends {
    /// The marks of a connection, with places that are near those of the same bytes at the other end.
    fn of(log: &Log, other: &Self) -> Self {
        let points = |way: Way, other: &Passed| {
            let mut next = other.points.first().map(|point| point.end);
            let mut waited_ns = 0;
            let marks = log.marks.iter().filter(|mark| mark.way == way);
            let points = marks.map(|mark| {
                waited_ns += mark.waited_ns;
                let end = follow(&mut next, mark);
                Point { end, at_ns: mark.at_ns, waited_ns, kind: mark.kind }
            });
            Passed { points: points.collect() }
        };
        Self { up: points(Way::Up, &other.up), down: points(Way::Down, &other.down) }
    }
}

/// The place of a mark, after the one before it.
fn follow(next: &mut Option<u64>, mark: &Mark) -> u64 {
    let end = next.map_or(BASE + u64::from(mark.end), |next| place(next, mark.end));
    *next = Some(end);
    end
}

impl Passed {
    /// Whether these are the bytes of the other, as segments in both end at the same places; `None` where one of the two has none.
    /// Hardware and kernels cut and join segments, so that only some of the ends need be the same.
    fn likeness(&self, other: &Self) -> Option<bool> {
        let (here, there) = (self.ends(), other.ends());
        let first = (*here.first()?).max(*there.first()?);
        let last = (*here.last()?).min(*there.last()?);
        let within = |ends: &[u64]| {
            let from = ends.partition_point(|end| *end < first);
            ends[from..].partition_point(|end| *end <= last)
        };
        let both = here.iter().filter(|end| there.binary_search(end).is_ok()).count();
        let fewest = within(&here).min(within(&there));
        Some(both > 0 && both * LIKE_PART >= fewest)
    }

    /// Where the segments ended that were captured.
    fn ends(&self) -> Vec<u64> {
        let seen = self.points.iter().filter(|point| matches!(point.kind, Kind::Data | Kind::Filled));
        seen.map(|point| point.end).collect()
    }

    /// When all bytes before a place had passed; `None` where they passed before the capture began, or did not.
    fn passed(&self, end: u64) -> Option<Point> {
        let place = self.points.partition_point(|point| point.end < end);
        self.points.get(place).filter(|point| place > 0 || point.end == end).copied()
    }

    /// Waits for the path between the first and the last of these bytes.
    fn waited_ns(&self, bytes: (u64, u64)) -> u64 {
        let until = |end: u64| {
            let place = self.points.partition_point(|point| point.end < end);
            self.points.get(place).map_or(0, |point| point.waited_ns)
        };
        until(bytes.1).saturating_sub(until(bytes.0))
    }

    /// When bytes passed here and at the other end, for each that both saw.
    fn ways_to<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let mut here = 0;
        let first = self.points.first().map_or(0, |point| point.end);
        let arrivals =
            other.points.iter().filter(move |arrival| arrival.kind.has_arrival() && arrival.end >= first);
        arrivals.filter_map(move |arrival| {
            while self.points.get(here).is_some_and(|left| left.end < arrival.end) {
                here += 1;
            }
            let left = self.points.get(here).filter(|left| left.kind.has_leaving())?;
            Some((left.at_ns, arrival.at_ns))
        })
    }
}

/// The turns of a conversation, by what its client saw; one without a reply is none.
fn turns(log: &Log) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut turn: Option<Turn> = None;
    let (mut up, mut down) = (None, None);
    for mark in &log.marks {
        let next = if mark.way == Way::Up { &mut up } else { &mut down };
        let start = *next;
        let end = follow(next, mark);
        let is_exact = if mark.way == Way::Up { mark.kind.has_leaving() } else { mark.kind.has_arrival() };
        if mark.kind == Kind::Syn {
            continue;
        }
        match (mark.way, &mut turn) {
            (Way::Up, Some(asked)) if asked.reply_ends_ns == 0 => {
                asked.request.1 = end;
                asked.request_ends_ns = mark.at_ns;
                asked.waited_ns += mark.waited_ns;
                asked.is_exact &= is_exact;
            }
            (Way::Up, _) => {
                let before_ns = turn.as_ref().map_or(mark.at_ns, |before| before.reply_ends_ns);
                let is_after_exact = turn.as_ref().is_none_or(|before| before.is_reply_end_exact);
                turns.extend(turn.replace(Turn {
                    before_ns,
                    request: (start.unwrap_or(end), end),
                    request_ends_ns: mark.at_ns,
                    waited_ns: 0,
                    reply: (0, 0),
                    reply_ends_ns: 0,
                    is_reply_end_exact: false,
                    is_exact: is_exact && is_after_exact,
                }));
            }
            (Way::Down, Some(asked)) => {
                if asked.reply_ends_ns == 0 {
                    asked.reply.0 = start.unwrap_or(end);
                }
                asked.reply.1 = end;
                asked.reply_ends_ns = mark.at_ns;
                asked.is_reply_end_exact = is_exact;
            }
            (Way::Down, None) => {}
        }
    }
    turns.extend(turn.filter(|asked| asked.reply_ends_ns > 0));
    turns
}
