//! Where two runs of a program differ.

use onetrip_testkit::asked::Outcome;
use onetrip_testkit::step::{Aside, Program};
use onetrip_wire::pg::{ErrorResponse, backend};

use super::lane::{Message, Taken};
use super::simulation::Seen;

/// Where a run through sessions differs from a direct one. A session that ends because the server refuses what was its own
/// has to say so, and nothing is compared from there on.
pub(crate) fn difference(program: &Program, direct: &Seen, through: &Seen) -> Option<String> {
    let has = |is: fn(&Aside) -> bool| program.steps.iter().filter_map(|step| step.aside).any(|it| is(&it));
    let may_end = has(|aside| matches!(aside, Aside::Refuses(_)));
    if has(|aside| matches!(aside, Aside::RefusesNext(_))) {
        if let Some(ends) = refused(direct, through) {
            return ends.err();
        }
    }
    if has(|aside| matches!(aside, Aside::ConfiguresAtOnce(..) | Aside::Notifies)) {
        return told_out_of_place(program, through)
            .or_else(|| difference_of(&untold(direct), &untold(through), may_end));
    }
    if has(|aside| *aside == Aside::Widens) {
        if let Some(found) = described_late(direct, through) {
            return found.err();
        }
    }
    if has(|aside| matches!(aside, Aside::FailsAhead(_))) {
        if let Some(found) = failed_piece(direct, through) {
            return found.err();
        }
    }
    if has(|aside| *aside == Aside::Shares) {
        // What there is of a session is nobody's, and settings that another one has left are told with the next message.
        return difference_of(&untold(direct), &untold(through), may_end);
    }
    difference_of(direct, through, may_end)
}

fn difference_of(direct: &Seen, through: &Seen, may_end: bool) -> Option<String> {
    for (one, two) in direct.taken.iter().zip(&through.taken) {
        if may_end && is_ended_as_it_should(one, two) {
            return None;
        }
        if let Some(found) = step_difference(one, two) {
            return Some(format!("{}: {found}", one.shown));
        }
    }
    (direct.taken.len() != through.taken.len()).then(|| "the sessions end in other states".to_owned())
}

/// Steps within which a session has to end whose statement was answered and then refused.
const ENDS_WITHIN: usize = 4;

/// Where the server has refused what may have been answered: the session says so and ends, and from what was refused on
/// nothing of it is committed. `None` where it was not answered.
fn refused(direct: &Seen, through: &Seen) -> Option<Result<(), String>> {
    let at = through.taken.iter().position(|taken| taken.shown.contains("RefusesNext"))?;
    let behind = through.taken.get(at..)?.iter().take(ENDS_WITHIN);
    let end = at + behind.into_iter().position(|taken| taken.messages.iter().any(is_own_end))?;
    let before = direct.taken.iter().zip(&through.taken).take(at);
    for (one, two) in before {
        if let Some(found) = step_difference(one, two) {
            return Some(Err(format!("{}: {found}", one.shown)));
        }
    }
    Some(match through.taken[end].rows == through.taken[at].rows {
        true => Ok(()),
        false => Err("what came behind a refused statement is committed".to_owned()),
    })
}

/// Where a statement failed because it was described as it was before: nothing of it is done, and the transaction has failed on
/// the server if it has for the program. `None` where none was.
fn described_late(direct: &Seen, through: &Seen) -> Option<Result<(), String>> {
    let is_late_message = |message: &Message| {
        message.tag == backend::ERROR_RESPONSE
            && ErrorResponse::decode(&message.body).is_ok_and(|error| error.sqlstate() == Some(*b"0A000"))
    };
    let is_late = |taken: &Taken| taken.messages.iter().any(is_late_message);
    if let Some(found) = parameter_told_before(direct, through) {
        return Some(found);
    }
    let mut pairs = direct.taken.iter().zip(&through.taken);
    let at = pairs.position(|(one, two)| is_late(two) && !is_late(one))?;
    let aside = through.taken.iter().position(|taken| taken.shown.contains("Widens"))?;
    for (one, two) in direct.taken.iter().zip(&through.taken).take(aside) {
        if let Some(found) = step_difference(one, two) {
            return Some(Err(format!("{}: {found}", one.shown)));
        }
    }
    if through.taken[at].rows != through.taken[at - 1].rows {
        return Some(Err("a statement that has failed has written".to_owned()));
    }
    let is_ready = |message: &&Message| message.tag == backend::READY_FOR_QUERY;
    if through.taken[at].messages.iter().find(is_ready).is_some_and(|ready| ready.body == b"T") {
        return Some(Err("a transaction goes on in which a statement has failed".to_owned()));
    }
    let is_untrue = |line: &String| {
        let told = line.replace("told", "status");
        line.contains(": told ") && !through.taken[at].state.iter().flatten().any(|other| *other == told)
    };
    let untrue = through.taken[at].state.iter().flatten().find(|line| is_untrue(line));
    Some(untrue.map_or(Ok(()), |line| Err(format!("the server's transaction is another: {line}"))))
}

