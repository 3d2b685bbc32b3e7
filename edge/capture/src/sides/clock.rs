//! The server's clock against the client's.
//!
//! A byte arrives after it has left. So each byte of the client's bounds from above how far the server's clock is ahead, and each
//! byte of the server's bounds it from below. Between the bounds lies a straight line, flat unless the clocks are seen to run at
//! different rates. Where no line fits, or two fit much better than one, a clock was set or changed its rate, and another line
//! begins.

use std::ops::Range;

use onetrip_ledger::sides::ClockOffset;

/// Spans of the capture, each with the tightest bounds of its bytes.
const SPANS: u64 = 128;
/// Clocks that differ by more than this rate are set, not slow.
const RATE_MAX: f64 = 1e-3;
/// Halvings of the range of rates: down to a hundred-millionth of a nanosecond per second.
const SEARCH_STEPS: u32 = 80;
/// A sloped line is believed where it is so much farther from the bounds than a flat one, and two lines where both are so much
/// farther than one: from here on the distance of the simpler says no more how wrong it may be.
const GAIN: f64 = 2.0;
/// Fewer spans do not tell a step that one line would do for: what is on its way a little longer looks like one.
const STEP_SPANS_MIN: usize = 16;
/// Fewer spans do not tell a rate: some rate goes through any two.
const RATE_SPANS_MIN: usize = 4;

/// Gathers bounds.
#[derive(Debug)]
pub(super) struct Bounds {
    first_ns: u64,
    width_ns: u64,
    spans: Vec<Span>,
    samples: u64,
    /// Offsets are told relative to the first of them: the clocks may be decades apart, and the bounds a microsecond.
    base_ns: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Span {
    /// Time at the client, and the bound.
    above: Option<(u64, i64)>,
    below: Option<(u64, i64)>,
}

/// The offset over the client's time.
#[derive(Debug, Default)]
pub(super) struct Clock {
    stretches: Vec<Stretch>,
    is_impossible: bool,
    base_ns: i64,
    samples: u64,
    step_ns: u64,
}

/// A time in which no clock was set.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from_ns: u64,
    until_ns: u64,
    line: Line,
}

/// The offset over time.
#[derive(Debug, Clone, Copy)]
struct Line {
    origin_ns: u64,
    /// Offset at the origin, less the base.
    at_origin: f64,
    rate: f64,
    /// Distance to the nearest bounds; negative where some are not kept.
    margin: f64,
}

/// Spans that follow each other, and the line through them; `None` where they bound from one side only.
#[derive(Debug, Clone)]
struct Piece {
    spans: Range<usize>,
    line: Option<Line>,
}

/// Spans by their places, and the lines through them.
struct Fit<'a> {
    sound: Vec<(u64, &'a Span)>,
    /// Places of spans that no line goes through.
    left_out: Vec<u64>,
    /// How many of them contradict themselves.
    torn: usize,
    pieces: Vec<Piece>,
}

impl Bounds {
    /// For bytes that passed the client in this time.
    pub(super) fn new(first_ns: u64, last_ns: u64) -> Self {
        let width_ns = (last_ns.saturating_sub(first_ns) / SPANS).max(1) + 1;
        Self { first_ns, width_ns, spans: vec![Span::default(); SPANS as usize], samples: 0, base_ns: None }
    }

    /// A byte left the client and arrived at the server.
    pub(super) fn went(&mut self, left_ns: u64, arrived_ns: u64) {
        let bound = arrived_ns.wrapping_sub(left_ns) as i64;
        let above = &mut self.span(left_ns, bound).above;
        if above.is_none_or(|(_, least)| bound < least) {
            *above = Some((left_ns, bound));
        }
    }

    /// A byte left the server and arrived at the client.
    pub(super) fn came(&mut self, left_ns: u64, arrived_ns: u64) {
        let bound = left_ns.wrapping_sub(arrived_ns) as i64;
        let below = &mut self.span(arrived_ns, bound).below;
        if below.is_none_or(|(_, most)| bound > most) {
            *below = Some((arrived_ns, bound));
        }
    }

