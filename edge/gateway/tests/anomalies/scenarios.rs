//! The scenarios of Hermitage (Martin Kleppmann, <https://github.com/ept/hermitage>, CC BY 4.0), written anew from their
//! description: schedules in which an anomaly shows itself, or an isolation level prevents it.

use onetrip_wire::pg::{DataRow, ErrorResponse, backend};

use crate::rig::run::{Outcome, Seen, Taken};
use crate::rig::script::{INT4, Manner, Script, Statement, interleave};
use crate::rig::step::{Program, Step};

/// An isolation level, from the weakest on.
pub(crate) const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// A schedule, and what it shows.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Session and statement; BEGIN and the level are put before each session's first.
    steps: &'static [(usize, &'static str)],
    /// Whether the anomaly is there.
    shows: fn(&[Answer]) -> bool,
    /// How many of [`LEVELS`] allow it on PostgreSQL, the weakest first.
    pub(crate) levels_allowing: usize,
}

/// What a step of a scenario gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Rows of a query, `id=value` each.
    Rows(Vec<String>),
    /// The tag of anything else, `…` before it if it had to wait.
    Tag(String),
    /// The SQLSTATE.
    Error(String),
    /// Nothing: the session was waiting.
    None,
}

impl Answer {
    fn of(taken: &Taken) -> Self {
        let with = |tag| taken.messages.iter().filter(move |message| message.tag == tag);
        if let Some(error) = with(backend::ERROR_RESPONSE).next() {
            let error = ErrorResponse::decode(&error.body).expect("an error");
            return Self::Error(String::from_utf8_lossy(error.field(b'C').unwrap_or_default()).into_owned());
        }
        let Some(complete) = with(backend::COMMAND_COMPLETE).next_back() else { return Self::None };
        let tag = String::from_utf8_lossy(complete.body.strip_suffix(b"\0").expect("a text")).into_owned();
        if tag.starts_with("SELECT") {
            return Self::Rows(with(backend::DATA_ROW).map(|row| shown(&row.body)).collect());
        }
        Self::Tag(if taken.outcome == Outcome::Blocked { format!("… {tag}") } else { tag })
    }

    fn is_rows(&self, rows: &[&str]) -> bool {
        matches!(self, Self::Rows(found) if found == rows)
    }
}

fn shown(body: &[u8]) -> String {
    let row = DataRow::decode(body).expect("a row");
    let value = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or(b"NULL")).into_owned();
    row.columns.iter().map(value).collect::<Vec<_>>().join("=")
}

impl Scenario {
    /// The scenario's program: in simple queries, or in extended ones except for COMMIT and ROLLBACK.
    pub(crate) fn program(&self, level: &str, is_extended: bool) -> Program {
        let sessions = self.steps.iter().map(|(session, _)| session + 1).max().unwrap_or(1);
        let mut steps = Vec::<Step>::new();
        for session in 0..sessions {
            let mut script = Script::new(session);
            script.simple(&format!("BEGIN ISOLATION LEVEL {level}"));
            steps.extend(taken_apart(script));
        }
        for (session, text) in self.steps {
            let mut script = Script::new(*session);
            if is_extended && !["COMMIT", "ROLLBACK"].contains(text) {
                let form = crate::rig::script::Form::Unnamed;
                script
                    .run(&Statement::new(text, &[]), Manner { form, declared: Some(INT4), is_binary: false });
            } else {
                script.simple(text);
            }
            steps.extend(taken_apart(script));
        }
        Program { sessions, steps }
    }

    /// The answers to the scenario's own steps.
    pub(crate) fn answers(&self, seen: &Seen) -> Vec<Answer> {
        let sessions = self.steps.iter().map(|(session, _)| session + 1).max().unwrap_or(1);
        seen.taken[sessions..][..self.steps.len()].iter().map(Answer::of).collect()
    }

    pub(crate) fn shows(&self, answers: &[Answer]) -> bool {
        (self.shows)(answers)
    }
}

fn taken_apart(script: Script) -> Vec<Step> {
    interleave(&mut crate::rig::random::Random::new(0), vec![script]).steps
}

