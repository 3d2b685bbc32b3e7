use std::time::Duration;

/// What it took until the session could be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opening {
    steps: Vec<OpeningStep>,
}

/// One kind of work on the way to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpeningStep {
    /// Which.
    pub step: Step,
    /// Round trips to the database; zero for work that needs none.
    pub trips: u32,
    /// How long it took.
    pub time: Duration,
}

/// The steps, in the order in which they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The host name's address is looked up.
    Lookup,
    /// TCP's handshake.
    TcpConnect,
    /// A unix socket's connection.
    SocketConnect,
    /// SSLRequest and its answer.
    TlsRequest,
    /// TLS's handshake.
    TlsHandshake,
    /// The startup packet, up to what the server wants to know next.
    Startup,
    /// Answers about the password, up to a session that can be used.
    Authentication,
    /// This program's own work on the password's hash.
    Hashing,
}

impl Opening {
    /// The steps so far, each kind once.
    pub fn steps(&self) -> &[OpeningStep] {
        &self.steps
    }

    /// Trips of all steps.
    pub fn trips(&self) -> u32 {
        self.steps.iter().map(|step| step.trips).sum()
    }

    /// Time of all steps.
    pub fn time(&self) -> Duration {
        self.steps.iter().map(|step| step.time).sum()
    }

    /// Adds to what is known of a step.
    pub(super) fn note(&mut self, step: Step, trips: u32, time: Duration) {
        match self.steps.iter_mut().find(|known| known.step == step) {
            Some(known) => {
                known.trips += trips;
                known.time += time;
            }
            None => self.steps.push(OpeningStep { step, trips, time }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_one_kind_are_one_line_and_the_sum_holds_all() {
        let mut opening = Opening::default();
        opening.note(Step::Startup, 1, Duration::from_millis(20));
        opening.note(Step::Authentication, 1, Duration::from_millis(21));
        opening.note(Step::Hashing, 0, Duration::from_millis(5));
        opening.note(Step::Authentication, 1, Duration::from_millis(22));
        assert_eq!(opening.steps().len(), 3);
        assert_eq!(opening.steps()[1].trips, 2);
        assert_eq!(opening.steps()[1].time, Duration::from_millis(43));
        assert_eq!((opening.trips(), opening.time()), (3, Duration::from_millis(68)));
    }
}
