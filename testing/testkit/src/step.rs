//! What a program is made of.

use std::time::Duration;

use onetrip_wire::pg::backend;

/// What one session does next; the others wait.
#[derive(Debug, Clone)]
pub struct Step {
    /// Whose it is.
    pub session: usize,
    /// What the client sends.
    pub bytes: Vec<u8>,
    /// What it waits for.
    pub wait: Wait,
    /// What becomes of it if that does not come.
    pub patience: Patience,
    /// Time that passes before it.
    pub pause: Duration,
    /// What happens to the server instead, with everything at rest.
    pub aside: Option<Aside>,
    /// For people.
    pub shown: String,
}

/// What happens beside a program's messages. Only the model's server can be told to the message when its own happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aside {
    /// Its configuration is read anew, and a parameter has another value.
    Configures(&'static str, &'static str),
    /// It cannot roll back to the next savepoint whose name begins so.
    Refuses(&'static str),
    /// The same, and sessions are told with whatever comes next.
    ConfiguresAtOnce(&'static str, &'static str),
    /// The session hears of a notification right ahead of whatever comes next.
    Notifies,
    /// The next statement of the session that begins so fails for want of memory.
    RefusesNext(&'static str),
    /// Somebody else gives the column `v` of `w` another type.
    Widens,
    /// From now on nobody may read or write this table.
    Revokes(&'static str),
    /// It has followed another server from its start on, and writes nothing.
    StandsBy,
    /// The session was opened with the parameter replication.
    Replicates,
    /// A pooler stands in front of it from its start on, and gives all clients one session.
    Shares,
    /// The next piece of a result that is read behind a savepoint whose name begins so fails for want of memory.
    FailsAhead(&'static str),
    /// From the start on, the server warns of each answer that has nothing but the row of `p` with this key.
    Warns(i64),
    /// There is a function, from the start on, that moves the cursor `c1`.
    Moves,
    /// With its next step, the session's client asks for whatever runs to be cancelled; the model's server is slow enough to be
    /// hit amid its next statement.
    CancelsNext,
    /// The session's client asks for whatever runs to be cancelled; the model's never do.
    Cancels,
}

impl Step {
    /// A step that may wait for another session.
    pub fn new(session: usize, bytes: Vec<u8>, wait: Wait, shown: impl Into<String>) -> Self {
        let (patience, pause, shown) = (Patience::Blocks, Duration::ZERO, shown.into());
        Self { session, bytes, wait, patience, pause, aside: None, shown }
    }

    /// A step of nobody's, listed with those of a session.
    pub fn aside(session: usize, aside: Aside) -> Self {
        Self { aside: Some(aside), ..Self::new(session, Vec::new(), Wait::Ready(0), format!("{aside:?}")) }
    }
}

/// What answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// So many ReadyForQuery messages.
    Ready(usize),
    /// The end of one Execute, or an error; a Flush asked for it.
    Executed,
    /// The end of one Describe, or an error; a Flush asked for it.
    Described,
}

impl Wait {
    /// The messages one of which ends what a Flush asked for.
    pub fn stops(self) -> &'static [u8] {
        match self {
            Self::Ready(_) => &[],
            Self::Executed => &[
                backend::COMMAND_COMPLETE,
                backend::PORTAL_SUSPENDED,
                backend::EMPTY_QUERY_RESPONSE,
                backend::ERROR_RESPONSE,
            ],
            Self::Described => &[backend::ROW_DESCRIPTION, backend::NO_DATA, backend::ERROR_RESPONSE],
        }
    }
}

/// What becomes of a step that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// If the server says that it waits for another session, the schedule goes on.
    Blocks,
    /// It ends by itself, as by a timeout.
    Ends,
}

/// A schedule of steps.
#[derive(Debug, Clone)]
pub struct Program {
    /// How many there are.
    pub sessions: usize,
    /// In their order.
    pub steps: Vec<Step>,
}

impl Program {
    /// Whether tables may not be as they were created when it is over.
    pub fn changes_schema(&self) -> bool {
        const CHANGES: [&str; 16] = [
            "ALTER ",
            "DROP ",
            "CREATE INDEX",
            "CREATE OR REPLACE",
            "CREATE TABLE ",
            "CREATE VIEW",
            "CREATE RULE",
            "CREATE POLICY",
            "CREATE TRIGGER",
            "CREATE FUNCTION",
            "CREATE OPERATOR",
            "CREATE TYPE",
            "INTO other.",
            "REVOKE ",
            "GRANT ",
            "CLUSTER ",
        ];
        let changes = |step: &Step| CHANGES.iter().any(|word| step.shown.contains(word));
        self.steps.iter().any(changes)
    }

    /// One line per step.
    pub fn shown(&self) -> String {
        self.steps.iter().map(|step| format!("{}: {}\n", step.session, step.shown)).collect()
    }
}
