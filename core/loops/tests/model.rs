//! Everything that can happen at small scope, one case after the other. Two sessions of programs behind one gateway,
//! a server with versions and snapshots, a writer that goes past the gateway; two keys, six steps.
//!
//! The buffer is the real one. What a case checks is only what the program can see: that an answer from memory is what
//! the server would say to this session now.

use std::collections::VecDeque;
use std::time::Duration;

use onetrip_loops::{AGE_MAX, Answer, Asking, Buffer, Origin, Ticket};

const KEYS: usize = 2;
const STEPS: usize = 6;

type Versions = [u8; KEYS];

/// What is left out, to see that the model would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    Nothing,
    /// The program's own write does not flush.
    FlushOnWrite,
    /// The end of the transaction does not flush.
    FlushAtEnd,
    /// Answers that come after a flush are kept.
    LateAnswersDropped,
    /// Guesses leave before the transaction has its snapshot.
    SnapshotFirst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The program reads a key.
    Ask(usize, usize),
    /// The gateway reads a key that nobody asked for.
    Guess(usize, usize),
    /// The server takes the session's next request, and its answer arrives.
    Deliver(usize),
    /// The program writes a key.
    Write(usize, usize),
    /// The program commits and begins another transaction.
    End(usize),
    /// Somebody else commits.
    Commit(usize),
}

/// A request on its way: the key, and in which generation of the model it was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    ticket: Ticket,
    key: usize,
    generation: u32,
    origin: Origin,
}

#[derive(Debug, Clone, Default)]
struct Session {
    buffer: Buffer,
    /// The versions that the transaction sees; none before its first statement.
    snapshot: Option<Versions>,
    /// Those that it would see on a direct connection.
    direct: Option<Versions>,
    own: [Option<u8>; KEYS],
    queue: VecDeque<Sent>,
    /// Flushes that there should have been.
    generation: u32,
    sent_in: Vec<u32>,
}

#[derive(Debug, Clone, Default)]
struct World {
    committed: Versions,
    sessions: [Session; 2],
    served: u32,
}

/// The next value that anybody writes: all are different.
fn fresh(world: &World) -> u8 {
    let most =
        world.committed.iter().chain(world.sessions.iter().flat_map(|session| session.own.iter().flatten()));
    most.max().map_or(0, |most| *most) + 1
}

fn request(key: usize) -> [u8; 9] {
    let mut request = *b"select 0?";
    request[7] = b'0' + key as u8;
    request
}

impl World {
    fn steps(&self, left_out: LeftOut) -> Vec<Step> {
        let mut steps: Vec<Step> = (0..KEYS).map(Step::Commit).collect();
        for (index, session) in self.sessions.iter().enumerate() {
            steps.extend((0..KEYS).map(|key| Step::Ask(index, key)));
            if session.snapshot.is_some() || left_out == LeftOut::SnapshotFirst {
                steps.extend((0..KEYS).map(|key| Step::Guess(index, key)));
            }
            if !session.queue.is_empty() {
                steps.push(Step::Deliver(index));
            }
            steps.extend([Step::Write(index, 0), Step::End(index)]);
        }
        steps
    }

    fn take(&mut self, step: Step, left_out: LeftOut) -> Result<(), String> {
        match step {
            Step::Commit(key) => self.committed[key] = fresh(self),
            Step::Ask(index, key) => return self.ask(index, key, left_out),
            Step::Guess(index, key) => self.send(index, key, Origin::Guess),
            Step::Deliver(index) => self.deliver(index, left_out),
            Step::Write(index, key) => {
                if left_out != LeftOut::FlushOnWrite {
                    self.sessions[index].buffer.flush();
                }
                self.sessions[index].generation += 1;
                self.drain(index, left_out);
                self.sessions[index].snapshot.get_or_insert(self.committed);
                self.sessions[index].direct.get_or_insert(self.committed);
                self.sessions[index].own[key] = Some(fresh(self));
            }
            Step::End(index) => {
                if left_out != LeftOut::FlushAtEnd {
                    self.sessions[index].buffer.flush();
                }
                self.sessions[index].generation += 1;
                self.drain(index, left_out);
                let session = &mut self.sessions[index];
                for (committed, own) in self.committed.iter_mut().zip(session.own.iter_mut()) {
                    *committed = own.take().unwrap_or(*committed);
                }
                session.snapshot = None;
                session.direct = None;
            }
        }
        Ok(())
    }

    /// What the server says to the session now; it takes a snapshot if there is none.
    fn evaluate(&mut self, index: usize, key: usize) -> u8 {
        let session = &mut self.sessions[index];
        let snapshot = session.snapshot.get_or_insert(self.committed);
        session.own[key].unwrap_or(snapshot[key])
    }

