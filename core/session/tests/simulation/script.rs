//! What a client does: acts of every kind, one after another or pipelined.

use onetrip_wire::pg::{
    PROTOCOL_3_0, StatementOrPortal, encode_ssl_request, encode_startup, frame, frontend,
};

use crate::message::{Answer, COPY_TEXT, Entry, Message, Run, TEXTS};
use crate::random::Random;

/// One thing that a client does.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Message),
    /// Waits until the reply to everything sent has come.
    AwaitAll,
    /// Waits until the server asks for COPY data, or refuses.
    AwaitCopy,
    /// Waits for the one byte that answers a request for encryption.
    AwaitRefusal,
    /// Thinks, in nanoseconds.
    Think(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    sent: usize,
    /// Texts of named statements, by number.
    prepared: [Option<usize>; 3],
}

/// What a script may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) acts: u64,
    /// The server may be gone in the middle.
    pub(crate) dies: bool,
}

impl Script {
    pub(crate) fn generate(random: &mut Random, limits: Limits) -> Self {
        let mut script = Self::default();
        script.connect(random);
        let acts = 1 + random.below(limits.acts);
        for act in 0..acts {
            script.act(random, limits.dies && act + 1 == acts);
            match random.below(4) {
                0 | 1 => script.steps.push(Step::AwaitAll),
                2 => script.steps.push(Step::Think(random.below(50_000))),
                _ => {}
            }
        }
        script.steps.push(Step::AwaitAll);
        script
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.steps.iter().filter_map(|step| match step {
            Step::Send(message) => Some(message),
            _ => None,
        })
    }

    fn send(&mut self, message: Message) -> usize {
        self.steps.push(Step::Send(message));
        self.sent += 1;
        self.sent - 1
    }

    fn connect(&mut self, random: &mut Random) {
        if random.once_in(3) {
            let mut bytes = Vec::new();
            encode_ssl_request(&mut bytes);
            self.send(Message::connect(bytes, Vec::new()));
            self.steps.push(Step::AwaitRefusal);
        }
        let mut bytes = Vec::new();
        encode_startup(&mut bytes, PROTOCOL_3_0, [(&b"user"[..], &b"ann"[..]), (b"database", b"shop")]);
        let packet = |entries| Message::connect(bytes.clone(), entries);
        let password = |text: &[u8], entries| {
            let mut bytes = Vec::new();
            frame(&mut bytes, frontend::PASSWORD, |out| out.extend_from_slice(text));
            Message::connect(bytes, entries)
        };
        match random.below(3) {
            0 => {
                self.send(packet(vec![Entry::AuthenticationOk, Entry::Settled]));
            }
            1 => {
                self.send(packet(vec![Entry::CleartextPassword]));
                if random.once_in(2) {
                    self.steps.push(Step::AwaitAll); // else it knows that it will be asked
                }
                self.send(password(b"secret\0", vec![Entry::AuthenticationOk, Entry::Settled]));
            }
            _ => {
                self.send(packet(vec![Entry::Sasl]));
                self.steps.push(Step::AwaitAll);
                self.send(password(b"SCRAM-SHA-256\0n,,n=,r=nonce", vec![Entry::SaslContinue]));
                self.steps.push(Step::AwaitAll);
                let entries = vec![Entry::SaslFinal, Entry::AuthenticationOk, Entry::Settled];
                self.send(password(b"c=biws,p=proof", entries));
            }
        }
        if !random.once_in(3) {
            self.steps.push(Step::AwaitAll);
        }
    }

    fn act(&mut self, random: &mut Random, dies: bool) {
        if dies {
            return self.death(random);
        }
        match random.below(12) {
            0 | 1 => self.query(random),
            2..5 => self.group(random),
            5 => self.flushed_group(random),
            6 => self.cursor(random),
            7 => self.query_in_group(random),
            8 => self.simple_copy(random),
            9 => self.extended_copy(random),
            10 => {
                self.send(Message::function_call(random.once_in(4)));
            }
            _ => self.odd(random),
        }
    }

    fn query(&mut self, random: &mut Random) {
        let mut answers: Vec<Answer> = (0..random.below(3)).map(|_| answer(random)).collect();
        answers.push(if random.once_in(4) { failure(random) } else { answer(random) });
        self.send(simple(random, answers));
    }