    fn span(&mut self, at_ns: u64, bound: i64) -> &mut Span {
        self.samples += 1;
        self.base_ns.get_or_insert(bound);
        let place = at_ns.saturating_sub(self.first_ns) / self.width_ns;
        &mut self.spans[place.min(SPANS - 1) as usize]
    }

    /// Whether all bytes passed both captures at the same time, by one clock or by two: no byte was on its way.
    pub(super) fn are_of_one_place(&self) -> bool {
        let is_base = |bound: Option<(u64, i64)>| bound.is_none_or(|(_, bound)| Some(bound) == self.base_ns);
        let are_base = self.spans.iter().all(|span| is_base(span.above) && is_base(span.below));
        self.is_two_sided() && are_base
    }

    /// Whether the offset is bounded from above and from below.
    fn is_two_sided(&self) -> bool {
        let has = |side: fn(&Span) -> bool| self.spans.iter().any(side);
        has(|span| span.above.is_some()) && has(|span| span.below.is_some())
    }

    /// The clock that they leave; times were told in steps of `step_ns`.
    pub(super) fn clock(&self, step_ns: u64) -> Clock {
        let base_ns = self.base_ns.unwrap_or_default();
        let least = -(step_ns as f64);
        let Fit { sound, left_out, torn, pieces } = self.fit(step_ns);
        let starts_ns = |place: u64| self.first_ns + place * self.width_ns;
        let is_left_out = |places: Range<u64>| left_out.iter().any(|place| places.contains(place));
        let stretches = pieces.iter().filter_map(|piece| {
            let line = match piece.spans.len() < RATE_SPANS_MIN {
                true => {
                    line(&sound[piece.spans.clone()], base_ns, 0.0).filter(|line| line.margin >= least)?
                }
                false => piece.line?,
            };
            let (first, last) = (sound[piece.spans.start].0, sound[piece.spans.end - 1].0);
            let is_begin = piece.spans.start == 0 && !is_left_out(0..first);
            let is_end = piece.spans.end == sound.len() && !is_left_out(last..SPANS);
            Some(Stretch {
                from_ns: if is_begin { 0 } else { starts_ns(first) },
                until_ns: if is_end { u64::MAX } else { starts_ns(last + 1) },
                line,
            })
        });
        let mut stretches: Vec<_> = stretches.collect();
        let two_sided = sound.iter().filter(|(_, span)| span.above.is_some() && span.below.is_some()).count();
        let is_impossible = self.is_two_sided() && (stretches.is_empty() || torn > two_sided);
        if is_impossible {
            stretches.clear();
        }
        Clock { stretches, is_impossible, base_ns, samples: self.samples, step_ns }
    }

