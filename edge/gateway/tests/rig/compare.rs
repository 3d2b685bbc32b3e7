//! Where two runs of a program differ.

use std::collections::{BTreeMap, BTreeSet};

use onetrip_wire::pg::backend;

use super::perturb::RELOADS;
use super::run::{Outcome, Seen, Taken};
use crate::common::may_differ::without_process_ids;
use crate::common::transcript::Message;

/// Steps that a direct run does not repeat, and lines of state.
#[derive(Debug, Default)]
pub(crate) struct Masked {
    pub(crate) steps: BTreeSet<usize>,
    pub(crate) state: BTreeSet<String>,
    /// From here on two direct runs took different steps.
    schedule: Option<usize>,
    /// The first such step.
    pub(crate) first: Option<String>,
}

impl Masked {
    /// What differs between two direct runs.
    pub(crate) fn between(one: &Seen, two: &Seen) -> Self {
        let mut masked = Self::default();
        let pairs = one.taken.iter().zip(&two.taken).enumerate();
        for (place, (left, right)) in pairs {
            // A step that also waits for ever without a gateway is the program's own fault.
            let is_lost = left.outcome != right.outcome || left.outcome == Outcome::Hung;
            if is_lost && masked.schedule.is_none() {
                masked.schedule = Some(place);
            }
            if masked.schedule.is_some() || blotted(left) != blotted(right) {
                masked.first.get_or_insert_with(|| format!("{left:?} against {right:?}"));
                masked.steps.insert(place);
            }
        }
        let lengths = (one.taken.len() != two.taken.len()).then(|| one.taken.len().min(two.taken.len()));
        masked.schedule = masked.schedule.into_iter().chain(lengths).chain(other_race(one, two)).min();
        let (left, right): (BTreeSet<_>, BTreeSet<_>) =
            (one.state.iter().collect(), two.state.iter().collect());
        masked.state = left.symmetric_difference(&right).map(|line| (*line).clone()).collect();
        masked
    }

    /// Hides what another pair of direct runs differs in, too.
    pub(crate) fn add(&mut self, other: Self) {
        self.steps.extend(other.steps);
        self.state.extend(other.state);
        self.schedule = self.schedule.into_iter().chain(other.schedule).min();
        self.first = self.first.take().or(other.first);
    }

    fn hides_state(&self) -> bool {
        self.schedule.is_some() || !self.state.is_empty()
    }
}

/// The first step at which two sessions come to wait in one of the runs, and not in the other.
fn other_race(one: &Seen, two: &Seen) -> Option<usize> {
    let races = one.raced_at.into_iter().chain(two.raced_at);
    if one.raced_at == two.raced_at { None } else { races.min() }
}

/// Where a run through a gateway differs from a direct one.
pub(crate) fn difference(direct: &Seen, through: &Seen, masked: &Masked) -> Option<String> {
    // A parameter that a reload has changed is reported with the server's next answer. Behind a BEGIN that was answered
    // early that is one answer later (`docs/safety.md`, "What may differ").
    let is_reloaded = direct.taken.iter().any(|taken| taken.shown.contains(RELOADS));
    let compared = |taken: &Taken| {
        let mut taken = blotted(taken);
        taken.messages.retain(|message| !is_reloaded || message.tag != backend::PARAMETER_STATUS);
        taken
    };
    let shared = direct.taken.len().min(through.taken.len());
    let race = other_race(direct, through);
    for (place, (left, right)) in direct.taken.iter().zip(&through.taken).enumerate() {
        if masked.schedule.is_some_and(|from| place >= from) {
            return None;
        }
        if race == Some(place) {
            return Some(format!(
                "{}: {left:?} against {right:?}: two sessions wait in one run only",
                left.shown
            ));
        }
        if left.outcome != right.outcome || right.outcome == Outcome::Hung {
            return Some(format!("{}: {:?} against {:?}", left.shown, left.outcome, right.outcome));
        }
        if masked.steps.contains(&place) {
            continue;
        }
        let (one, two) = (compared(left), compared(right));
        let at = (0..one.messages.len().max(two.messages.len()))
            .find(|at| one.messages.get(*at) != two.messages.get(*at));
        if let Some(at) = at {
            let (one, two) = (one.messages.get(at), two.messages.get(at));
            return Some(format!("{}: message {at}: {one:?} against {two:?}", left.shown));
        }
    }
    if masked.schedule.is_some_and(|from| shared >= from) {
        return None;
    }
    if direct.taken.len() != through.taken.len() {
        let (one, two) = (&direct.taken[shared..], &through.taken[shared..]);
        return Some(format!("the sessions end in other states: {one:?} against {two:?}"));
    }
    if is_reloaded && masked.schedule.is_none() && masked.steps.is_empty() {
        let (one, two) = (reported(direct), reported(through));
        if let Some(parameter) =
            one.keys().chain(two.keys()).find(|one_of| one.get(*one_of) != two.get(*one_of))
        {
            return Some(format!(
                "{parameter:?} is {:?} against {:?}",
                one.get(parameter),
                two.get(parameter)
            ));
        }
    }
    let lines = || direct.state.iter().zip(&through.state).find(|(left, right)| left != right);
    let state = if masked.hides_state() { None } else { lines() };
    let lengths = direct.state.len() != through.state.len() && !masked.hides_state();
    match state {
        Some((left, right)) => Some(format!("state: {left} against {right}")),
        None if lengths => Some(format!("state: {:?} against {:?}", direct.state, through.state)),
        None => None,
    }
}