const READ: &str = "SELECT id, value FROM test ORDER BY id";
const READ_1: &str = "SELECT id, value FROM test WHERE id = 1";
const READ_2: &str = "SELECT id, value FROM test WHERE id = 2";
const READ_30: &str = "SELECT id, value FROM test WHERE value = 30";
const READ_THIRDS: &str = "SELECT id, value FROM test WHERE value % 3 = 0 ORDER BY id";

pub(crate) const SCENARIOS: [Scenario; 15] = [
    Scenario {
        name: "G0, write cycles",
        steps: &[
            (0, "UPDATE test SET value = 11 WHERE id = 1"),
            (1, "UPDATE test SET value = 12 WHERE id = 1"),
            (0, "UPDATE test SET value = 21 WHERE id = 2"),
            (0, "COMMIT"),
            (0, READ),
            (1, "UPDATE test SET value = 22 WHERE id = 2"),
            (1, "COMMIT"),
            (0, READ),
        ],
        shows: |answers| answers[7].is_rows(&["1=12", "2=21"]) || answers[7].is_rows(&["1=11", "2=22"]),
        levels_allowing: 0,
    },
    Scenario {
        name: "G1a, aborted reads",
        steps: &[
            (0, "UPDATE test SET value = 101 WHERE id = 1"),
            (1, READ),
            (0, "ROLLBACK"),
            (1, READ),
            (1, "COMMIT"),
        ],
        shows: |answers| !answers[1].is_rows(&["1=10", "2=20"]) || !answers[3].is_rows(&["1=10", "2=20"]),
        levels_allowing: 0,
    },
    Scenario {
        name: "G1b, intermediate reads",
        steps: &[
            (0, "UPDATE test SET value = 101 WHERE id = 1"),
            (1, READ),
            (0, "UPDATE test SET value = 11 WHERE id = 1"),
            (0, "COMMIT"),
            (1, READ),
            (1, "COMMIT"),
        ],
        shows: |answers| [1, 4].iter().any(|at| answers[*at].is_rows(&["1=101", "2=20"])),
        levels_allowing: 0,
    },
    Scenario {
        name: "G1c, circular information flow",
        steps: &[
            (0, "UPDATE test SET value = 11 WHERE id = 1"),
            (1, "UPDATE test SET value = 22 WHERE id = 2"),
            (0, READ_2),
            (1, READ_1),
            (0, "COMMIT"),
            (1, "COMMIT"),
        ],
        shows: |answers| answers[2].is_rows(&["2=22"]) || answers[3].is_rows(&["1=11"]),
        levels_allowing: 0,
    },
    Scenario {
        name: "OTV, observed transaction vanishes",
        steps: &[
            (0, "UPDATE test SET value = 11 WHERE id = 1"),
            (0, "UPDATE test SET value = 19 WHERE id = 2"),
            (1, "UPDATE test SET value = 12 WHERE id = 1"),
            (0, "COMMIT"),
            (2, READ_1),
            (1, "UPDATE test SET value = 18 WHERE id = 2"),
            (2, READ_2),
            (1, "COMMIT"),
            (2, READ_2),
            (2, READ_1),
            (2, "COMMIT"),
        ],
        shows: |answers| answers[8].is_rows(&["2=18"]) && answers[9].is_rows(&["1=11"]),
        levels_allowing: 0,
    },
    Scenario {
        name: "PMP, predicate-many-preceders",
        steps: &[
            (0, READ_30),
            (1, "INSERT INTO test VALUES (3, 30)"),
            (1, "COMMIT"),
            (0, READ_THIRDS),
            (0, "COMMIT"),
        ],
        shows: |answers| answers[3].is_rows(&["3=30"]),
        levels_allowing: 1,
    },
    Scenario {
        name: "PMP-write, predicate-many-preceders for writes",
        steps: &[
            (0, "UPDATE test SET value = value + 10"),
            (1, READ),
            (1, "DELETE FROM test WHERE value = 20"),
            (0, "COMMIT"),
            (1, READ),
            (1, "COMMIT"),
        ],
        // The row that has become 20 stays, and so does the one that was 20: nothing was deleted.
        shows: |answers| answers[2] == Answer::Tag("… DELETE 0".to_owned()),
        levels_allowing: 1,
    },
    Scenario {
        name: "P4, lost update",
        steps: &[
            (0, READ_1),
            (1, READ_1),
            (0, "UPDATE test SET value = 11 WHERE id = 1"),
            (1, "UPDATE test SET value = 11 WHERE id = 1"),
            (0, "COMMIT"),
            (1, "COMMIT"),
        ],
        shows: |answers| answers[5] == Answer::Tag("COMMIT".to_owned()),
        levels_allowing: 1,
    },
    Scenario {
        name: "G-single, read skew",
        steps: &[
            (0, READ_1),
            (1, READ_1),
            (1, READ_2),
            (1, "UPDATE test SET value = 12 WHERE id = 1"),
            (1, "UPDATE test SET value = 18 WHERE id = 2"),
            (1, "COMMIT"),
            (0, READ_2),
            (0, "COMMIT"),
        ],
        shows: |answers| answers[6].is_rows(&["2=18"]),
        levels_allowing: 1,
    },
    Scenario {
        name: "G-single, read skew with predicates",
        steps: &[
            (0, "SELECT id, value FROM test WHERE value % 5 = 0 ORDER BY id"),
            (1, "UPDATE test SET value = 12 WHERE value = 10"),
            (1, "COMMIT"),
            (0, READ_THIRDS),
            (0, "COMMIT"),
        ],
        shows: |answers| answers[3].is_rows(&["1=12"]),
        levels_allowing: 1,
    },
    Scenario {
        name: "G-single, read skew with a write predicate",
        steps: &[
            (0, READ_1),
            (1, READ),
            (1, "UPDATE test SET value = 12 WHERE id = 1"),
            (1, "UPDATE test SET value = 18 WHERE id = 2"),
            (1, "COMMIT"),
            (0, "DELETE FROM test WHERE value = 20"),
            (0, READ_2),
            (0, "COMMIT"),
        ],
        shows: |answers| answers[5] == Answer::Tag("DELETE 0".to_owned()),
        levels_allowing: 1,
    },
    Scenario {
        name: "G-single, read skew with a write in between",
        steps: &[
            (0, READ_1),
            (0, "UPDATE test SET value = 11 WHERE id = 1"),
            (1, "UPDATE test SET value = 18 WHERE id = 2"),
            (1, "COMMIT"),
            (0, READ_2),
            (0, "COMMIT"),
        ],
        shows: |answers| answers[4].is_rows(&["2=18"]),
        levels_allowing: 1,
    },
    Scenario {
        name: "G2-item, write skew",
        steps: &[
            (0, READ),
            (1, READ),
            (0, "UPDATE test SET value = 11 WHERE id = 1"),
            (1, "UPDATE test SET value = 21 WHERE id = 2"),
            (0, "COMMIT"),
            (1, "COMMIT"),
        ],
        shows: |answers| answers[4..].iter().all(|answer| *answer == Answer::Tag("COMMIT".to_owned())),
        levels_allowing: 2,
    },
    Scenario {
        name: "G2, anti-dependency cycles",
        steps: &[
            (0, READ_THIRDS),
            (1, READ_THIRDS),
            (0, "INSERT INTO test VALUES (3, 30)"),
            (1, "INSERT INTO test VALUES (4, 42)"),
            (0, "COMMIT"),
            (1, "COMMIT"),
        ],
        shows: |answers| answers[4..].iter().all(|answer| *answer == Answer::Tag("COMMIT".to_owned())),
        levels_allowing: 2,
    },
    Scenario {
        name: "G2, with two anti-dependencies by a reader",
        steps: &[
            (0, READ),
            (1, "UPDATE test SET value = value + 5 WHERE id = 2"),
            (1, "COMMIT"),
            (2, READ),
            (2, "COMMIT"),
            (0, "UPDATE test SET value = 0 WHERE id = 1"),
            (0, "COMMIT"),
        ],
        shows: |answers| answers[5] == Answer::Tag("UPDATE 1".to_owned()),
        levels_allowing: 2,
    },
];