    /// The fewest lines that do for the spans.
    fn fit(&self, step_ns: u64) -> Fit<'_> {
        let base_ns = self.base_ns.unwrap_or_default();
        let least = -(step_ns as f64);
        // A span during which a clock was set contradicts itself. So does one with a byte whose first copy a capture has missed.
        let has_bounds = |span: &Span| span.above.is_some() || span.below.is_some();
        let spans = (0..).zip(&self.spans).filter(|(_, span)| has_bounds(span));
        let (torn, mut sound): (Vec<_>, Vec<_>) =
            spans.partition(|span| line(&[*span], base_ns, RATE_MAX).is_some_and(|line| line.margin < least));
        let mut left_out: Vec<_> = torn.iter().map(|(place, _)| *place).collect();
        let mut pieces = self.joined(&sound, step_ns);
        // What agrees with none of its neighbours must not keep them apart.
        while pieces.iter().any(|piece| piece.line.is_none()) {
            let (kept, alone): (Vec<_>, Vec<_>) = pieces.into_iter().partition(|piece| piece.line.is_some());
            left_out.extend(alone.into_iter().flat_map(|piece| piece.spans).map(|place| sound[place].0));
            sound = kept.into_iter().flat_map(|piece| piece.spans).map(|place| sound[place]).collect();
            pieces = self.joined(&sound, step_ns);
        }
        // A clock that was set in the middle of a span, by less than a way takes, leaves a short piece between two long ones.
        let long = pieces.iter().filter(|piece| piece.is_long()).flat_map(|piece| piece.spans.clone());
        let between: Vec<_> = long.map(|place| sound[place]).collect();
        let without = self.joined(&between, step_ns);
        let is_step = |pair: &[Piece]| {
            let one = line(&between[pair[0].spans.start..pair[1].spans.end], base_ns, RATE_MAX);
            pair.iter()
                .all(|piece| one.zip(piece.line).is_some_and(|(one, line)| one.margin * GAIN < line.margin))
        };
        if without.len() > 1 && without.windows(2).all(is_step) {
            let is_left_out = |place: &u64| !between.iter().any(|(kept, _)| kept == place);
            left_out.extend(sound.iter().map(|(place, _)| *place).filter(is_left_out));
            (sound, pieces) = (between, without);
        } else if let Some(whole) = line(&sound, base_ns, RATE_MAX).filter(|line| line.margin >= least) {
            pieces = vec![Piece { spans: 0..sound.len(), line: Some(whole) }];
        }
        Fit { sound, left_out, torn: torn.len(), pieces }
    }

    /// Spans that one line goes through, joined: those first that agree best.
    fn joined(&self, spans: &[(u64, &Span)], step_ns: u64) -> Vec<Piece> {
        let base_ns = self.base_ns.unwrap_or_default();
        let piece = |range: Range<usize>| {
            let line = line(&spans[range.clone()], base_ns, RATE_MAX);
            Piece { spans: range, line }
        };
        let join = |pair: &[Piece]| {
            let joined = piece(pair[0].spans.start..pair[1].spans.end);
            joined.agreement(pair, step_ns as f64).map(|agreement| (agreement, joined))
        };
        let mut pieces: Vec<_> = (0..spans.len()).map(|place| piece(place..place + 1)).collect();
        let mut joins: Vec<_> = pieces.windows(2).map(join).collect();
        loop {
            let possible =
                joins.iter().enumerate().filter_map(|(place, join)| Some((place, join.as_ref()?.0)));
            let Some((place, _)) = possible.max_by(|one, other| one.1.total_cmp(&other.1)) else {
                return pieces;
            };
            let Some((_, joined)) = joins.remove(place) else { return pieces };
            pieces.splice(place..=place + 1, [joined]);
            // The joins on both sides are those of a longer piece now.
            for beside in place.saturating_sub(1)..=place {
                if beside < joins.len() {
                    joins[beside] = join(&pieces[beside..=beside + 1]);
                }
            }
        }
    }
}

impl Piece {
    /// How well the two that this one is made of agree: the part of their distance from the bounds that it keeps. `None` where they
    /// do not, as no line goes through both, or one that is long would lose too much.
    fn agreement(&self, pair: &[Piece], step: f64) -> Option<f64> {
        let Some(line) = self.line else { return Some(f64::INFINITY) };
        let margin = line.margin.max(step);
        let loses_much = |piece: &Piece| piece.line.is_some_and(|line| margin * GAIN < line.margin);
        if line.margin < -step || pair.iter().any(|piece| piece.is_long() && loses_much(piece)) {
            return None;
        }
        let margins = pair.iter().filter_map(|piece| piece.line).map(|line| line.margin);
        Some(margin / margins.fold(step, f64::max))
    }

    /// Whether it is evidence of a step that one line would do for.
    fn is_long(&self) -> bool {
        self.spans.len() >= STEP_SPANS_MIN
    }
}

/// The line farthest from all bounds of these spans.
fn line(spans: &[(u64, &Span)], base_ns: i64, rate_max: f64) -> Option<Line> {
    Line::between(
        spans.iter().filter_map(|(_, span)| span.above).collect(),
        spans.iter().filter_map(|(_, span)| span.below).collect(),
        base_ns,
        rate_max,
    )
}

