use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use onetrip_ledger::judge::{
    Allow, Base, Increase, Judgement, Limit, Reason, Rules, Ruling, Snapshot, budget, mutes,
};
use onetrip_ledger::{Code, Mutes, Refusal, Summary};

use crate::files::Files;
use crate::say::say;
use crate::trace::summarise;

/// What makes a run fail, and what it is compared with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Judging")]
pub(crate) struct JudgeOptions {
    /// Fail above a limit: trips=200, work-trips=N, connections=N, statements=N, or OT001=N avoidable trips
    ///
    /// A run that could not be judged fails with exit code 91.
    #[arg(long, value_name = "NAME=N")]
    pub(crate) budget: Vec<Limit>,
    /// TOML file with budgets of the run and of scopes
    #[arg(long, value_name = "FILE")]
    pub(crate) budget_file: Option<PathBuf>,
    /// Fail if the run has this finding
    #[arg(long, value_name = "CODE")]
    pub(crate) fail_on: Vec<Code>,
    /// TOML file with [[mute]] entries: findings to leave out
    #[arg(long, value_name = "FILE")]
    pub(crate) mute: Option<PathBuf>,
    /// Compare with an earlier run: its trace, or its report as JSON
    #[arg(long, value_name = "BASE")]
    pub(crate) compare: Option<PathBuf>,
    /// Fail if the run has more than N extra trips compared with BASE, or N%
    #[arg(long, value_name = "N%|N", requires = "compare")]
    pub(crate) max_increase: Option<Increase>,
    /// Fail unless trips and connections of the run, and trips of each scope, are those in this file [default file: trips.lock]
    ///
    /// The trips of the run are those after the login. Without a line in the file, connections are not compared.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "trips.lock")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Write the snapshot's file instead of comparing
    ///
    /// Connections are left out if the file is there and does not have them.
    /// With --allow-missing-scopes, the entries of scopes that did not occur are kept.
    #[arg(long, requires = "snapshot")]
    pub(crate) update: bool,
    /// Judge a run although it opened no session
    #[arg(long)]
    pub(crate) allow_no_connections: bool,
    /// Count a scope that did not occur as zero trips
    #[arg(long)]
    pub(crate) allow_missing_scopes: bool,
    /// Judge a trace although it has no end: it is still growing, or its writer was killed
    #[arg(long)]
    pub(crate) allow_open: bool,
    /// Judge a run although records are missing
    #[arg(long)]
    pub(crate) allow_loss: bool,
}

impl JudgeOptions {
    /// The files of these options.
    pub(crate) fn files(&self) -> Files {
        let files = Files::default()
            .reads("--budget-file", self.budget_file.as_deref())
            .reads("--mute", self.mute.as_deref())
            .reads("--compare", self.compare.as_deref());
        match self.update {
            true => files.writes("--snapshot", self.snapshot.as_deref()),
            false => files.reads("--snapshot", self.snapshot.as_deref()),
        }
    }
}

/// How the gateway begins to tell that it refuses a session itself.
const OUT_OF_DESCRIPTORS: &str = "onetrip is out of file descriptors";

/// What is missing from what was counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Missing {
    /// Why records are missing, or the trace does not hold all of them.
    pub(crate) incomplete: Option<String>,
    /// What the program did where nobody counted.
    pub(crate) uncounted: Vec<Reason>,
    /// Why work may be booked on the wrong scope.
    pub(crate) mixed_scopes: Option<Reason>,
}

/// Everything that a run is judged by, read and checked before the run.
pub(crate) struct Judge {
    rules: Rules,
    pub(crate) mutes: Mutes,
    /// The snapshot that is to be written anew, and what was in it.
    update: Option<(PathBuf, Option<Snapshot>)>,
}

impl Judge {
    pub(crate) fn new(options: &JudgeOptions) -> Result<Self> {
        let mut limits = options.budget.clone();
        if let Some(path) = &options.budget_file {
            limits.extend(budget::parse_file(&read(path)?).with_context(|| format!("{}", path.display()))?);
        }
        let mutes = match &options.mute {
            Some(path) => mutes::parse_file(&read(path)?).with_context(|| format!("{}", path.display()))?,
            None => Mutes::default(),
        };
        let base = options.compare.as_deref().map(|path| base(path, &mutes)).transpose()?;
        let (snapshot, update) = snapshot(options)?;
        let allow = Allow {
            no_connections: options.allow_no_connections,
            missing_scopes: options.allow_missing_scopes,
            open: options.allow_open,
            loss: options.allow_loss,
        };
        let (fail_on, max_increase) = (options.fail_on.clone(), options.max_increase);
        let rules = Rules { limits, fail_on, base, max_increase, snapshot, allow };
        Ok(Self { rules, mutes, update })
    }

