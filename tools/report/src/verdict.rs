//! Verdicts in words, the same in every format.

use onetrip_ledger::Code;
use onetrip_ledger::judge::{Measure, Rule, Ruling, Verdict};

use crate::clean::{clean, scope_name};
use crate::number::count;

/// How a rule came out, in one word.
pub(crate) fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Passed => "passed",
        Ruling::Unjudged => "unjudged",
        Ruling::Failed => "failed",
    }
}

/// What a rule asks for, without its number: a name that stays while limits change.
pub(crate) fn name(rule: &Rule) -> String {
    match rule {
        Rule::Limit { measure, scope } => format!("{measure}{}", inside(scope.as_deref())),
        Rule::FailOn(code) => format!("no {code} {}", code.title()),
        Rule::Increase { base } => format!("trips compared with {}", clean(base)),
        Rule::Snapshot { measure, scope } => format!("snapshot: {measure}{}", inside(scope.as_deref())),
        Rule::Trace => "the trace is whole".to_owned(),
    }
}

/// The kind of a rule, for programs that group by it.
pub(crate) fn class(rule: &Rule) -> &'static str {
    match rule {
        Rule::Limit { .. } => "onetrip.budget",
        Rule::FailOn(_) => "onetrip.fail-on",
        Rule::Increase { .. } => "onetrip.compare",
        Rule::Snapshot { .. } => "onetrip.snapshot",
        Rule::Trace => "onetrip.trace",
    }
}

/// The rule and what was counted, as a sentence without its full stop.
pub(crate) fn sentence(verdict: &Verdict) -> String {
    if let Some(reason) = &verdict.reason {
        return format!("{}: {}", name(&verdict.rule), clean(&reason.text));
    }
    let counted = count(verdict.counted);
    let allowed = verdict.allowed.map(count).unwrap_or_default();
    match &verdict.rule {
        Rule::Limit { measure, scope } => {
            format!("{}, {allowed} allowed", amount(&counted, *measure, scope.as_deref()))
        }
        Rule::FailOn(code) if verdict.ruling == Ruling::Passed => {
            format!("{code} {}: not found", code.title())
        }
        Rule::FailOn(code) => format!("{code} {}: found", code.title()),
        Rule::Increase { base } if verdict.allowed.is_none() => {
            format!("{}, compared with {}", many(&counted, "trips"), clean(base))
        }
        Rule::Increase { base } => {
            format!("{}, {allowed} allowed after {}", many(&counted, "trips"), clean(base))
        }
        Rule::Snapshot { measure, scope } if verdict.ruling == Ruling::Passed => {
            format!("{}, as in the snapshot", amount(&counted, *measure, scope.as_deref()))
        }
        Rule::Snapshot { measure, scope } => {
            format!("{}, {allowed} in the snapshot", amount(&counted, *measure, scope.as_deref()))
        }
        Rule::Trace => name(&verdict.rule),
    }
}

/// The finding that a rule is about.
pub(crate) fn code(rule: &Rule) -> Option<Code> {
    match rule {
        Rule::Limit { measure: Measure::Finding(code), .. } | Rule::FailOn(code) => Some(*code),
        _ => None,
    }
}

fn amount(counted: &str, measure: Measure, scope: Option<&str>) -> String {
    let scope = inside(scope);
    match measure {
        Measure::Finding(code) => {
            format!("{} of {code} {}{scope}", many(counted, "avoidable trips"), code.title())
        }
        Measure::RequestTripsMost => format!("{} in the longest request{scope}", many(counted, "trips")),
        Measure::RequestTripsMedian => format!("{} in the median request{scope}", many(counted, "trips")),
        measure => format!("{}{scope}", many(counted, &measure.to_string().replace('-', " "))),
    }
}

/// A count of things, whose name is in the singular where it is one.
fn many(counted: &str, things: &str) -> String {
    let things = if counted == "1" { things.strip_suffix('s').unwrap_or(things) } else { things };
    format!("{counted} {things}")
}

fn inside(scope: Option<&str>) -> String {
    scope.map_or(String::new(), |scope| format!(" in {}", scope_name(scope)))
}
