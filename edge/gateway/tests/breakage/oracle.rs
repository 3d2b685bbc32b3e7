//! What may become of a program whose session breaks.

use onetrip_wire::pg::{ErrorResponse, backend};

use super::trial::Trial;
use crate::common::transcript::Message;
use crate::rig::compare::blotted_messages;
use crate::rig::schema::OBJECTS;
use crate::rig::state::State;

/// What was done to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breakage {
    /// The server ended its process.
    Killed,
    /// The socket to the server was cut.
    Cut,
    /// It was sent a CancelRequest.
    Cancelled,
}

impl Breakage {
    /// The errors that a direct run gives, or may.
    fn codes(self) -> &'static [&'static [u8]] {
        match self {
            Self::Killed => &[b"57P01", b"08006"],
            Self::Cut => &[b"08006"],
            Self::Cancelled => &[b"57014"],
        }
    }
}

/// Where a broken program parts from one that was left alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nowhere.
    Whole,
    /// At this step, as it may.
    Broken(usize),
    /// As it may not.
    Wrong(String),
}

/// Judges a program that broke at step `from` or later against the same program left alone.
pub(crate) fn judge(alone: &Trial, broken: &Trial, breakage: Breakage, from: usize) -> Verdict {
    if broken.hangs {
        return Verdict::Wrong(format!("it hangs behind step {}", broken.replies.len()));
    }
    for (number, reply) in broken.replies.iter().enumerate() {
        let Some(expected) = alone.replies.get(number) else {
            return Verdict::Wrong(format!("step {number} comes behind the end"));
        };
        if blotted_messages(reply) == blotted_messages(expected) {
            continue;
        }
        if number < from {
            return Verdict::Wrong(format!(
                "step {number}, before anything broke: {reply:?} against {expected:?}"
            ));
        }
        let is_last = number + 1 == alone.replies.len();
        let says_more = broken.replies[number + 1..].iter().any(|reply| !reply.is_empty());
        let goes_on = says_more || !(broken.is_over || is_last);
        let status = status_behind(&broken.replies[..number]);
        return match breaks_well(reply, expected, breakage, status) {
            Ok(_) if breakage == Breakage::Cancelled => Verdict::Broken(number),
            Ok(_) if goes_on => Verdict::Wrong(format!(
                "it goes on behind step {number}, {reply:?}: {:?}",
                &broken.replies[number + 1..]
            )),
            Ok(is_whole) => Verdict::Broken(number + usize::from(is_whole)),
            Err(how) => Verdict::Wrong(format!("step {number}: {how}: {reply:?} against {expected:?}")),
        };
    }
    match breakage {
        Breakage::Cancelled => Verdict::Whole,
        // It ended between two steps, without a word.
        _ if broken.is_over && broken.replies.len() < alone.replies.len() => {
            Verdict::Broken(broken.replies.len())
        }
        _ => Verdict::Whole,
    }
}

/// Whether a reply is all of what was expected before the error; a reply that is not the beginning of what was expected,
/// and then the right error or nothing, is wrong. A statement that is cancelled leaves a transaction failed: `status` is that
/// before it.
fn breaks_well(
    reply: &[Message],
    expected: &[Message],
    breakage: Breakage,
    status: u8,
) -> Result<bool, String> {
    let is_last_error =
        |message: &Message| message.tag == backend::ERROR_RESPONSE && code_fits(message, breakage);
    let told = reply.iter().position(is_last_error);
    let good = told.unwrap_or(reply.len());
    if blotted_messages(&reply[..good]) != blotted_messages(&expected[..good.min(expected.len())]) {
        return Err("it begins otherwise".to_owned());
    }
    let behind = told.map_or(&[][..], |at| &reply[at + 1..]);
    let is_cancel = breakage == Breakage::Cancelled;
    let status = if status == b'I' { b"I" } else { b"E" };
    match behind {
        [] if !is_cancel || !expected.iter().any(|message| message.tag == backend::READY_FOR_QUERY) => {
            Ok(good == expected.len())
        }
        [ready] if is_cancel && ready.tag == backend::READY_FOR_QUERY && ready.body == status => Ok(false),
        _ => Err(format!("{behind:?} comes behind the error")),
    }
}

/// What the last ReadyForQuery said.
fn status_behind(replies: &[Vec<Message>]) -> u8 {
    let mut ready = replies.iter().flatten().filter(|message| message.tag == backend::READY_FOR_QUERY);
    ready.next_back().and_then(|ready| ready.body.first().copied()).unwrap_or(b'I')
}

fn code_fits(message: &Message, breakage: Breakage) -> bool {
    let error = ErrorResponse::decode(&message.body).expect("an error");
    error.field(b'C').is_some_and(|code| breakage.codes().contains(&code))
}

/// Whether the tables are those of a program that was left after one of two steps. Sequences keep what a step that broke
/// took from them, and are not looked at; nor are the OIDs that the server gives to objects which a program makes.
pub(crate) fn is_left_as(left: &State, either: &State, or: &State) -> bool {
    let tables = |state: &State| -> State {
        state
            .iter()
            .filter(|line| !line.starts_with("public.sq|") && !line.contains("_seq|"))
            .map(|line| without_given_oid(line))
            .collect()
    };
    tables(left) == tables(either) || tables(left) == tables(or)
}

/// A line of the state; of a large object that is none of the schema's, without its OID.
fn without_given_oid(line: &str) -> String {
    match line.strip_prefix("object|").and_then(|object| object.split_once('|')) {
        Some((oid, content)) if !oid.parse().is_ok_and(|oid| OBJECTS.contains(&oid)) => {
            format!("object|{content}")
        }
        _ => line.to_owned(),
    }
}
