//! Runs the steps of a tier, one after the other, and prints the table of their times, also when one fails.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2};

use crate::charge::{Meter, Taken, descendants};
use crate::steps::{Act, Spec, Step};

/// A step that has taken this many times its budget fails, whatever its tests say.
const OVER: f64 = 1.5;
/// A step that has taken this many times its budget is taken to hang, and is ended.
const HANGS: u32 = 3;
const LOOKS_EVERY: Duration = Duration::from_secs(5);
/// What a failed command printed last is shown again behind the table: so many lines, and so many characters of each.
const LAST_LINES: usize = 12;
const LAST_CHARACTERS: usize = 300;
/// How long what a command has printed is waited for once it has ended.
const PRINTED_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Passed,
    Failed,
    /// It passed, but took more than `OVER` times its budget.
    Over,
    /// It was ended at `HANGS` times its budget.
    Hung,
    /// What it builds on has failed.
    NotRun,
}

struct Row {
    step: Step,
    taken: Taken,
    ended: Ended,
}

/// How a step ended.
struct Ended {
    outcome: Outcome,
    /// The acts that failed, and what they printed last.
    last: Vec<String>,
}

/// Runs the steps of a tier. A failed step does not keep the others from running, unless they build on it.
pub(crate) fn run(tier: &str, steps: Vec<Step>) -> Result<()> {
    // Servers that outlive the process that started them become children of this one: their time counts.
    set_child_subreaper(true)?;
    let mut rows: Vec<Row> = Vec::new();
    for step in steps {
        let builds_on_failed =
            rows.iter().any(|row| row.step.others_need_it && row.ended.outcome == Outcome::Failed);
        let (ended, taken) = if builds_on_failed {
            (Ended { outcome: Outcome::NotRun, last: Vec::new() }, Taken::default())
        } else {
            run_step(&step).with_context(|| format!("step {} cannot be run", step.name))?
        };
        rows.push(Row { step, taken, ended });
    }
    println!("\n{}", table(&rows));
    let bad: Vec<&str> =
        rows.iter().filter(|row| row.ended.outcome != Outcome::Passed).map(|row| row.step.name).collect();
    if !bad.is_empty() {
        for line in rows.iter().flat_map(|row| &row.ended.last) {
            println!("{line}");
        }
        bail!("{tier}: {} of {} steps passed; not {}", rows.len() - bad.len(), rows.len(), bad.join(", "));
    }
    println!("xtask: {tier}: {} steps passed", rows.len());
    Ok(())
}

/// Prints what would be run.
pub(crate) fn list(steps: &[Step]) {
    for step in steps {
        println!("{}: {} (budget {} min)", step.name, step.what, step.budget.as_secs() / 60);
        for act in &step.acts {
            println!("    {}", act.shown());
        }
    }
}

fn run_step(step: &Step) -> Result<(Ended, Taken)> {
    println!("\n== {}: {} (budget {} min)", step.name, step.what, step.budget.as_secs() / 60);
    let meter = Meter::start()?;
    let (ended, watch) = mpsc::channel::<()>();
    let (last, hung) = thread::scope(|scope| {
        let meter = &meter;
        let watcher = scope.spawn(move || watch_budget(meter, step.budget, &watch));
        let mut last = Vec::new();
        for act in &step.acts {
            println!("$ {}", act.shown());
            std::io::stdout().flush().ok();
            let (failed, printed) = match run_act(act) {
                Ok(None) => continue,
                Ok(Some(printed)) => (format!("xtask: failed: {}", act.shown()), printed),
                Err(error) => (format!("xtask: failed: {}: {error:#}", act.shown()), Vec::new()),
            };
            println!("{failed}");
            last.push(short(&failed));
            last.extend(printed);
        }
        drop(ended);
        (last, watcher.join().unwrap_or(false))
    });
    let taken = meter.taken()?;
    reap()?;
    let outcome = match last.is_empty() {
        _ if hung => Outcome::Hung,
        false => Outcome::Failed,
        true if is_over(taken.charged, step.budget) => Outcome::Over,
        true => Outcome::Passed,
    };
    Ok((Ended { outcome, last }, taken))
}

fn is_over(charged: Duration, budget: Duration) -> bool {
    charged > budget.mul_f64(OVER)
}

