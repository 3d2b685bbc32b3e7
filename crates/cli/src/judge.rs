use std::path::Path;

use anyhow::{Context, Result};
use onetrip_ledger::budget::{self, Limit, Verdict};
use onetrip_ledger::compare::Comparison;
use onetrip_ledger::{Mutes, Summary};

use crate::args::JudgeOptions;
use crate::trace::summarise;

/// Everything that a run is judged by, read and checked before the run.
pub(crate) struct Judge<'o> {
    options: &'o JudgeOptions,
    limits: Vec<Limit>,
    pub(crate) mutes: Mutes,
    earlier: Option<Summary>,
}

impl<'o> Judge<'o> {
    pub(crate) fn new(options: &'o JudgeOptions) -> Result<Self> {
        let mut limits = options.budget.clone();
        if let Some(path) = &options.budget_file {
            limits.extend(budget::parse_file(&read(path)?).with_context(|| format!("{}", path.display()))?);
        }
        let mutes = match &options.mute {
            Some(path) => Mutes::parse(&read(path)?).with_context(|| format!("{}", path.display()))?,
            None => Mutes::default(),
        };
        let earlier = options
            .compare
            .as_deref()
            .map(|path| summarise(path, &mutes))
            .transpose()?
            .map(|analysis| analysis.summary);
        Ok(Self { options, limits, mutes, earlier })
    }

    pub(crate) fn verdicts(&self, summary: &Summary) -> Vec<Verdict> {
        self.limits.iter().map(|limit| limit.judge(summary)).collect()
    }

    pub(crate) fn comparison(&self, summary: &Summary) -> Option<Comparison> {
        self.earlier.as_ref().map(|earlier| Comparison::new(earlier, summary))
    }

    pub(crate) fn fail_on(&self) -> &[onetrip_ledger::Code] {
        &self.options.fail_on
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))
}
