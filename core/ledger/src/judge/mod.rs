//! What a run is judged by, and the verdicts. A run that was not seen, or not seen whole, passes no rule: it could not
//! be judged.

pub mod budget;
pub mod compare;
pub mod mutes;
pub mod snapshot;

mod nearest;
mod reason;

pub use budget::{Limit, Measure};
pub use compare::{Base, Comparison, Increase};
pub use nearest::nearest;
pub use reason::Reason;
pub use snapshot::Snapshot;

use crate::{Code, Gaps, NoSession, Refusal, ScopeTotals, Summary};
use reason::{LOSS, MISSING_SCOPES, NO_CONNECTIONS, OPEN};

/// Scopes that a reason names where none is like the one that was asked for.
const SCOPES_NAMED_MAX: usize = 5;

/// All that a run is judged by.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Budgets.
    pub limits: Vec<Limit>,
    /// Findings that must not be there.
    pub fail_on: Vec<Code>,
    /// The earlier run that this one is compared with.
    pub base: Option<Base>,
    /// How many more trips than in that are allowed.
    pub max_increase: Option<Increase>,
    /// The numbers that the run is expected to have, and the name of their file.
    pub snapshot: Option<(String, Snapshot)>,
    /// What is taken as it is.
    pub allow: Allow,
}

/// What keeps a run from being judged unless it is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allow {
    /// No session was opened.
    pub no_connections: bool,
    /// A scope did not occur: it spent nothing.
    pub missing_scopes: bool,
    /// The trace has no end: what is there is judged.
    pub open: bool,
    /// Records are missing: what is there is judged.
    pub loss: bool,
}

/// How one rule came out; the worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    /// The run met it.
    Passed,
    /// Nobody knows: see [`Verdict::reason`].
    Unjudged,
    /// The run did not meet it.
    Failed,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// No more of something than a limit.
    Limit {
        /// Of what.
        measure: Measure,
        /// In which scope; `None` is the whole run.
        scope: Option<String>,
    },
    /// A finding must not be there.
    FailOn(Code),
    /// No more trips than an earlier run had, and so many more; without a limit the two are compared only.
    Increase {
        /// What the earlier run is called.
        base: String,
    },
    /// As many of something as the snapshot says.
    Snapshot {
        /// Of what.
        measure: Measure,
        /// In which scope; `None` is the whole run.
        scope: Option<String>,
    },
    /// The trace that was asked for holds the whole run.
    Trace,
}

/// One rule, and whether the run met it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What was asked.
    pub rule: Rule,
    /// How it came out.
    pub ruling: Ruling,
    /// What was counted.
    pub counted: u64,
    /// The most that was allowed, or what was expected; `None` where the rule has no number.
    pub allowed: Option<u64>,
    /// Why it could not be judged.
    pub reason: Option<Reason>,
}

/// All verdicts on one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// One for each rule.
    pub verdicts: Vec<Verdict>,
    /// What differs from the earlier run.
    pub comparison: Option<Comparison>,
}

impl Judgement {
    /// The worst of the verdicts; a run without rules meets them all.
    pub fn ruling(&self) -> Ruling {
        self.verdicts.iter().map(|verdict| verdict.ruling).max().unwrap_or(Ruling::Passed)
    }

    /// Why rules could not be judged, each reason once.
    pub fn reasons(&self) -> Vec<&Reason> {
        let mut reasons: Vec<&Reason> = Vec::new();
        for reason in self.verdicts.iter().filter_map(|verdict| verdict.reason.as_ref()) {
            if !reasons.iter().any(|known| known.text == reason.text) {
                reasons.push(reason);
            }
        }
        reasons
    }

    /// The trace that was written of this run is not whole.
    pub fn trace_is_incomplete(&mut self, reason: Reason) {
        let rule = Rule::Trace;
        let ruling = Ruling::Unjudged;
        self.verdicts.push(Verdict { rule, ruling, counted: 0, allowed: None, reason: Some(reason) });
    }

    /// The program spent more than was counted, nobody knows how much. What is too much already has failed for certain.
    pub fn is_too_little(&mut self, reason: &Reason) {
        for verdict in &mut self.verdicts {
            let is_fewer = matches!(verdict.rule, Rule::Snapshot { .. })
                && verdict.allowed.is_some_and(|expected| verdict.counted < expected);
            if verdict.ruling == Ruling::Passed || verdict.ruling == Ruling::Failed && is_fewer {
                verdict.ruling = Ruling::Unjudged;
                verdict.reason = Some(reason.clone());
            }
        }
    }

    /// Work of one scope was booked on another: nothing is known of single ones.
    pub fn scopes_are_mixed(&mut self, reason: &Reason) {
        for verdict in &mut self.verdicts {
            if let Rule::Limit { scope: Some(_), .. } | Rule::Snapshot { scope: Some(_), .. } = verdict.rule {
                verdict.ruling = Ruling::Unjudged;
                verdict.reason.get_or_insert_with(|| reason.clone());
            }
        }
    }
}