/// Where a piece that was read ahead has failed, the program meets the error when it comes to it, and its transaction has failed.
/// `None` where no step differs.
fn failed_piece(direct: &Seen, through: &Seen) -> Option<Result<(), String>> {
    let mut pairs = direct.taken.iter().zip(&through.taken);
    let at = pairs.position(|(one, two)| one.messages != two.messages)?;
    let (one, two) = (&direct.taken[at], &through.taken[at]);
    let has = |tag: u8| move |message: &Message| message.tag == tag;
    let (fails, ready) = (two.messages.iter().any(has(backend::ERROR_RESPONSE)), backend::READY_FOR_QUERY);
    let is_failed =
        two.messages.iter().find(|message| message.tag == ready).is_some_and(|ready| ready.body == b"E");
    let is_fetch = two.shown.contains("fetch") || two.shown.contains("FETCH");
    Some(match is_fetch && fails && is_failed {
        true => Ok(()),
        false => Err(format!("{}: {:?} against {:?}", one.shown, one.messages, two.messages)),
    })
}

/// Where a parameter was described as it was before, the program may send one of that type. `None` where none was.
fn parameter_told_before(direct: &Seen, through: &Seen) -> Option<Result<(), String>> {
    let told = |taken: &Taken| {
        let mut messages = taken.messages.iter();
        messages.find(|message| message.tag == backend::PARAMETER_DESCRIPTION).cloned()
    };
    let mut pairs = direct.taken.iter().zip(&through.taken);
    let at = pairs.position(|(one, two)| {
        one.shown.contains("WHERE v = $1") && told(two).is_some() && told(one) != told(two)
    })?;
    let session = &through.taken[at].shown[..1];
    let bound = through.taken[at + 1..].iter().find(|taken| taken.shown.starts_with(session))?;
    let has_failed = bound.messages.iter().any(|message| message.tag == backend::ERROR_RESPONSE);
    Some(match has_failed {
        true => Err(format!("{}: a parameter is not what was told: {:?}", bound.shown, bound.messages)),
        false => Ok(()),
    })
}

/// A parameter that is not told right before a server is ready, or a notification that is told in a transaction.
fn told_out_of_place(program: &Program, through: &Seen) -> Option<String> {
    let of = |session: usize| {
        let is_own = move |taken: &&Taken| taken.shown.starts_with(&format!("{session}:"));
        let messages = through.taken.iter().filter(is_own).flat_map(|taken| &taken.messages);
        messages.collect::<Vec<_>>()
    };
    for session in 0..program.sessions {
        let messages = of(session);
        let mut status = b'I';
        for (at, message) in messages.iter().enumerate() {
            let ready = |message: &&&Message| message.tag == backend::READY_FOR_QUERY;
            let is_in_place = match message.tag {
                backend::PARAMETER_STATUS => {
                    // A server would say a notification first; nobody can tell but by that.
                    let unasked = [backend::PARAMETER_STATUS, backend::NOTIFICATION_RESPONSE];
                    let next = messages[at..].iter().find(|next| !unasked.contains(&next.tag));
                    next.as_ref().is_some_and(ready)
                }
                backend::NOTIFICATION_RESPONSE => {
                    let next = messages[at..].iter().find(ready);
                    status == b'I' || next.is_some_and(|next| next.body == b"I")
                }
                backend::READY_FOR_QUERY => {
                    status = message.body[0];
                    true
                }
                _ => true,
            };
            if !is_in_place {
                let from = at.saturating_sub(4);
                let around = &messages[from..messages.len().min(at + 4)];
                return Some(format!("session {session} is told out of place: {message:?} of {around:?}"));
            }
        }
    }
    None
}

/// A run without what is told unasked: with which message a session is told, and follows, is chance.
fn untold(seen: &Seen) -> Seen {
    let untold = |taken: &Taken| {
        let mut taken = taken.clone();
        let is_unasked = |tag| [backend::PARAMETER_STATUS, backend::NOTIFICATION_RESPONSE].contains(&tag);
        taken.messages.retain(|message| !is_unasked(message.tag));
        taken.state = None;
        taken
    };
    Seen {
        taken: seen.taken.iter().map(untold).collect(),
        removed: seen.removed.clone(),
        failed_ahead: seen.failed_ahead,
        counted: seen.counted.clone(),
    }
}

/// Whether a step shows what it shows directly up to the session's own end.
fn is_ended_as_it_should(one: &Taken, two: &Taken) -> bool {
    let end = two.messages.iter().position(is_own_end);
    end.is_some_and(|end| one.messages.starts_with(&two.messages[..end]))
}

/// Whether it is the FATAL of a session that cannot go on.
pub(crate) fn is_own_end(message: &Message) -> bool {
    message.tag == backend::ERROR_RESPONSE
        && ErrorResponse::decode(&message.body).is_ok_and(|error| error.sqlstate() == Some(*b"08006"))
}

fn step_difference(one: &Taken, two: &Taken) -> Option<String> {
    if one.outcome != two.outcome || two.outcome == Outcome::Hung {
        return Some(format!("{:?} against {:?} with {:?}", one.outcome, two.outcome, two.messages));
    }
    let places = 0..one.messages.len().max(two.messages.len());
    if let Some(at) = places.into_iter().find(|at| one.messages.get(*at) != two.messages.get(*at)) {
        let (one, two) = (one.messages.get(at), two.messages.get(at));
        return Some(format!("message {at}: {one:?} against {two:?}"));
    }
    let is_at_rest = one.state.is_some() && two.state.is_some();
    let is_settled = is_at_rest || !(one.is_lock_awaited && two.is_lock_awaited);
    if one.rows != two.rows && is_settled {
        return Some("other rows are committed".to_owned());
    }
    let (Some(one), Some(two)) = (&one.state, &two.state) else { return None };
    let missing = one.iter().find(|line| !two.contains(line)).map(|line| format!("state: without {line}"));
    let added = || two.iter().find(|line| !one.contains(line)).map(|line| format!("state: with {line}"));
    missing.or_else(added)
}