impl Line {
    /// The line farthest from all bounds, of a rate that is no greater; `None` where they bound from one side only.
    fn between(above: Vec<(u64, i64)>, below: Vec<(u64, i64)>, base_ns: i64, rate_max: f64) -> Option<Self> {
        let origin_ns = above.iter().chain(&below).map(|(at_ns, _)| *at_ns).min()?;
        let point =
            |&(at_ns, bound): &(u64, i64)| ((at_ns - origin_ns) as f64, bound.wrapping_sub(base_ns) as f64);
        let above: Vec<_> = above.iter().map(point).collect();
        let below: Vec<_> = below.iter().map(point).collect();
        if above.is_empty() || below.is_empty() {
            return None;
        }
        let at_rate = |rate: f64| {
            let room = above.iter().map(|(at, bound)| bound - rate * at).fold(f64::INFINITY, f64::min);
            let floor = below.iter().map(|(at, bound)| bound - rate * at).fold(f64::NEG_INFINITY, f64::max);
            let (at_origin, margin) = (f64::midpoint(room, floor), (room - floor) / 2.0);
            Self { origin_ns, at_origin, rate, margin }
        };
        let flat = at_rate(0.0);
        // The margin is a concave function of the rate.
        let (mut low, mut high) = (-rate_max, rate_max);
        for _ in 0..SEARCH_STEPS {
            let third = (high - low) / 3.0;
            match at_rate(low + third).margin < at_rate(high - third).margin {
                true => low += third,
                false => high -= third,
            }
        }
        let sloped = at_rate(f64::midpoint(low, high));
        let is_better = sloped.margin > GAIN * flat.margin.max(0.0) && sloped.margin > flat.margin;
        Some(if is_better { sloped } else { flat })
    }

    fn at(&self, at_ns: u64) -> f64 {
        self.at_origin + self.rate * (at_ns as f64 - self.origin_ns as f64)
    }
}

impl Clock {
    /// The client's time when the server's clock says `server_ns`, near the client's `near_ns`; `None` where it is not known.
    pub(super) fn at_client(&self, server_ns: u64, near_ns: u64) -> Option<u64> {
        let stretch = &self.stretches[self.stretch(near_ns)?];
        Some(server_ns.wrapping_sub(self.offset_ns(&stretch.line, near_ns) as u64))
    }

    /// Whether a clock was set between two of the client's times, as far as that is known.
    pub(super) fn was_set(&self, from_ns: u64, until_ns: u64) -> bool {
        self.stretch(from_ns) != self.stretch(until_ns)
    }

    /// The place of the stretch that has the client's `near_ns`.
    fn stretch(&self, near_ns: u64) -> Option<usize> {
        let place = self.stretches.iter().position(|stretch| near_ns < stretch.until_ns)?;
        (self.stretches[place].from_ns <= near_ns).then_some(place)
    }

    /// What is told of it, from the client's `first_ns` on; `None` where the bytes bound it from one side only.
    pub(super) fn told(&self, first_ns: u64) -> Option<ClockOffset> {
        let Some(first) = self.stretches.first() else {
            let impossible =
                ClockOffset { samples: self.samples, is_impossible: true, ..ClockOffset::default() };
            return self.is_impossible.then_some(impossible);
        };
        let widest = self.stretches.iter().map(|stretch| stretch.line.margin).fold(0.0, f64::max);
        let drift_ppb = (first.line.rate * 1e9).round() as i64;
        Some(ClockOffset {
            offset_ns: self.offset_ns(&first.line, first_ns.max(first.from_ns)),
            error_ns: widest.ceil() as u64 + self.step_ns,
            drift_ppb: if self.stretches.len() == 1 { drift_ppb } else { 0 },
            steps: self.stretches.len() as u64 - 1,
            samples: self.samples,
            is_impossible: false,
        })
    }

