//! How fast a program works, by its own measure.
//!
//! Outside transactions and requests only time tells a loop from separate requests. What is a long time depends on the
//! program, on its machine and on what else that machine does. So gaps are measured by a piece of work that the same
//! program has done: the proof that it knows its password (SCRAM). That is some thousand rounds of hashing, which take a
//! few milliseconds of an idle machine. A client of MySQL proves it by a few hashes: what it takes to answer the greeting is a
//! smaller piece of work, with larger factors. Where no such login was seen, a gap is long only compared with the usual one of
//! its connection. No gate is a number of milliseconds: a run that is replayed with all its gaps longer by one factor has the
//! same findings.
//!
//! Drivers of slow languages may prove it in C, which says too little of how fast their programs are. For example, asyncpg took
//! 15 to 25 ms before version 0.32, and has taken 1 to 2 ms since. Such a proof counts several times, within what the step
//! before it allows.
//!
//! On a slow machine the proof took 5.5 to 10 ms with libpq, and 1.4 to 5 ms in Go. A loop took 0.6 to 0.9 ms for a row. A
//! pause that a program makes on purpose takes no longer there than elsewhere, so the factors are small. Clients of MySQL
//! took 0.07 ms (libmariadb) to 5 ms (Python, its first connection) to answer a greeting, and 0.01 to 0.16 ms for a loop's body.

/// So many times as long as the proof took is longer than a loop's body takes: what follows may be of another request.
const SLOW: u64 = 1;
/// So many times is a program that waits for something.
const WAITING: u64 = 2;
/// After so many times, nothing goes on that was begun before.
const PAUSE: u64 = 250;
/// A proof that may be made in C counts so many times,
const QUICK_PROOFS: u64 = 4;
/// but no more than so many times what it took to choose one of the server's methods.
const QUICK_CHOICES: u64 = 8;
/// The same in answers to a greeting.
const SLOW_ANSWERS: u64 = 64;
const WAITING_ANSWERS: u64 = 128;
const PAUSE_ANSWERS: u64 = 16_384;
/// The same in usual gaps.
const SLOW_USUAL: u64 = 64;
const WAITING_USUAL: u64 = 160;
const PAUSE_USUAL: u64 = 8_192;

/// Gaps that the usual one is taken from.
const GAPS_KEPT: usize = 64;
/// Before so many gaps were seen, none is long.
const GAPS_MIN: usize = 4;
/// How often the usual gap is computed anew, in gaps.
const RENEWED_EVERY: usize = 8;

/// Bytes of a request for encryption, the only step of a login that has so few.
const ENCRYPTION_REQUEST: u64 = 8;
/// The message with the proof is the third step of a login: the startup packet and the name of the method come before it.
const PROOF_STEP: u32 = 3;
/// The step before names the method. Where the server has greeted first, as MySQL's does, it answers that.
const CHOICE_STEP: u32 = 2;
/// Bytes of the message with the proof.
const PROOF_BYTES: std::ops::Range<u64> = 80..256;

/// How long a gap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Gap {
    /// As programs take between two statements of one piece of work.
    #[default]
    Short,
    /// The program did something else, or a person did.
    Slow,
    /// The program waited for something to happen.
    Waiting,
    /// Whatever was done before is over.
    Pause,
}

/// How fast the program of one connection works.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Steps of the login so far.
    steps: u32,
    /// Time that the program took for its proof, in nanoseconds; zero is not known.
    proof_ns: u64,
    /// Time that the program took to choose a method, or to answer a greeting, in nanoseconds; zero is not known.
    choice_ns: u64,
    /// The server spoke first.
    is_greeted: bool,
    /// The latest; those of a connection that rests take no room.
    gaps: Vec<u64>,
    seen: usize,
    usual_ns: u64,
}

/// Beyond which lengths gaps are long, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gauge {
    slow_ns: u64,
    waiting_ns: u64,
    pause_ns: u64,
}