/// Ends the step's processes when it hangs; whether it did. `watch` ends with the step.
fn watch_budget(meter: &Meter, budget: Duration, watch: &mpsc::Receiver<()>) -> bool {
    let mut hung = false;
    while watch.recv_timeout(LOOKS_EVERY) == Err(RecvTimeoutError::Timeout) {
        if meter.taken().is_ok_and(|taken| taken.charged > budget * HANGS) {
            hung = true;
            for process in descendants().unwrap_or_default() {
                // It may have ended by itself.
                let _ = kill(process.pid, Signal::SIGKILL);
            }
        }
    }
    hung
}

/// None if the act succeeded; otherwise what it printed last, as far as it is known.
fn run_act(act: &Act) -> Result<Option<Vec<String>>> {
    match act {
        // On a terminal, a command prints for itself, with colours.
        Act::Command(spec) if std::io::stdout().is_terminal() => {
            run_beside(&mut [Running::of(&spawn(&mut spec.command())?, None)?])
        }
        Act::Command(spec) => run_beside(&mut [start("", spec.command())?]),
        Act::Beside(specs) => {
            let start = |(number, spec): (usize, &Spec)| start(&format!("{}| ", number + 1), spec.command());
            run_beside(&mut specs.iter().enumerate().map(start).collect::<Result<Vec<_>>>()?)
        }
        Act::Inner(_, function) => function().map(|()| None),
    }
}

/// A command that runs.
struct Running {
    pid: Pid,
    status: Option<ExitStatus>,
    printed: Option<Printed>,
}

/// What a command printed last, and who tells that it prints no more.
struct Printed {
    last: Arc<Mutex<VecDeque<String>>>,
    over: mpsc::Receiver<()>,
}

impl Running {
    fn of(child: &Child, printed: Option<Printed>) -> Result<Self> {
        Ok(Self { pid: Pid::from_raw(child.id().try_into()?), status: None, printed })
    }

    fn has_succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

impl Printed {
    /// What it leaves behind may keep the pipe open: nobody waits for that for long.
    fn last(&self) -> Vec<String> {
        let _ = self.over.recv_timeout(PRINTED_MAX);
        self.last.lock().map(|lines| lines.iter().cloned().collect()).unwrap_or_default()
    }
}

fn spawn(command: &mut Command) -> Result<Child> {
    command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot run {command:?}"))
}

/// Its lines are printed as they come, each behind `mark`.
fn start(mark: &str, mut command: Command) -> Result<Running> {
    let (output, input) = pipe2(OFlag::O_CLOEXEC)?;
    let child = spawn(command.stdout(input.try_clone()?).stderr(input))?;
    let (ends, over) = mpsc::channel::<()>();
    let last = Arc::new(Mutex::new(VecDeque::new()));
    let printed = Printed { last: Arc::clone(&last), over };
    let mark = mark.to_owned();
    thread::spawn(move || {
        for line in BufReader::new(File::from(output)).split(b'\n').map_while(Result::ok) {
            let line = format!("{mark}{}", String::from_utf8_lossy(&line));
            println!("{line}");
            let Ok(mut last) = last.lock() else { break };
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(short(&line));
        }
        drop(ends);
    });
    Running::of(&child, Some(printed))
}

/// What is shown of a line below the table.
fn short(line: &str) -> String {
    line.chars().take(LAST_CHARACTERS).collect()
}

/// Runs commands to their ends, and waits meanwhile for what their processes leave behind. A process that nobody waits for
/// would look alive to the tests that have ended it. None if all succeeded, otherwise what those printed last that failed.
fn run_beside(commands: &mut [Running]) -> Result<Option<Vec<String>>> {
    while commands.iter().any(|command| command.status.is_none()) {
        let (pid, status) = match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, ExitStatus::from_raw(code << 8)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, ExitStatus::from_raw(signal as i32)),
            Ok(_) | Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let Some(ended) = commands.iter_mut().find(|command| command.pid == pid) else { continue };
        ended.status = Some(status);
    }
    let failed: Vec<&Running> = commands.iter().filter(|command| !command.has_succeeded()).collect();
    if failed.is_empty() {
        return Ok(None);
    }
    Ok(Some(failed.iter().filter_map(|command| command.printed.as_ref()).flat_map(Printed::last).collect()))
}

