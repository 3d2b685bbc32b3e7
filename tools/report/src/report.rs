//! All that a report says of a run, whatever its form.

use onetrip_forecast::Prices;
use onetrip_ledger::Summary;
use onetrip_ledger::judge::{Comparison, Judgement, Ruling, Verdict};
use onetrip_ledger::network::NetworkSummary;
use onetrip_ledger::sides::TwoSides;

use crate::{clean, headline, verdict};

/// Everything that is said about one run.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// What was counted.
    pub summary: &'a Summary,
    /// The program that was run, where there was one.
    pub run: Option<&'a RunInfo>,
    /// How the run met what it was judged by, if it was.
    pub judgement: Option<&'a Judgement>,
    /// What it costs at other distances.
    pub prices: Option<&'a Prices>,
    /// What packets tell of the network, where a capture was read.
    pub network: Option<&'a NetworkSummary>,
    /// Where each millisecond went, where captures of both ends were read.
    pub sides: Option<&'a TwoSides>,
    /// How to point the program at the gateway: said when no connection reached it.
    pub how_to_connect: &'a str,
    /// The command line that makes the report, without secrets; empty where nobody wants to know.
    pub command: &'a [String],
}

impl<'a> Report<'a> {
    /// A report on `summary` with nothing else to say; fill in the other fields as there is need.
    pub fn new(summary: &'a Summary) -> Self {
        Self {
            summary,
            run: None,
            judgement: None,
            prices: None,
            network: None,
            sides: None,
            how_to_connect: "",
            command: &[],
        }
    }

    /// The one sentence that matters; what kept the run from being judged comes before it.
    ///
    /// "Nothing worth doing here" is said when the avoidable trips are few and short: less than 5 % of all trips
    /// or fewer than five of them, and less than 5 ms or less than 1 % of the time spent waiting; never of a run that
    /// opened no session or whose program failed.
    pub fn headline(&self) -> String {
        headline::sentence(self)
    }

    /// Whether anything is worth changing: see [`Self::headline`].
    pub fn is_worth_doing(&self) -> bool {
        headline::is_worth_doing(self.summary)
    }

    /// The worst verdict.
    pub fn ruling(&self) -> Ruling {
        self.judgement.map_or(Ruling::Passed, Judgement::ruling)
    }

    /// The verdicts of this kind, each as one line that is safe to print.
    pub fn verdicts_of(&self, ruling: Ruling) -> impl Iterator<Item = String> {
        self.verdicts().iter().filter(move |verdict| verdict.ruling == ruling).map(verdict::sentence)
    }

    /// Why the run could not be judged, each as one line that is safe to print, with the option that takes it as it is.
    pub fn reasons_shown(&self) -> impl Iterator<Item = (String, Option<&'static str>)> {
        let reasons = self.judgement.map_or_else(Vec::new, Judgement::reasons);
        reasons.into_iter().map(|reason| (clean::clean(&reason.text), reason.option))
    }

    pub(crate) fn verdicts(&self) -> &'a [Verdict] {
        self.judgement.map_or(&[], |judgement| &judgement.verdicts)
    }

    /// The verdicts, what is wrong first.
    pub(crate) fn worst_first(&self) -> Vec<&'a Verdict> {
        let mut verdicts: Vec<_> = self.verdicts().iter().collect();
        verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.ruling));
        verdicts
    }

    pub(crate) fn comparison(&self) -> Option<&'a Comparison> {
        self.judgement?.comparison.as_ref()
    }

    /// Why the run could not be judged.
    pub(crate) fn reasons(&self) -> Vec<&'a str> {
        let reasons = self.judgement.map_or_else(Vec::new, Judgement::reasons);
        reasons.into_iter().map(|reason| reason.text.as_str()).collect()
    }

    /// A run without a session has no price.
    pub fn prices(&self) -> Option<&'a Prices> {
        self.prices.filter(|_| self.summary.sessions > 0)
    }

    /// Whether scopes are tests.
    pub(crate) fn is_of_tests(&self) -> bool {
        self.run.is_some_and(|run| run.has_tests)
    }
}

/// The program whose traffic was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Run"))]
pub struct RunInfo {
    /// The program and its arguments; empty where a gateway served whoever came.
    pub command: Vec<String>,
    /// How it exited; nothing if a signal ended it or it still runs.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Where the trace was written.
    pub trace: Option<String>,
    /// Why the trace does not hold the whole run, if it does not.
    pub trace_error: Option<String>,
    /// Scopes are tests that the program's runner named.
    pub has_tests: bool,
    /// The program's variables that were pointed at the gateway.
    pub pointed: Vec<String>,
    /// How connections were led to the gateway whatever the program's settings say; nothing if they were not.
    pub redirected: Option<Redirected>,
}

impl RunInfo {
    /// How the program failed, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        match (self.exit_code, self.signal) {
            (Some(0), _) | (None, None) => None,
            (Some(code), _) => Some(format!("exit code {code}")),
            (None, Some(signal)) => Some(format!("signal {signal}")),
        }
    }
}

/// Connections that were led to the gateway.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Redirected {
    /// What led them.
    pub by: &'static str,
    /// How many were, where that is known.
    pub connections: Option<u64>,
}
