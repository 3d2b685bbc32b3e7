//! The reply queue against the model of a server: whatever a client sends and however the replies come in between,
//! each is recognised as the answer to the message that the server answered, and in the end nothing is owed.

use onetrip_session::{Due, Expect, Reply, ReplyQueue};
use onetrip_wire::pg::frontend;
use proptest::prelude::*;

use crate::backend::Backend;
use crate::message::{Kind, Message};
use crate::random::Random;
use crate::script::{Limits, Script, Step};

/// What the queue is told about a message, as a session tells it.
fn tell(queue: &mut ReplyQueue, index: usize, message: &Message) {
    let expect = match &message.kind {
        Kind::Query(_) => Expect::Query,
        Kind::Execute(_) => Expect::Execute,
        Kind::Sync { .. } => Expect::Sync,
        Kind::FunctionCall { .. } => Expect::FunctionCall,
        Kind::Step { tag: frontend::PARSE, .. } => Expect::Parse,
        Kind::Step { tag: frontend::BIND, .. } => Expect::Bind,
        Kind::Step { tag: frontend::CLOSE, .. } => Expect::Close,
        Kind::Step { replies: b"tT", .. } => Expect::DescribeStatement,
        Kind::Step { .. } => Expect::DescribePortal,
        Kind::CopyEnd { .. } => return queue.copy_ended(),
        Kind::Flush | Kind::CopyData | Kind::Connect(_) => return,
    };
    queue.sent(Due::of_client(expect, index as u64, None));
}

struct Conversation {
    queue: ReplyQueue,
    backend: Backend,
    messages: Vec<Message>,
    sent: usize,
    heard: usize,
}

impl Conversation {
    fn send(&mut self, random: &mut Random) {
        let index = self.sent;
        self.sent += 1;
        if let Kind::Connect(_) = self.messages[index].kind {
            self.backend.fates.push(Default::default());
            return;
        }
        tell(&mut self.queue, index, &self.messages[index]);
        self.backend.take(index, &self.messages[index], random);
    }

    /// Shows the next reply to the queue.
    fn hear(&mut self) -> Result<(), TestCaseError> {
        let number = self.heard;
        self.heard += 1;
        let reply = &self.backend.replies[number];
        let mut dropped = Vec::new();
        let heard = self.queue.received(reply.tag, |due| dropped.push(due.unit as usize));
        let answered = match heard {
            Reply::Part(due) | Reply::Last(due) | Reply::Failed(due) | Reply::CopyIn(due) => {
                Some(due.unit as usize)
            }
            Reply::Async => None,
            Reply::Unasked => return Err(TestCaseError::fail(format!("unasked: {reply:?}"))),
        };
        prop_assert_eq!(answered, reply.answers, "reply {} is {:?}", number, heard);
        if let Reply::Last(due) = heard {
            prop_assert_eq!(self.backend.fates[due.unit as usize].ended_by, Some(number));
        }
        for index in dropped {
            let fate = self.backend.fates.get(index).copied().unwrap_or_default();
            prop_assert_eq!(fate.ended_by, Some(number), "message {} was dropped", index);
        }
        Ok(())
    }

    /// Hears replies in any number, or all.
    fn hear_some(&mut self, random: &mut Random, all: bool) -> Result<(), TestCaseError> {
        while self.heard < self.backend.replies.len() && (all || !random.once_in(3)) {
            self.hear()?;
        }
        Ok(())
    }
}

fn converse(random: &mut Random) -> Result<(), TestCaseError> {
    let script = Script::generate(random, Limits { acts: 6, dies: false });
    let messages = script.messages().cloned().collect();
    let queue = ReplyQueue::default();
    let mut conversation = Conversation { queue, backend: Backend::new(9), messages, sent: 0, heard: 0 };
    for step in &script.steps {
        match step {
            Step::Send(_) => {
                conversation.send(random);
                conversation.hear_some(random, false)?;
            }
            Step::AwaitAll => {
                conversation.hear_some(random, true)?;
                prop_assert!(conversation.queue.is_empty(), "{:?} is owed", conversation.queue.front());
                prop_assert!(!conversation.queue.is_copying_in());
            }
            Step::AwaitCopy => conversation.hear_some(random, true)?,
            Step::AwaitRefusal | Step::Think(_) => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_reply_is_recognised_as_the_answer_to_its_message(
        choices in proptest::collection::vec(any::<u32>(), 0..400)
    ) {
        converse(&mut Random::listed(choices))?;
    }
}

#[test]
fn long_conversations_keep_the_queue_in_step() {
    for seed in 0..5_000 {
        let outcome = converse(&mut Random::seeded(seed));
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}