    fn offset_ns(&self, line: &Line, at_ns: u64) -> i64 {
        self.base_ns.wrapping_add(line.at(at_ns).round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const START: u64 = 1_700_000_000 * SECOND;

    /// The clock of a minute of trips, one each 10 ms, over a path of `there` and `back` with noise; `offset` by the client's time.
    fn clock(there: u64, back: u64, offset: impl Fn(u64) -> i64) -> Clock {
        let mut random = fastrand::Rng::with_seed(7);
        let mut bounds = Bounds::new(START, START + 60 * SECOND);
        for trip in 0..6_000 {
            let left = START + trip * 10_000_000;
            let at_server = |at: u64| at.wrapping_add_signed(offset(at));
            let arrived = left + there + random.u64(0..200_000);
            bounds.went(left, at_server(arrived));
            let back_at = arrived + 50_000 + back + random.u64(0..200_000);
            bounds.came(at_server(arrived + 50_000), back_at);
        }
        bounds.clock(1_000)
    }

    #[test]
    fn a_constant_offset_is_found_within_its_error_however_large_it_is() {
        for offset in [0, 7_300_000, -40 * 365 * 86_400 * SECOND as i64] {
            let told = clock(1_000_000, 1_000_000, |_| offset).told(START).unwrap();
            assert!((told.offset_ns - offset).abs() < 20_000, "{told:?}");
            assert!(
                (1_000_000..1_030_000).contains(&told.error_ns),
                "half of the way there and back: {told:?}"
            );
            assert_eq!((told.drift_ppb, told.steps), (0, 0));
            // Where the ways differ, the error covers it.
            let told = clock(1_900_000, 100_000, |_| offset).told(START).unwrap();
            assert!((told.offset_ns - offset).unsigned_abs() <= told.error_ns, "{told:?}");
            assert!((told.offset_ns - offset).abs() > 800_000, "{told:?}");
        }
    }

    #[test]
    fn a_clock_that_is_fast_is_followed() {
        // 50 µs a second are 3 ms in a minute; the way there and back takes 0.2 ms.
        let drift = |at: u64| 5_000_000 + ((at - START) / 20_000) as i64;
        let clock = clock(100_000, 100_000, drift);
        let told = clock.told(START).unwrap();
        assert!((told.drift_ppb - 50_000).abs() < 2_000, "{told:?}");
        assert!((told.offset_ns - 5_000_000).unsigned_abs() <= told.error_ns, "{told:?}");
        let at = START + 59 * SECOND;
        let found = clock.at_client(at.wrapping_add_signed(drift(at)), at).unwrap();
        assert!(found.abs_diff(at) < 60_000, "{}", found.abs_diff(at));
    }

    #[test]
    fn a_clock_that_was_set_has_two_offsets() {
        let set = |at: u64| if at < START + 30 * SECOND + 1_234_567 { 1_000_000 } else { -250_000_000 };
        let clock = clock(300_000, 300_000, set);
        let told = clock.told(START).unwrap();
        assert_eq!((told.steps, told.drift_ppb), (1, 0), "{told:?}");
        for at in [START + SECOND, START + 50 * SECOND] {
            let found = clock.at_client(at.wrapping_add_signed(set(at)), at).unwrap();
            assert!(found.abs_diff(at) < 30_000, "{}", found.abs_diff(at));
        }
    }

    #[test]
    fn a_step_that_is_shorter_than_the_way_is_noticed() {
        // Any offset from 3 ms to 5 ms keeps all bounds: the middle would be off by 4 ms, and claim 1 ms.
        let set = |at: u64| if at < START + 30 * SECOND + 123_456_789 { 0 } else { 8_000_000 };
        let clock = clock(5_000_000, 5_000_000, set);
        let told = clock.told(START).unwrap();
        assert_eq!((told.steps, told.drift_ppb), (1, 0), "{told:?}");
        assert!(told.offset_ns.abs() < 30_000 && told.error_ns > 5_000_000, "{told:?}");
        for at in [START + SECOND, START + 50 * SECOND] {
            let found = clock.at_client(at.wrapping_add_signed(set(at)), at).unwrap();
            assert!(found.abs_diff(at) < 30_000, "{}", found.abs_diff(at));
        }
    }

    #[test]
    fn a_clock_that_changes_its_rate_is_followed() {
        // Right for half a minute, then slewed by 500 µs a second, as adjtime does.
        let slew = |at: u64| at.saturating_sub(START + 30 * SECOND) as i64 / 2_000;
        let clock = clock(1_000_000, 1_000_000, slew);
        let told = clock.told(START).unwrap();
        assert!(told.steps >= 1 && told.offset_ns.unsigned_abs() <= told.error_ns, "{told:?}");
        for second in 0..60 {
            let at = START + second * SECOND;
            let Some(found) = clock.at_client(at.wrapping_add_signed(slew(at)), at) else { continue };
            assert!(found.abs_diff(at) <= told.error_ns, "second {second}: {}", found.abs_diff(at));
        }
    }

    #[test]
    fn ten_turns_in_a_day_tell_the_rate_of_a_clock() {
        let drift = |at: u64| ((at - START) / 50_000) as i64; // 1.7 s a day
        let mut bounds = Bounds::new(START, START + 86_400 * SECOND);
        for trip in 0..10 {
            let left = START + trip * 8_000 * SECOND;
            let arrived = left + 300_000;
            bounds.went(left, arrived.wrapping_add_signed(drift(arrived)));
            bounds.came(arrived.wrapping_add_signed(drift(arrived)), arrived + 300_000);
        }
        let told = bounds.clock(1_000).told(START).unwrap();
        assert!((told.drift_ppb - 20_000).abs() < 100 && told.steps == 0, "{told:?}");
    }

    #[test]
    fn ways_that_are_sometimes_long_are_no_steps() {
        // A way takes its millisecond, and most of the time up to thirty more: a radio link.
        for seed in 0..20 {
            for trips in [20, 40, 300, 5_000] {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut bounds = Bounds::new(START, START + 60 * SECOND);
                for trip in 0..trips {
                    let left = START + trip * (60 * SECOND / trips);
                    let long = |random: &mut fastrand::Rng| 1_000_000 + random.u64(0..5_500).pow(2);
                    let arrived = left + long(&mut random);
                    bounds.went(left, arrived);
                    bounds.came(arrived, arrived + long(&mut random));
                }
                let told = bounds.clock(1_000).told(START).unwrap();
                assert_eq!(told.steps, 0, "{seed} {trips} {told:?}");
                assert!(told.offset_ns.unsigned_abs() <= told.error_ns, "{seed} {trips} {told:?}");
            }
        }
    }

    #[test]
    fn one_byte_whose_first_copy_was_missed_does_not_stand_for_a_step() {
        let mut bounds = Bounds::new(START, START + 60 * SECOND);
        for trip in 0..6_000 {
            let left = START + trip * 10_000_000;
            bounds.went(left, left + 1_000_000);
            bounds.came(left + 2_000_000, left + 3_000_000);
        }
        // Seen only when it was sent again.
        let left = START + 20 * SECOND + 200_000_000;
        bounds.went(left, left - 200_000_000 + 1_000_000);
        let clock = bounds.clock(1_000);
        let told = clock.told(START).unwrap();
        assert_eq!((told.offset_ns, told.steps, told.error_ns), (0, 0, 1_001_000), "{told:?}");
    }

    #[test]
    fn captures_that_are_mistaken_for_each_other_have_no_clock_however_few_their_bytes_are() {
        for trips in [1, 2, 20, 1_000] {
            let mut bounds = Bounds::new(START, START + 60 * SECOND);
            for trip in 0..trips {
                let left = START + trip * (60 * SECOND / trips);
                bounds.went(left, left - 200_000);
                bounds.came(left + 600_000_000, left + 599_800_000);
            }
            let told = bounds.clock(1_000).told(START).unwrap();
            assert!(told.is_impossible, "{trips}: {told:?}");
        }
    }

    #[test]
    fn bytes_that_arrive_before_they_leave_have_no_clock() {
        let mut bounds = Bounds::new(START, START + SECOND);
        assert_eq!(bounds.clock(1_000).told(START), None, "nothing was seen");
        // The two captures are mistaken for each other.
        for trip in 0..100 {
            let left = START + trip * 10_000_000;
            bounds.went(left, left - 2_000_000);
            bounds.came(left + 1_000_000, left - 1_000_000);
        }
        let clock = bounds.clock(1_000);
        assert!(clock.told(START).unwrap().is_impossible);
        assert_eq!(clock.at_client(START, START), None);
    }
}