/// Waits for what has ended, and for nothing else.
fn reap() -> Result<()> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<12} {:>8} {:>8} {:>8} {:>8}  {}\n",
        "step", "wall", "cpu", "charged", "budget", "outcome"
    );
    for Row { step, taken, ended } in rows {
        let outcome = match ended.outcome {
            Outcome::Passed => "passed".to_owned(),
            Outcome::Failed => "FAILED".to_owned(),
            Outcome::Over => format!("FAILED: more than {OVER} times its budget"),
            Outcome::Hung => format!("FAILED: ended at {HANGS} times its budget"),
            Outcome::NotRun => "not run".to_owned(),
        };
        text += &format!(
            "{:<12} {:>8} {:>8} {:>8} {:>8}  {outcome}\n",
            step.name,
            minutes(taken.wall),
            minutes(taken.own),
            minutes(taken.charged),
            minutes(step.budget)
        );
    }
    let sum = |part: fn(&Row) -> Duration| minutes(rows.iter().map(part).sum());
    text += &format!(
        "{:<12} {:>8} {:>8} {:>8} {:>8}\n",
        "all",
        sum(|row| row.taken.wall),
        sum(|row| row.taken.own),
        sum(|row| row.taken.charged),
        sum(|row| row.step.budget)
    );
    text + "charged: wall time less what other processes took of the processors; a step fails past 1.5 times its budget"
}

/// `12:05` is twelve minutes and five seconds.
fn minutes(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, script: &str, budget: Duration) -> Step {
        let acts = vec![Act::Command(Spec::new("sh", ["-c", script]))];
        Step { name, what: "a test's", budget, others_need_it: false, acts }
    }

    #[test]
    fn a_step_passes_fails_or_is_over_its_budget() {
        let _turn = crate::CHILDREN.lock();
        let long = Duration::from_secs(600);
        let outcome = |step: Step| run_step(&step).expect("it runs").0.outcome;
        assert_eq!(outcome(step("good", "true", long)), Outcome::Passed);
        assert_eq!(outcome(step("bad", "exit 3", long)), Outcome::Failed);
        assert_eq!(outcome(step("killed", "kill -9 $$", long)), Outcome::Failed);
        let missing = Act::Command(Spec::new("/no/such/program", [""; 0]));
        assert_eq!(outcome(Step { acts: vec![missing], ..step("missing", "", long) }), Outcome::Failed);
        let beside = |other: &str| {
            let acts = vec![Act::Beside(["sleep 0.1", other].map(|script| Spec::new("sh", ["-c", script])))];
            outcome(Step { acts, ..step("beside", "", long) })
        };
        assert_eq!(beside("true"), Outcome::Passed);
        assert_eq!(beside("exit 3"), Outcome::Failed);
        // Its own processor time is charged, however busy the machine is.
        let over = step("over", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", Duration::ZERO);
        assert_eq!(outcome(over), Outcome::Over);
    }

    #[test]
    fn a_failed_step_tells_what_was_printed_last() {
        let _turn = crate::CHILDREN.lock();
        let scripts = ["seq 1 20 >&2; exit 1", "echo good"].map(|script| Spec::new("sh", ["-c", script]));
        let acts = vec![Act::Beside(scripts), Act::Inner("inner", || bail!("it is broken"))];
        let both = Step { acts, ..step("both", "", Duration::from_secs(600)) };
        let last = run_step(&both).expect("it runs").0.last;
        let expected: Vec<String> = (9..=20).map(|number| format!("1| {number}")).collect();
        assert_eq!(last[1..=12], expected);
        assert!(last[13].ends_with("it is broken"), "{last:?}");
        assert_eq!(last.len(), 14);
    }

    #[test]
    fn a_step_is_over_past_one_and_a_half_times_its_budget() {
        let minute = Duration::from_secs(60);
        assert!(!is_over(minute * 15, minute * 10));
        assert!(is_over(minute * 15 + Duration::from_millis(1), minute * 10));
    }

    #[test]
    fn the_table_has_each_step_with_its_budget() {
        let taken = Taken {
            wall: Duration::from_secs(130),
            own: Duration::from_secs(61),
            charged: Duration::from_secs(70),
        };
        let row = |outcome| Row {
            step: step("rust", "true", Duration::from_secs(900)),
            taken,
            ended: Ended { outcome, last: Vec::new() },
        };
        let text = table(&[row(Outcome::Passed), row(Outcome::Over)]);
        assert!(text.contains("rust             2:10     1:01     1:10    15:00  passed\n"), "{text}");
        assert!(text.contains("FAILED: more than 1.5 times its budget\n"), "{text}");
        assert!(text.contains("all              4:20     2:02     2:20    30:00\n"), "{text}");
    }
}