impl Rules {
    /// Whether there is anything that a run is judged by.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.fail_on.is_empty() && self.base.is_none() && self.snapshot.is_none()
    }

    /// Holds the rules against what was counted.
    pub fn judge(&self, summary: &Summary) -> Judgement {
        let limits = self.limits.iter().map(|limit| self.limit(limit, summary));
        let fail_on = self.fail_on.iter().map(|code| self.fail_on(*code, summary));
        let increase = self.base.iter().map(|base| self.increase(base, summary));
        let mut verdicts: Vec<Verdict> = limits.chain(fail_on).chain(increase).collect();
        if let Some((name, snapshot)) = &self.snapshot {
            self.snapshot(name, snapshot, summary, &mut verdicts);
        }
        let comparison = self.base.as_ref().map(|base| Comparison::new(base, summary));
        Judgement { verdicts, comparison }
    }

    /// Why nothing at all can be said of a run.
    pub fn not_seen(&self, summary: &Summary) -> Option<Reason> {
        let why = summary.no_session().filter(|_| !self.allow.no_connections)?;
        let text = match why {
            NoSession::Refused(Refusal { sqlstate, message, .. }) => {
                format!("no session was opened: {message} ({sqlstate})")
            }
            NoSession::Left { .. } | NoSession::AskedForEncryption => "no session was opened".to_owned(),
            NoSession::Unreadable => "no session is in what could be read and understood".to_owned(),
            NoSession::Unreached => "no connection reached the gateway".to_owned(),
        };
        Some(Reason::unless(NO_CONNECTIONS, text))
    }

    /// Why what was counted may be too little; a limit that is exceeded all the same is exceeded for certain.
    pub fn not_seen_whole(&self, gaps: &Gaps) -> Option<Reason> {
        Some(if gaps.lost_bytes > 0 && !self.allow.loss {
            Reason::unless(LOSS, format!("records of {} bytes were lost", gaps.lost_bytes))
        } else if gaps.damaged_blocks > 0 && !self.allow.loss {
            let bytes = gaps.damaged_bytes;
            Reason::unless(LOSS, format!("the trace is damaged: {bytes} bytes cannot be read"))
        } else if gaps.is_open && !self.allow.open {
            let text = "the trace has no end: it is still being written, or its writer was killed";
            Reason::unless(OPEN, text)
        } else {
            return None;
        })
    }

    fn limit(&self, limit: &Limit, summary: &Summary) -> Verdict {
        let Limit { measure, most, scope } = limit;
        let rule = Rule::Limit { measure: *measure, scope: scope.clone() };
        let counted = self.count(*measure, scope.as_deref(), summary);
        self.verdict(rule, summary, counted, Some(*most), |counted| counted > *most)
    }

    fn fail_on(&self, code: Code, summary: &Summary) -> Verdict {
        let counted = self.count(Measure::Finding(code), None, summary);
        self.verdict(Rule::FailOn(code), summary, counted, None, |counted| counted > 0)
    }

    fn increase(&self, base: &Base, summary: &Summary) -> Verdict {
        let most = self.max_increase.map(|increase| increase.most(base.trips));
        let unknown = match base.sessions {
            0 if !self.allow.no_connections => {
                Some(Reason::unless(NO_CONNECTIONS, "no session was opened in it"))
            }
            _ if base.has_failed => Some(Reason::always("its program failed")),
            _ => self.not_seen_whole(&base.gaps),
        };
        let counted = match unknown {
            Some(Reason { text, option }) => {
                Err(Reason { text: format!("{} cannot be compared with: {text}", base.name), option })
            }
            None => Ok(summary.trips.total),
        };
        let rule = Rule::Increase { base: base.name.clone() };
        self.verdict(rule, summary, counted, most, |counted| most.is_some_and(|most| counted > most))
    }

    fn snapshot(&self, name: &str, snapshot: &Snapshot, summary: &Summary, verdicts: &mut Vec<Verdict>) {
        let expected = |scope: Option<&str>, measure, expected: u64| {
            let rule = Rule::Snapshot { measure, scope: scope.map(str::to_owned) };
            let counted = self.count(measure, scope, summary);
            let mut verdict =
                self.verdict(rule, summary, counted, Some(expected), |counted| counted != expected);
            // More than what was expected is certain, less may be what is missing.
            if verdict.ruling == Ruling::Failed && verdict.counted < expected {
                if let Some(reason) = self.not_seen_whole(&summary.gaps) {
                    verdict.ruling = Ruling::Unjudged;
                    verdict.reason = Some(reason);
                }
            }
            verdict
        };
        if let Some(trips) = snapshot.work_trips {
            verdicts.push(expected(None, Measure::WorkTrips, trips));
        }
        if let Some(connections) = snapshot.connections {
            verdicts.push(expected(None, Measure::Connections, connections));
        }
        for (label, numbers) in &snapshot.scopes {
            let known = |name: &str| snapshot::NAMES.iter().find(|(known, _)| *known == name);
            let is_missing = find(label, summary).is_none();
            if is_missing && self.allow.missing_scopes && self.not_seen(summary).is_none() {
                continue;
            }
            let measures = numbers.iter().filter_map(|(name, number)| Some((known(name)?.1, *number)));
            verdicts.extend(measures.map(|(measure, number)| expected(Some(label), measure, number)));
        }
        for (label, numbers) in Snapshot::of(summary).scopes {
            if !snapshot.scopes.contains_key(&label) {
                let counted = numbers.values().next().copied().unwrap_or_default();
                let rule = Rule::Snapshot { measure: Measure::Trips, scope: Some(label.clone()) };
                let reason = Reason::always(format!("scope {label:?} is not in {name}; --update adds it"));
                let ruling = Ruling::Unjudged;
                verdicts.push(Verdict { rule, ruling, counted, allowed: None, reason: Some(reason) });
            }
        }
    }

    /// What was counted, or why that is not known.
    fn count(&self, measure: Measure, scope: Option<&str>, summary: &Summary) -> Result<u64, Reason> {
        let Some(label) = scope else { return Ok(measure.of_run(summary)) };
        match find(label, summary) {
            Some(scope) if measure.is_per_request() && scope.requests == 0 => Err(Reason::always(format!(
                "no request was told apart in scope {label:?}: its statements carry no traceparent"
            ))),
            Some(scope) => Ok(measure.of_scope(scope)),
            None if label.is_empty() => Ok(0),
            // It may have occurred where scopes were no longer told apart.
            None if summary.gaps.unscoped_statements > 0 && !self.allow.loss => Err(untold(&summary.gaps)),
            None if self.allow.missing_scopes => Ok(0),
            None => Err(Reason::unless(MISSING_SCOPES, missing(label, summary))),
        }
    }

    fn verdict(
        &self,
        rule: Rule,
        summary: &Summary,
        counted: Result<u64, Reason>,
        allowed: Option<u64>,
        has_failed: impl FnOnce(u64) -> bool,
    ) -> Verdict {
        let number = *counted.as_ref().unwrap_or(&0);
        let has_failed = counted.is_ok() && has_failed(number);
        // What may be wrong whichever way it looks, then what is too little at worst.
        let unknown = self.not_seen(summary).or(counted.err());
        let too_little =
            || self.not_seen_whole(&summary.gaps).or_else(|| self.not_told(&rule, &summary.gaps));
        let (ruling, reason) = match unknown {
            Some(reason) => (Ruling::Unjudged, Some(reason)),
            None if has_failed => (Ruling::Failed, None),
            None => match too_little() {
                Some(reason) => (Ruling::Unjudged, Some(reason)),
                None => (Ruling::Passed, None),
            },
        };
        Verdict { rule, ruling, counted: number, allowed, reason }
    }

    /// Why this rule's count may be too little although no record is missing.
    fn not_told(&self, rule: &Rule, gaps: &Gaps) -> Option<Reason> {
        if self.allow.loss {
            return None;
        }
        match rule {
            Rule::Limit { measure: Measure::Finding(_), .. } | Rule::FailOn(_) if gaps.hides_findings() => {
                let text = if gaps.cut_exchanges > 0 {
                    format!("{} exchanges were too long to be kept whole", gaps.cut_exchanges)
                } else {
                    format!("{} statements were too many to be told apart", gaps.untold_statements)
                };
                Some(Reason::unless(LOSS, text))
            }
            Rule::Limit { scope: Some(_), .. } | Rule::Snapshot { scope: Some(_), .. }
                if gaps.unscoped_statements > 0 =>
            {
                Some(untold(gaps))
            }
            _ => None,
        }
    }
}

fn find<'s>(label: &str, summary: &'s Summary) -> Option<&'s ScopeTotals> {
    summary.scopes.iter().find(|scope| scope.label == label)
}

/// Scopes are not told apart beyond a bound.
fn untold(gaps: &Gaps) -> Reason {
    let statements = gaps.unscoped_statements;
    let text = format!("scopes or requests of {statements} statements were too many to be told apart");
    Reason::unless(LOSS, text)
}

/// Says that a scope did not occur, and which it may have been meant to be.
fn missing(label: &str, summary: &Summary) -> String {
    let known = || summary.scopes.iter().map(|scope| scope.label.as_str()).filter(|label| !label.is_empty());
    let meant = match nearest(label, known()) {
        Some(meant) => format!("; did you mean {meant:?}?"),
        None if known().next().is_none() => "; no work names a scope".to_owned(),
        None => {
            let named: Vec<String> =
                known().take(SCOPES_NAMED_MAX).map(|label| format!("{label:?}")).collect();
            let more = if known().count() > named.len() { ", …" } else { "" };
            format!("; there are {}{more}", named.join(", "))
        }
    };
    format!("scope {label:?} did not occur{meant}")
}

#[cfg(test)]
mod tests;