impl Pace {
    /// Takes one more step of the login: so many bytes, how long the program took for it, and whether its driver may prove a
    /// password in C although its programs are of a slower language.
    pub(super) fn login(&mut self, bytes_sent: u64, gap_ns: u64, has_quick_proof: bool) {
        if bytes_sent == ENCRYPTION_REQUEST {
            return;
        }
        self.steps += 1;
        self.is_greeted |= self.steps == 1 && bytes_sent == 0;
        if self.steps == CHOICE_STEP {
            self.choice_ns = gap_ns;
        }
        if self.steps == PROOF_STEP && PROOF_BYTES.contains(&bytes_sent) {
            let quick = gap_ns.saturating_mul(QUICK_PROOFS).min(self.choice_ns.saturating_mul(QUICK_CHOICES));
            self.proof_ns = if has_quick_proof { gap_ns.max(quick) } else { gap_ns };
        }
    }

    /// Takes one more gap between two trips of the program's work.
    pub(super) fn take(&mut self, gap_ns: u64) {
        match self.gaps.get_mut(self.seen % GAPS_KEPT) {
            Some(oldest) => *oldest = gap_ns,
            None => self.gaps.push(gap_ns),
        }
        self.seen += 1;
        if self.seen >= GAPS_MIN && (self.seen <= RENEWED_EVERY || self.seen % RENEWED_EVERY == 0) {
            let mut gaps = [0; GAPS_KEPT];
            let known = &mut gaps[..self.gaps.len()];
            known.copy_from_slice(&self.gaps);
            let middle = (known.len() - 1) / 2;
            self.usual_ns = *known.select_nth_unstable(middle).1;
        }
    }

    /// What is long by all that is known so far.
    pub(super) fn gauge(&self) -> Gauge {
        // Where gaps are too short to be measured, or not known yet, none is long.
        let times = |unit: u64, factor: u64| if unit == 0 { u64::MAX } else { unit.saturating_mul(factor) };
        let gauge = |unit: u64, [slow, waiting, pause]: [u64; 3]| Gauge {
            slow_ns: times(unit, slow),
            waiting_ns: times(unit, waiting),
            pause_ns: times(unit, pause),
        };
        if self.proof_ns > 0 {
            return gauge(self.proof_ns, [SLOW, WAITING, PAUSE]);
        }
        let usual = gauge(self.usual_ns, [SLOW_USUAL, WAITING_USUAL, PAUSE_USUAL]);
        let answer_ns = if self.is_greeted { self.choice_ns } else { 0 };
        let answer = gauge(answer_ns, [SLOW_ANSWERS, WAITING_ANSWERS, PAUSE_ANSWERS]);
        Gauge {
            slow_ns: usual.slow_ns.min(answer.slow_ns),
            waiting_ns: usual.waiting_ns.min(answer.waiting_ns),
            pause_ns: usual.pause_ns.min(answer.pause_ns),
        }
    }
}

