//! The families of programs: how often, over which link, and how much must have been removed.

use std::time::Duration;

use onetrip_link::LinkSpec;

use super::families::{
    begins, commits, common, cursors, lobs, loops, meanings, portals, settings, statements, timeouts,
};
use super::perturb::perturb;
use super::random::Random;
use super::script::{Script, interleave};
use super::smith::Smith;
use super::step::Program;

/// A kind of programs, named after what it may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Begins,
    Loops,
    Portals,
    Cursors,
    Statements,
    Commits,
    Settings,
    /// Large objects.
    Lobs,
    /// Statements, locks and transactions that take too long.
    Timeouts,
    /// One session changes tables all the time.
    Storms,
    /// What settings, views, roles and types make of a text.
    Meanings,
    /// Every session is of another family.
    Mixed,
}

/// What the rig knows of a family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) family: Family,
    pub(crate) name: &'static str,
    /// How many of the programs, in proportion to the others.
    pub(crate) weight: usize,
    pub(crate) rtt: Duration,
    /// Two sessions' messages overtake each other where this is not zero.
    pub(crate) jitter: Duration,
    /// Trips that each remedy must have removed per program, on average, for the rig to have tested anything.
    pub(crate) removed_min: &'static [(&'static str, f64)],
}

/// Remedies that are not named in a row may remove nothing there.
pub(crate) const FAMILIES: [Row; 12] = [
    Row { removed_min: &[("begin", 2.0)], ..row(Family::Begins, "begins", 3, 1) },
    // Short: where a program's tables are made anew, the catalogue is read again after a second, and few last that long.
    Row { removed_min: &[("begin", 0.5), ("loops", 0.1)], ..row(Family::Loops, "loops", 4, 4) },
    Row { removed_min: &[("begin", 0.5), ("cursors", 0.1)], ..row(Family::Portals, "portals", 3, 1) },
    Row { removed_min: &[("begin", 0.5), ("cursors", 0.1)], ..row(Family::Cursors, "cursors", 3, 1) },
    Row {
        removed_min: &[("begin", 0.5), ("statements", 0.7)],
        ..row(Family::Statements, "statements", 3, 1)
    },
    Row {
        removed_min: &[("begin", 1.0), ("commit", 0.1)],
        jitter: Duration::from_millis(3),
        ..row(Family::Commits, "commits", 3, 1)
    },
    Row { removed_min: &[("begin", 0.5), ("chatter", 0.2)], ..row(Family::Settings, "settings", 2, 1) },
    Row { removed_min: &[("begin", 0.5), ("lobs", 20.0)], ..row(Family::Lobs, "lobs", 3, 1) },
    Row { removed_min: &[("begin", 0.5)], ..row(Family::Timeouts, "timeouts", 1, 1) },
    Row { removed_min: &[("begin", 0.5)], ..row(Family::Storms, "storms", 2, 1) },
    Row {
        // Few programs read long results: 0.06 to 1.15 a program were removed in runs of 2,500.
        removed_min: &[("begin", 0.5), ("cursors", 0.03), ("repeats", 0.1)],
        ..row(Family::Meanings, "meanings", 6, 2)
    },
    Row { removed_min: &[("begin", 0.5)], ..row(Family::Mixed, "mixed", 2, 1) },
];

/// Random queries over the catalogue.
pub(crate) const SMITH: Row = Row { removed_min: &[("begin", 0.5)], ..row(Family::Meanings, "smith", 1, 2) };

/// PostgreSQL's own statements.
pub(crate) const REGRESS: Row = Row { removed_min: &[("begin", 0.5)], ..row(Family::Mixed, "regress", 1, 1) };

/// What drivers' own tests and applications have sent.
pub(crate) const RECORDED: Row =
    Row { removed_min: &[("begin", 0.2)], ..row(Family::Mixed, "recorded", 1, 2) };

const fn row(family: Family, name: &'static str, weight: usize, rtt_ms: u64) -> Row {
    let (rtt, jitter) = (Duration::from_millis(rtt_ms), Duration::ZERO);
    Row { family, name, weight, rtt, jitter, removed_min: &[] }
}

impl Row {
    pub(crate) fn link(&self) -> LinkSpec {
        LinkSpec { jitter: self.jitter, ..LinkSpec::with_rtt(self.rtt) }
    }

    /// The program of a seed, with what nobody expects between its steps.
    pub(crate) fn perturbed(&self, seed: u64) -> Program {
        perturb(&mut Random::new(seed ^ 0xd0b7_0000_0000), self.program(seed))
    }

    /// A program of random queries.
    pub(crate) fn of_queries(&self, seed: u64, smith: &Smith) -> Program {
        let random = &mut Random::new(seed ^ 0x5317_0000_0000);
        let reads: Vec<String> = (0..4).map(|_| smith.query(random, true)).collect();
        let results: Vec<String> = (0..4).map(|_| smith.query(random, false)).collect();
        let (reads, results): (Vec<&str>, Vec<&str>) =
            (reads.iter().map(String::as_str).collect(), results.iter().map(String::as_str).collect());
        let sessions = random.within(1..3);
        let scripts = (0..sessions).map(|session| {
            let mut script = Script::new(session);
            meanings::write_of(&mut script, random, &reads, &results);
            script
        });
        let scripts: Vec<Script> = scripts.collect();
        let program = interleave(random, scripts);
        perturb(random, program)
    }

    /// The program of a seed.
    pub(crate) fn program(&self, seed: u64) -> Program {
        let random = &mut Random::new(seed ^ 0x5eed_0000_0000);
        let sessions = random.within(2..5);
        let is_calm = random.one_in(2) && self.family != Family::Storms;
        let scripts = (0..sessions).map(|session| {
            let family = match self.family {
                Family::Mixed => FAMILIES[random.below(7)].family,
                Family::Storms if session != 1 => FAMILIES[1 + random.below(6)].family,
                family => family,
            };
            script(family, random, Script::new(session).calm(is_calm), sessions)
        });
        let scripts: Vec<Script> = scripts.collect();
        interleave(random, scripts)
    }
}

/// Which family's turn it is.
pub(crate) fn of_seed(seed: u64) -> &'static Row {
    let place = Random::new(seed).weighted(&FAMILIES.map(|row| row.weight));
    &FAMILIES[place]
}

/// Writes a session's part.
pub(crate) fn script(family: Family, random: &mut Random, mut script: Script, sessions: usize) -> Script {
    match family {
        Family::Begins | Family::Mixed => begins::write(&mut script, random),
        Family::Loops => loops::write(&mut script, random),
        Family::Portals => portals::write(&mut script, random),
        Family::Cursors => cursors::write(&mut script, random),
        Family::Statements => statements::write(&mut script, random, sessions),
        Family::Timeouts => timeouts::write(&mut script, random, sessions),
        Family::Storms => (0..12).for_each(|_| common::ddl(&mut script, random)),
        Family::Lobs => lobs::write(&mut script, random, sessions),
        Family::Commits => commits::write(&mut script, random, sessions),
        Family::Settings => settings::write(&mut script, random),
        Family::Meanings => meanings::write(&mut script, random),
    }
    script
}
