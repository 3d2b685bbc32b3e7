//! Where two runs of a program differ.

use onetrip_testkit::asked::Outcome;
use onetrip_testkit::step::{Aside, Program};
use onetrip_wire::pg::{ErrorResponse, backend};

use super::lane::{Message, Taken};
use super::simulation::Seen;

/// Where a run through sessions differs from a direct one. A session that ends because the server refuses what was its own
/// has to say so, and nothing is compared from there on.
pub(crate) fn difference(program: &Program, direct: &Seen, through: &Seen) -> Option<String> {
    let may_end = program.steps.iter().any(|step| matches!(step.aside, Some(Aside::Refuses(_))));
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
    if one.rows != two.rows {
        return Some("other rows are committed".to_owned());
    }
    let (Some(one), Some(two)) = (&one.state, &two.state) else { return None };
    let missing = one.iter().find(|line| !two.contains(line)).map(|line| format!("state: without {line}"));
    let added = || two.iter().find(|line| !one.contains(line)).map(|line| format!("state: with {line}"));
    missing.or_else(added)
}