impl Gauge {
    /// How long a gap is.
    pub(super) fn compare(self, gap_ns: u64) -> Gap {
        match gap_ns {
            gap if gap > self.pause_ns => Gap::Pause,
            gap if gap > self.waiting_ns => Gap::Waiting,
            gap if gap > self.slow_ns => Gap::Slow,
            _ => Gap::Short,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes of the steps of a login by SCRAM, as libpq sends them.
    const LOGIN: [u64; 4] = [8, 40, 55, 109];

    /// A login with a server that greets.
    fn after_greeting(answer_ns: u64) -> Pace {
        let mut pace = Pace::default();
        [(0, 0), (180, answer_ns)].iter().for_each(|(bytes, gap)| pace.login(*bytes, *gap, false));
        pace
    }

    fn after_login(proof_ns: u64) -> Pace {
        after_quick_login(1_000_000_000, proof_ns, false)
    }

    fn after_quick_login(choice_ns: u64, proof_ns: u64, has_quick_proof: bool) -> Pace {
        let mut pace = Pace::default();
        for bytes in LOGIN {
            pace.login(bytes, if bytes == 109 { proof_ns } else { choice_ns }, has_quick_proof);
        }
        pace
    }

    proptest! {
        #[test]
        fn gaps_that_are_all_longer_by_one_factor_compare_alike(
            gaps in proptest::collection::vec(prop_oneof![0..1_000_u64, 0..10_000_000_000_u64], 0..300),
            proof_ns in prop_oneof![Just(0), 1..50_000_000_u64],
            factor in 1..50_u64,
            is_greeted: bool,
        ) {
            let after = if is_greeted { after_greeting } else { after_login };
            let (mut once, mut stretched) = (after(proof_ns), after(proof_ns * factor));
            for gap in gaps {
                prop_assert_eq!(once.gauge().compare(gap), stretched.gauge().compare(gap * factor));
                once.take(gap);
                stretched.take(gap * factor);
            }
        }
    }

    #[test]
    fn a_gap_is_long_by_the_time_of_the_proof_of_a_password() {
        let gauge = after_login(4_000).gauge();
        let lengths = [4_000, 4_001, 8_000, 8_001, 1_000_000, 1_000_001].map(|gap| gauge.compare(gap));
        assert_eq!(lengths, [Gap::Short, Gap::Slow, Gap::Slow, Gap::Waiting, Gap::Waiting, Gap::Pause]);
    }

    #[test]
    fn a_proof_that_was_made_in_c_counts_more_and_no_more_than_other_steps_allow() {
        let slow_ns = |choice_ns, proof_ns| after_quick_login(choice_ns, proof_ns, true).gauge().slow_ns;
        assert_eq!(slow_ns(1_000, 1_200), 4_800, "a quick one");
        assert_eq!(slow_ns(300, 1_200), 2_400, "its step before took less");
        assert_eq!(slow_ns(300, 20_000), 20_000, "a slow one is as it was");
        assert_eq!(slow_ns(100_000, 1_200), 4_800, "one pause does not count much");
    }

    #[test]
    fn the_job_for_spark_has_the_same_factors() {
        let job = include_str!("../../../../contrib/spark/pace.py");
        for line in [
            format!("FACTORS = ({SLOW}, {WAITING}, {PAUSE})\n"),
            format!("FACTORS_ANSWERS = ({SLOW_ANSWERS}, {WAITING_ANSWERS}, {PAUSE_ANSWERS})\n"),
            format!("FACTORS_USUAL = ({SLOW_USUAL}, {WAITING_USUAL}, {PAUSE_USUAL})\n"),
        ] {
            assert!(job.contains(&line), "contrib/spark/pace.py: {line}");
        }
    }

    #[test]
    fn a_login_without_a_proof_says_nothing() {
        let mut pace = Pace::default();
        // MD5, and MySQL's password by RSA.
        for steps in [&[8, 40, 41][..], &[180, 5, 260]] {
            steps.iter().for_each(|bytes| pace.login(*bytes, 1_000, true));
            assert_eq!(pace.gauge().compare(u64::MAX), Gap::Short);
            pace = Pace::default();
        }
    }

    #[test]
    fn a_gap_is_long_by_the_answer_to_a_greeting_whatever_is_usual() {
        let mut pace = Pace::default();
        [(0, 9_000), (180, 1_000)].iter().for_each(|(bytes, gap)| pace.login(*bytes, *gap, false));
        (0..10).for_each(|_| pace.take(50_000));
        let lengths = [64_000, 64_001, 128_001, 16_384_001].map(|gap| pace.gauge().compare(gap));
        assert_eq!(lengths, [Gap::Short, Gap::Slow, Gap::Waiting, Gap::Pause]);
        (0..64).for_each(|_| pace.take(100));
        assert_eq!(pace.gauge().compare(6_401), Gap::Slow, "and by the usual one where that is less");
    }

    #[test]
    fn without_a_login_a_gap_is_long_compared_with_the_usual_one() {
        let mut pace = Pace::default();
        (0..10).for_each(|_| pace.take(100));
        let lengths = [6_400, 6_401, 16_001, 819_201].map(|gap| pace.gauge().compare(gap));
        assert_eq!(lengths, [Gap::Short, Gap::Slow, Gap::Waiting, Gap::Pause]);
        (0..64).for_each(|_| pace.take(6_401));
        assert_eq!(pace.gauge().compare(6_401), Gap::Short, "the program has another rhythm now");
    }
}
