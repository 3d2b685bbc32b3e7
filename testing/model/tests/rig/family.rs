//! The families of programs: how often, how far away, and how much must have been removed.

use std::time::Duration;

use onetrip_testkit::random::Random;
use onetrip_testkit::script::{Script, interleave};
use onetrip_testkit::step::Program;

use super::families;

/// What the rig knows of a family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    write: fn(&mut Script, &mut Random, usize),
    pub(crate) weight: usize,
    /// Trips that each remedy must have removed per program, on average, for the rig to have tested anything.
    pub(crate) removed_min: &'static [(&'static str, f64)],
    /// Sessions per program that must have ended because the server refused what was their own.
    pub(crate) ended_min: f64,
    /// What happens beside its programs happens to the model's server only.
    pub(crate) is_of_model: bool,
}

/// What most families are.
const FAMILY: Family =
    Family { name: "", write: |_, _, _| (), weight: 2, removed_min: &[], ended_min: 0.0, is_of_model: false };

/// All of them; in the last one, every session is of another.
pub(crate) const FAMILIES: [Family; 30] = [
    Family {
        name: "loops",
        write: |script, random, _| families::loops::loops(script, random),
        weight: 5,
        removed_min: &[
            ("begin", 2.0),
            ("commit", 0.5),
            ("loops", 5.0),
            ("statements", 2.0),
            ("repeats", 0.5),
        ],
        ..FAMILY
    },
    Family {
        name: "begins",
        write: |script, random, _| families::begins::begins(script, random),
        removed_min: &[("begin", 1.5), ("commit", 0.1)],
        ..FAMILY
    },
    Family {
        name: "commits",
        write: families::commits::commits,
        removed_min: &[("begin", 3.0), ("commit", 0.5)],
        ..FAMILY
    },
    Family {
        name: "portals",
        write: |script, random, _| families::pieces::portals(script, random),
        removed_min: &[("begin", 2.0), ("commit", 0.5), ("cursors", 4.0)],
        ..FAMILY
    },
    Family {
        name: "cursors",
        write: |script, random, _| families::pieces::cursors(script, random),
        removed_min: &[("begin", 2.0), ("commit", 0.5), ("cursors", 4.0)],
        ..FAMILY
    },
    Family {
        name: "statements",
        write: |script, random, _| families::statements::statements(script, random),
        weight: 3,
        removed_min: &[("begin", 2.0), ("statements", 0.03)],
        ..FAMILY
    },
    Family {
        name: "conflicts",
        write: |script, random, _| families::conflicts::conflicts(script, random),
        removed_min: &[("begin", 2.0)],
        ..FAMILY
    },
    Family {
        name: "chains",
        write: families::loops::chains,
        // Of 2,000 programs the means are 2.6, 1.1 and 1.0, and a few programs have most of it.
        removed_min: &[("begin", 0.5), ("loops", 0.5), ("repeats", 0.3)],
        ..FAMILY
    },
    Family {
        name: "reloads",
        write: |script, random, _| families::loops::reloads(script, random),
        removed_min: &[("loops", 1.0), ("repeats", 0.2)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "refusals",
        write: |script, random, _| families::loops::refusals(script, random),
        ended_min: 0.3,
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "refused",
        write: |script, random, _| families::faults::refused(script, random),
        weight: 1,
        removed_min: &[("begin", 1.0)],
        ended_min: 0.2,
        is_of_model: true,
    },
    Family {
        name: "standbys",
        write: |script, random, _| families::faults::standbys(script, random),
        weight: 1,
        removed_min: &[("begin", 0.5)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "replications",
        write: |script, random, _| families::faults::replications(script, random),
        weight: 1,
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "leases",
        write: |script, random, _| families::faults::leases(script, random),
        weight: 1,
        removed_min: &[("chatter", 1.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "shared",
        write: |script, random, _| families::faults::shared(script, random),
        weight: 1,
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "told",
        write: |script, random, _| families::faults::told(script, random),
        weight: 1,
        removed_min: &[("begin", 2.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "revocations",
        write: |script, random, _| families::faults::revocations(script, random),
        weight: 1,
        removed_min: &[("loops", 1.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "idlers",
        write: |script, random, _| families::faults::idlers(script, random),
        weight: 1,
        removed_min: &[("begin", 1.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "locked",
        write: |script, random, _| families::faults::locked(script, random),
        weight: 1,
        removed_min: &[("begin", 0.5)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "strays",
        write: |script, random, _| families::faults::strays(script, random),
        weight: 1,
        removed_min: &[("loops", 0.5)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "drivers",
        write: |script, random, _| families::faults::drivers(script, random),
        weight: 1,
        removed_min: &[("statements", 1.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "serializables",
        write: families::faults::serializables,
        weight: 1,
        removed_min: &[("begin", 2.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "builtins",
        write: |script, random, _| families::faults::builtins(script, random),
        weight: 1,
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "alters",
        write: families::faults::alters,
        weight: 1,
        removed_min: &[("statements", 0.3)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "neighbours",
        write: |script, random, _| families::faults::neighbours(script, random),
        weight: 1,
        removed_min: &[("statements", 0.5)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "cancels",
        write: |script, random, _| families::faults::cancels(script, random),
        weight: 1,
        removed_min: &[("begin", 2.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "moves",
        write: |script, random, _| families::faults::moves(script, random),
        weight: 1,
        removed_min: &[("begin", 1.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "failing_pieces",
        write: |script, random, _| families::faults::failing_pieces(script, random),
        weight: 1,
        removed_min: &[("cursors", 1.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "warnings",
        write: |script, random, _| families::faults::warnings(script, random),
        weight: 1,
        removed_min: &[("loops", 3.0)],
        is_of_model: true,
        ..FAMILY
    },
    Family {
        name: "mixed",
        write: mixed,
        weight: 3,
        removed_min: &[("begin", 2.0), ("commit", 0.5), ("loops", 0.2), ("cursors", 0.5)],
        ..FAMILY
    },
];

fn mixed(script: &mut Script, random: &mut Random, sessions: usize) {
    let shared: Vec<&Family> =
        FAMILIES.iter().filter(|family| !family.is_of_model && family.name != "mixed").collect();
    let family = random.pick(&shared);
    (family.write)(script, random, sessions);
}

impl Family {
    /// The program of a seed. Behind some steps, time passes, so that nothing is under way any more.
    pub(crate) fn program(&self, seed: u64) -> Program {
        let random = &mut Random::new(seed ^ 0x5eed_0000_0000);
        let sessions = random.within(2..5);
        let mut scripts = Vec::new();
        for session in 0..sessions {
            let mut script = Script::new(session);
            // The catalogue is asked for behind a session's first statement.
            script.simple("SELECT 1");
            script.pause_before_last(LONG);
            (self.write)(&mut script, random, sessions);
            scripts.push(script);
        }
        let mut program = interleave(random, scripts);
        program.steps.retain(|step| is_shaken(seed) || !step.shown.contains("LOCK TABLE"));
        let rests = random.pick(&[2, 3, 8]);
        for step in &mut program.steps {
            if step.pause.is_zero() && random.one_in(rests) {
                step.pause = LONG;
            }
        }
        program
    }
}

/// Longer than anything is under way.
const LONG: Duration = Duration::from_millis(200);

/// Which family's turn it is.
pub(crate) fn of_seed(seed: u64) -> &'static Family {
    let place = Random::new(seed).weighted(&FAMILIES.map(|family| family.weight));
    &FAMILIES[place]
}

/// Which family's turn it is on a server of PostgreSQL.
pub(crate) fn of_seed_on_postgresql(seed: u64) -> &'static Family {
    let weight = |family: Family| if family.is_of_model { 0 } else { family.weight };
    let place = Random::new(seed).weighted(&FAMILIES.map(weight));
    &FAMILIES[place]
}

/// Whether messages of two sessions overtake each other. A Parse that is answered early takes its locks, and at REPEATABLE READ
/// its snapshot, when it arrives: what another session does meanwhile may come first, so `statements` is off then. Where it is on,
/// no session locks tables, for which a Parse would wait.
pub(crate) fn is_shaken(seed: u64) -> bool {
    seed % 2 == 1
}

/// How far away the server of a seed is.
pub(crate) fn distance(seed: u64) -> Duration {
    Duration::from_micros(Random::new(seed).pick(&[400, 1_000, 2_000, 13_000]))
}