    /// What a direct connection would say.
    fn evaluate_direct(&mut self, index: usize, key: usize) -> u8 {
        let session = &mut self.sessions[index];
        let snapshot = session.direct.get_or_insert(self.committed);
        session.own[key].unwrap_or(snapshot[key])
    }

    fn send(&mut self, index: usize, key: usize, origin: Origin) {
        let session = &mut self.sessions[index];
        let ticket = Ticket(session.sent_in.len() as u64);
        session.sent_in.push(session.generation);
        if session.buffer.expect(Duration::ZERO, ticket, &request(key), origin) {
            session.queue.push_back(Sent { ticket, key, generation: session.generation, origin });
        }
    }

    fn deliver(&mut self, index: usize, left_out: LeftOut) {
        let Some(sent) = self.sessions[index].queue.pop_front() else {
            return;
        };
        let value = self.evaluate(index, sent.key);
        let session = &mut self.sessions[index];
        let is_late = sent.generation != session.generation;
        if is_late && left_out == LeftOut::LateAnswersDropped {
            session.buffer.expect(Duration::ZERO, sent.ticket, &request(sent.key), sent.origin);
        }
        if session.buffer.append(sent.ticket, &[value]) {
            session.buffer.complete(sent.ticket);
        }
    }

    /// The server takes all requests of the session before a later one.
    fn drain(&mut self, index: usize, left_out: LeftOut) {
        while !self.sessions[index].queue.is_empty() {
            self.deliver(index, left_out);
        }
    }

    fn ask(&mut self, index: usize, key: usize, left_out: LeftOut) -> Result<(), String> {
        let asking = Asking {
            now: Duration::ZERO,
            in_transaction: true,
            is_pure: true,
            all_rows: true,
            nothing_ahead: true,
            age_max: AGE_MAX,
        };
        loop {
            let (ticket, value) = match self.sessions[index].buffer.ask(&request(key), &asking) {
                Answer::Serve(ticket, reply) => (ticket, reply[0]),
                Answer::Wait(_) => {
                    self.deliver(index, left_out);
                    continue;
                }
                Answer::Forward(_) => {
                    self.send(index, key, Origin::Program);
                    self.drain(index, left_out);
                    let value = self.evaluate(index, key);
                    return self.compare(index, key, value);
                }
            };
            self.served += 1;
            let session = &self.sessions[index];
            if session.sent_in[ticket.0 as usize] != session.generation {
                return Err(format!("session {index} was served across a generation"));
            }
            return self.compare(index, key, value);
        }
    }

    fn compare(&mut self, index: usize, key: usize, value: u8) -> Result<(), String> {
        let direct = self.evaluate_direct(index, key);
        match value == direct {
            true => Ok(()),
            false => Err(format!("session {index} got {value} for key {key}, a direct one {direct}")),
        }
    }
}

#[derive(Debug, Default)]
struct Explored {
    cases: u64,
    served: u64,
    violation: Option<(Vec<Step>, String)>,
}

fn explore(left_out: LeftOut) -> Explored {
    let mut explored = Explored::default();
    let mut path = Vec::new();
    visit(&World::default(), left_out, &mut path, &mut explored);
    explored
}

fn visit(world: &World, left_out: LeftOut, path: &mut Vec<Step>, explored: &mut Explored) {
    if path.len() == STEPS {
        explored.cases += 1;
        explored.served += u64::from(world.served);
        return;
    }
    for step in world.steps(left_out) {
        if explored.violation.is_some() {
            return;
        }
        // sessions are alike: the first one starts
        if path.is_empty() && !matches!(step, Step::Commit(_) | Step::Ask(0, _) | Step::Guess(0, _)) {
            continue;
        }
        let mut next = world.clone();
        path.push(step);
        match next.take(step, left_out) {
            Ok(()) => visit(&next, left_out, path, explored),
            Err(why) => explored.violation = Some((path.clone(), why)),
        }
        path.pop();
    }
}

#[test]
fn memory_always_says_what_the_server_would_say_now() {
    let explored = explore(LeftOut::Nothing);
    assert_eq!(explored.violation, None);
    assert!(explored.cases > 100_000 && explored.served > 50_000, "{explored:?}");
}

#[test]
fn each_part_of_the_generation_rule_is_missed_when_left_out() {
    for left_out in
        [LeftOut::FlushOnWrite, LeftOut::FlushAtEnd, LeftOut::LateAnswersDropped, LeftOut::SnapshotFirst]
    {
        let explored = explore(left_out);
        assert!(explored.violation.is_some(), "{left_out:?} should be noticed");
    }
}