    /// Whether there is anything to judge by, or a snapshot to write.
    pub(crate) fn is_asked(&self) -> bool {
        !self.rules.is_empty() || self.update.is_some()
    }

    /// Holds the rules against what was counted. Where not all was counted, or a trace does not hold all that was, nobody
    /// can judge the run.
    pub(crate) fn judge(&self, summary: &Summary, missing: &Missing) -> Judgement {
        let mut judgement = self.rules.judge(summary);
        let incomplete = missing.incomplete.as_ref().filter(|_| !self.rules.allow.loss);
        if let Some(reason) = incomplete.filter(|_| !self.rules.is_empty()) {
            judgement.trace_is_incomplete(Reason::loss(reason));
        }
        self.uncounted(summary, missing).for_each(|reason| judgement.is_too_little(&reason));
        if let Some(reason) = &missing.mixed_scopes {
            judgement.scopes_are_mixed(reason);
        }
        judgement
    }

    /// What the program spent, or would have spent, beyond all that was counted.
    fn uncounted(&self, summary: &Summary, missing: &Missing) -> impl Iterator<Item = Reason> {
        let is_own = |refusal: &&Refusal| refusal.message.starts_with(OUT_OF_DESCRIPTORS);
        let refused = summary.refusals.iter().filter(is_own);
        let refused: u64 = refused.map(|refusal| refusal.sessions).sum();
        let refused = (refused > 0 && !self.rules.allow.loss).then(|| {
            let reason = "of the program's sessions, as it was out of file descriptors";
            Reason::loss(format!("onetrip refused {refused} {reason}"))
        });
        missing.uncounted.clone().into_iter().chain(refused)
    }

    /// Writes the snapshot anew, if that was asked for and the run can be taken for what is expected: not if the program
    /// failed, or if something is missing from what was counted. Returns whether all is well.
    pub(crate) fn update(&self, summary: &Summary, missing: &Missing, has_failed: bool) -> Result<Ruling> {
        let Some((path, earlier)) = &self.update else { return Ok(Ruling::Passed) };
        let incomplete = missing.incomplete.as_ref().filter(|_| !self.rules.allow.loss).map(Reason::loss);
        let unseen = self.rules.not_seen(summary).or_else(|| self.rules.not_seen_whole(&summary.gaps));
        let unseen = unseen.or(incomplete).or_else(|| self.uncounted(summary, missing).next());
        let unseen = unseen.or_else(|| missing.mixed_scopes.clone());
        let failed = has_failed.then(|| Reason::always("the program failed"));
        let in_the_way = unseen.or(failed);
        if let Some(reason) = in_the_way {
            say(format_args!("{} is not updated: {reason}", path.display()));
            return Ok(Ruling::Unjudged);
        }
        let mut now = Snapshot::of(summary);
        if let Some(earlier) = earlier {
            now = now.replacing(earlier);
        }
        if let Some(earlier) = earlier.clone().filter(|_| self.rules.allow.missing_scopes) {
            now = now.with_others_of(earlier);
        }
        if earlier.as_ref() == Some(&now) {
            say(format_args!("{} is as it was", path.display()));
            return Ok(Ruling::Passed);
        }
        std::fs::write(path, now.to_text()).with_context(|| format!("cannot write {}", path.display()))?;
        say(format_args!("{} is updated; keep it with the code", path.display()));
        Ok(Ruling::Passed)
    }
}

/// The earlier run: a trace, or a report in JSON.
fn base(path: &Path, mutes: &Mutes) -> Result<Base> {
    let name = path.display().to_string();
    let begin = {
        use std::io::Read;
        let cannot_read = || format!("cannot read {name}");
        let file = std::fs::File::open(path).with_context(cannot_read)?;
        let mut begin = Vec::new();
        file.take(64).read_to_end(&mut begin).with_context(cannot_read)?;
        begin
    };
    if begin.trim_ascii_start().first() == Some(&b'{') {
        return onetrip_report::baseline(&name, &read(path)?).with_context(|| name.clone());
    }
    Ok(Base::of(name, &summarise(path, mutes)?.summary))
}

/// The numbers that are expected, with their file's name; or that file, if it is to be written anew.
type Expected = (Option<(String, Snapshot)>, Option<(PathBuf, Option<Snapshot>)>);

fn snapshot(options: &JudgeOptions) -> Result<Expected> {
    let Some(path) = &options.snapshot else { return Ok((None, None)) };
    let name = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
    };
    if options.update {
        // One that cannot be read is written anew as well.
        let earlier = text.and_then(|text| Snapshot::parse(&text).ok());
        return Ok((None, Some((path.clone(), earlier))));
    }
    let Some(text) = text else { bail!("there is no {name} to compare with; --snapshot --update writes it") };
    let snapshot = Snapshot::parse(&text).with_context(|| name.clone())?;
    Ok((Some((name, snapshot)), None))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