    /// Parse, Bind, Execute and so on up to Sync, with an error in any place or none.
    fn group(&mut self, random: &mut Random) {
        for _ in 0..=random.below(3) {
            self.statement(random);
        }
        self.send(Message::sync(random.once_in(8)));
    }

    fn flushed_group(&mut self, random: &mut Random) {
        let fails = random.once_in(6);
        self.send(Message::parse("", TEXTS[0], fails));
        self.send(Message::describe(StatementOrPortal::Statement(b""), random.once_in(6)));
        self.send(Message::flush());
        if random.once_in(2) {
            self.steps.push(Step::AwaitAll);
        }
        self.bind_and_execute(random, "", 0);
        if random.once_in(4) {
            self.send(Message::flush());
        }
        self.send(Message::sync(false));
    }

    /// A portal that is fetched from in pieces.
    fn cursor(&mut self, random: &mut Random) {
        self.send(Message::parse("", TEXTS[2], false));
        self.send(Message::bind("c", "", &[], random.once_in(8)));
        let pieces = random.below(4);
        for piece in 0..=pieces {
            let suspended = piece < pieces;
            let run = Run { template: TEXTS[2].into(), row_limit: 2, ..Run::default() };
            let rows = if suspended { 2 } else { random.below(2) };
            let fails = random.once_in(12);
            self.send(Message::execute("c", run, Answer::Rows { rows, suspended, fails }));
            if suspended {
                self.send(Message::flush());
                if random.once_in(2) {
                    self.steps.push(Step::AwaitAll);
                }
            }
        }
        self.send(Message::close(StatementOrPortal::Portal(b"c"), false));
        self.send(Message::sync(false));
    }

    /// A simple query inside an extended group: after an error it is skipped.
    fn query_in_group(&mut self, random: &mut Random) {
        self.send(Message::parse("", TEXTS[0], random.once_in(2)));
        if random.once_in(3) {
            self.send(Message::flush());
            self.steps.push(Step::AwaitAll);
        }
        let answers = vec![answer(random)];
        self.send(simple(random, answers));
        if random.once_in(3) {
            self.send(Message::function_call(false));
        }
        self.send(Message::sync(false));
    }

    fn simple_copy(&mut self, random: &mut Random) {
        let ahead = random.once_in(3);
        let pieces = random.below(4);
        let fails_after = random.once_in(3).then(|| random.below(pieces + 1));
        let refused = random.once_in(8);
        let copy =
            if refused { Answer::Fails } else { Answer::CopyIn { rows: random.below(100), fails_after } };
        let mut answers = if random.once_in(4) { vec![answer(random)] } else { Vec::new() };
        answers.push(copy);
        if random.once_in(4) {
            answers.push(answer(random));
        }
        let run = Run { template: TEXTS[COPY_TEXT].into(), ..Run::default() };
        self.send(Message::query(TEXTS[COPY_TEXT], run, answers));
        if !ahead {
            self.steps.push(Step::AwaitCopy);
            if refused || (fails_after == Some(0) && random.once_in(2)) {
                return; // the client gave up
            }
        }
        self.copy_data(random, pieces, fails_after, ahead);
    }

    fn extended_copy(&mut self, random: &mut Random) {
        let pieces = random.below(4);
        let refused = random.once_in(8);
        // Sent ahead, with Sync as libpq does it, or with Flush.
        let manner = random.below(3);
        // Whether a Sync behind Execute is read before an error that needs no data is the server's luck.
        let least = u64::from(manner == 1);
        let fails_after =
            (random.once_in(3) && pieces >= least).then(|| least + random.below(pieces + 1 - least));
        let copy =
            if refused { Answer::Fails } else { Answer::CopyIn { rows: random.below(100), fails_after } };
        self.send(Message::parse("", TEXTS[COPY_TEXT], random.once_in(12)));
        let bound = self.send(Message::bind("", "", &[], false));
        if random.once_in(2) {
            self.send(Message::describe(StatementOrPortal::Portal(b""), false));
        }
        let run = Run { template: TEXTS[COPY_TEXT].into(), bound_by: Some(bound), ..Run::default() };
        self.send(Message::execute("", run, copy));
        match manner {
            0 => {}
            1 => {
                self.send(Message::sync(false));
                self.steps.push(Step::AwaitCopy);
            }
            _ => {
                self.send(Message::flush());
                self.steps.push(Step::AwaitCopy);
            }
        }
        self.copy_data(random, pieces, fails_after, manner == 0);
        self.send(Message::sync(false));
    }

