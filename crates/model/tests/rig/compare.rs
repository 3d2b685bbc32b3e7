//! Where two runs of a program differ.

use super::lane::{Outcome, Taken};
use super::simulation::Seen;

/// Where a run through sessions differs from a direct one.
pub(crate) fn difference(direct: &Seen, through: &Seen) -> Option<String> {
    for (one, two) in direct.taken.iter().zip(&through.taken) {
        if let Some(found) = step_difference(one, two) {
            return Some(format!("{}: {found}", one.shown));
        }
    }
    (direct.taken.len() != through.taken.len()).then(|| "the sessions end in other states".to_owned())
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