/// What each session believes of each parameter in the end: the session and the parameter, and the value last reported.
fn reported(seen: &Seen) -> BTreeMap<(&str, String), String> {
    let mut values = BTreeMap::new();
    for taken in &seen.taken {
        let session = taken.shown.split(':').next().unwrap_or_default();
        let reports = taken.messages.iter().filter(|message| message.tag == backend::PARAMETER_STATUS);
        for report in reports {
            let mut parts = report.body.split(|byte| *byte == 0).map(|part| part.escape_ascii().to_string());
            let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            values.insert((session, name), value);
        }
    }
    values
}

/// A step without what differs between any two sessions.
fn blotted(taken: &Taken) -> Taken {
    Taken { messages: blotted_messages(&taken.messages), ..taken.clone() }
}

/// Messages without process ids and keys, and without the numbers of transactions and objects in texts of errors.
pub(crate) fn blotted_messages(messages: &[Message]) -> Vec<Message> {
    let blotted = |message: &Message| {
        let body = match message.tag {
            backend::BACKEND_KEY_DATA => Vec::new(),
            backend::NOTIFICATION_RESPONSE => message.body[message.body.len().min(4)..].to_vec(),
            backend::ERROR_RESPONSE | backend::NOTICE_RESPONSE => {
                without_numbers(&without_process_ids(&message.body))
            }
            backend::ROW_DESCRIPTION => without_tables(&message.body),
            backend::PARAMETER_DESCRIPTION => without_types(&message.body),
            _ => message.body.clone(),
        };
        Message { tag: message.tag, body }
    };
    messages.iter().map(blotted).collect()
}

/// Numbers that name transactions, tables and databases in the details of lock errors.
fn without_numbers(text: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 4] = [b"transaction ", b"relation ", b"database ", b"tuple ("];
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        out.push(text[at]);
        at += 1;
        if WORDS.iter().any(|word| out.ends_with(word)) {
            while text.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
        }
    }
    out
}

/// Objects of users have numbers from here on.
const USERS: u32 = 16384;

/// A number of an object, as it is if it is the server's.
fn without_number(number: &mut [u8]) {
    let is_users = <[u8; 4]>::try_from(&*number).is_ok_and(|bytes| u32::from_be_bytes(bytes) >= USERS);
    if is_users {
        number.copy_from_slice(b"user");
    }
}

/// A RowDescription whose columns say that they are of a table, or of a type of a user, but not of which: the numbers of what
/// was made anew are others.
fn without_tables(body: &[u8]) -> Vec<u8> {
    let mut out = body.to_vec();
    let mut at = 2;
    while at < out.len() {
        let Some(name) = out[at..].iter().position(|byte| *byte == 0) else { break };
        at += name + 1;
        for number in [at, at + 6] {
            let Some(number) = out.get_mut(number..number + 4) else { return out };
            without_number(number);
        }
        at += 18;
    }
    out
}

/// A ParameterDescription that does not say which of the users' types a parameter is.
fn without_types(body: &[u8]) -> Vec<u8> {
    let mut out = body.to_vec();
    out.get_mut(2..).unwrap_or_default().chunks_exact_mut(4).for_each(without_number);
    out
}