    fn copy_data(&mut self, random: &mut Random, pieces: u64, fails_after: Option<u64>, ahead: bool) {
        for _ in 0..pieces {
            let bytes = if random.once_in(20) { 100_000 } else { random.below(40) as usize };
            self.send(Message::copy_data(bytes));
            if random.once_in(8) && fails_after.is_none() {
                self.send(Message::flush());
            }
            if random.once_in(8) && fails_after.is_none() && !ahead {
                self.send(Message::sync(false)); // the server ignores it
            }
        }
        let fails = random.once_in(5) && fails_after.is_none();
        self.send(if fails { Message::copy_fail() } else { Message::copy_done() });
    }

    /// What no driver does, and the protocol allows.
    fn odd(&mut self, random: &mut Random) {
        match random.below(4) {
            0 => {
                self.send(Message::sync(false));
            }
            1 => {
                self.send(Message::flush());
            }
            2 => {
                self.send(Message::copy_data(3));
                self.send(Message::copy_done());
            }
            _ => {
                self.query(random);
                self.send(Message::copy_fail());
                self.query(random);
            }
        }
    }

    fn death(&mut self, random: &mut Random) {
        if random.once_in(2) {
            let answers = vec![answer(random), Answer::Dies];
            self.send(simple(random, answers));
            self.query(random);
        } else {
            self.send(Message::parse("", TEXTS[0], false));
            let bound = self.send(Message::bind("", "", &[], false));
            let run = Run { template: TEXTS[0].into(), bound_by: Some(bound), ..Run::default() };
            self.send(Message::execute("", run, Answer::Dies));
            self.send(Message::sync(false));
            self.group(random);
        }
    }

    /// One statement of a group.
    fn statement(&mut self, random: &mut Random) {
        let text = random.below(4) as usize;
        let slot = random.below(4) as usize;
        let Some(known) = self.prepared.get(slot).copied() else {
            self.send(Message::parse("", TEXTS[text], random.once_in(10)));
            if random.once_in(3) {
                self.send(Message::describe(StatementOrPortal::Statement(b""), random.once_in(10)));
            }
            return self.bind_and_execute(random, "", text);
        };
        let name = format!("s{slot}");
        let text = known.unwrap_or(text);
        if known.is_none() {
            self.send(Message::parse(&name, TEXTS[text], false));
            self.prepared[slot] = Some(text);
        }
        self.bind_and_execute(random, &name, text);
        if random.once_in(6) {
            self.send(Message::close(StatementOrPortal::Statement(name.as_bytes()), random.once_in(10)));
            self.prepared[slot] = None;
        }
    }

    fn bind_and_execute(&mut self, random: &mut Random, name: &str, text: usize) {
        let count = TEXTS[text].matches('$').count() as u64;
        let parameters: Vec<String> = (0..count).map(|_| random.below(1000).to_string()).collect();
        let bound = self.send(Message::bind("", name, &parameters, random.once_in(12)));
        if random.once_in(2) {
            self.send(Message::describe(StatementOrPortal::Portal(b""), random.once_in(12)));
        }
        let template = TEXTS[text].into();
        let run = Run { template, parameters, bound_by: Some(bound), row_limit: 0 };
        let answer = if random.once_in(8) { failure(random) } else { answer(random) };
        self.send(Message::execute("", run, answer));
    }
}

/// A simple query with one literal.
fn simple(random: &mut Random, answers: Vec<Answer>) -> Message {
    let value = random.below(1000).to_string();
    let text = format!("DELETE FROM emp WHERE id = {value}");
    let template = "DELETE FROM emp WHERE id = $1".into();
    Message::query(&text, Run { template, parameters: vec![value], ..Run::default() }, answers)
}

fn answer(random: &mut Random) -> Answer {
    match random.below(6) {
        0..3 => Answer::Rows { rows: random.below(5), suspended: false, fails: false },
        3 => Answer::Command { rows: random.below(9) },
        4 => Answer::Empty,
        _ => Answer::CopyOut { rows: random.below(4) },
    }
}

fn failure(random: &mut Random) -> Answer {
    if random.once_in(2) {
        return Answer::Fails;
    }
    Answer::Rows { rows: random.below(3), suspended: false, fails: true }
}
