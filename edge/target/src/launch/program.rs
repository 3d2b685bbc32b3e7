//! The program as our child: same terminal, same signals, its exit code.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::task::Poll;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};

use super::{LaunchError, Redirect};
use crate::intercept::{InterceptError, Interception, Interceptor, Lead};

/// Signals that are passed on to the program.
const PASSED_ON: [Signal; 6] =
    [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2];

/// A running program. Dropping it leaves the program running.
#[derive(Debug)]
pub struct Program {
    child: Child,
    signals: Vec<(Signal, unix::Signal)>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildExit {
    /// By itself, with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl ChildExit {
    /// The code to exit with: the program's own, or 128 + n after signal n, as shells have it.
    pub fn code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        };
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }

    /// Whether the program ended well.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl From<ExitStatus> for ChildExit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

impl Program {
    /// Starts a program (its name, then its arguments) with the redirect's environment and our own standard streams.
    /// From here on the signals that would end us go to the program. Needs a tokio runtime with I/O.
    ///
    /// # Errors
    /// No such program, a file that cannot be executed, or no process to be had.
    pub fn spawn(command: &[OsString], redirect: &Redirect) -> Result<Self, LaunchError> {
        Self::start(command, redirect, None).map(|(program, _)| program)
    }

    /// Starts a program as [`Self::spawn`] does, with its connections led by `lead`.
    ///
    /// # Errors
    /// Also a system that does not let them be led.
    pub fn spawn_led(
        command: &[OsString],
        redirect: &Redirect,
        lead: Lead,
    ) -> Result<(Self, Interceptor), LaunchError> {
        let (program, interceptor) = Self::start(command, redirect, Some(lead))?;
        Ok((program, interceptor.ok_or(InterceptError::Unavailable)?))
    }

    fn start(
        command: &[OsString],
        redirect: &Redirect,
        lead: Option<Lead>,
    ) -> Result<(Self, Option<Interceptor>), LaunchError> {
        let (name, arguments) =
            command.split_first().map_or((OsString::new(), command), |(name, rest)| (name.clone(), rest));
        let program = || name.to_string_lossy().into_owned();
        // First the handlers: a signal between the two must not end us and leave the program alone.
        let signals = handlers().map_err(|source| LaunchError::Start { program: program(), source })?;
        let (before, after) =
            arguments.split_at(arguments.len().saturating_sub(redirect.words_after_arguments));
        let mut command = Command::new(&name);
        command
            .args(before)
            .args(&redirect.arguments)
            .args(after)
            .envs(redirect.set.iter().map(|(name, value)| (name, value)));
        for variable in &redirect.unset {
            command.env_remove(variable);
        }
        let led = match lead {
            Some(lead) => Some((Interception::prepare(&mut command)?, lead)),
            None => None,
        };
        match command.spawn() {
            Ok(child) => {
                let begun = led.map(|(interception, lead)| interception.begin(lead)).transpose()?;
                Ok((Self { child, signals }, begun))
            }
            Err(_) if led.as_ref().is_some_and(|(interception, _)| interception.is_refused()) => {
                Err(InterceptError::Refused.into())
            }
            Err(source) => Err(match source.kind() {
                io::ErrorKind::NotFound => LaunchError::NotFound { program: program() },
                io::ErrorKind::PermissionDenied => LaunchError::NotExecutable { program: program(), source },
                _ if is_no_program(&source) => LaunchError::NotExecutable { program: program(), source },
                _ => LaunchError::Start { program: program(), source },
            }),
        }
    }

    /// The process id; `None` once the program has ended.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the end of the program and passes signals on meanwhile. Ctrl-C of the terminal reaches the program
    /// without us, as a member of the same process group; we outlive it to report. Safe to cancel and call again.
    ///
    /// # Errors
    /// The operating system cannot tell how the program ended.
    pub async fn wait(&mut self) -> io::Result<ChildExit> {
        loop {
            let Self { child, signals } = self;
            tokio::select! {
                status = child.wait() => return status.map(ChildExit::from),
                signal = next(signals) => self.pass_on(signal),
            }
        }
    }

    fn pass_on(&self, signal: Signal) {
        let by_terminal = matches!(signal, Signal::INT | Signal::QUIT) && is_foreground();
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| !by_terminal) {
            // It fails only for a program that has just ended, which `wait` is about to see.
            let _ = kill_process(pid, signal);
        }
    }
}

/// The next signal for the program.
async fn next(signals: &mut [(Signal, unix::Signal)]) -> Signal {
    std::future::poll_fn(|context| {
        for (signal, stream) in signals.iter_mut() {
            if stream.poll_recv(context).is_ready() {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    })
    .await
}

/// Takes the signals over, but for those that we were told to ignore (`nohup`): the program ignores them as well.
fn handlers() -> io::Result<Vec<(Signal, unix::Signal)>> {
    let ignored = ignored_signals();
    let taken = PASSED_ON.into_iter().filter(|signal| ignored & (1 << (signal.as_raw() - 1)) == 0);
    taken.map(|signal| Ok((signal, unix::signal(SignalKind::from_raw(signal.as_raw()))?))).collect()
}

/// The mask of ignored signals, bit 0 for signal 1. Empty where the system does not tell.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// Whether the terminal's keys signal our process group, the program included.
fn is_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// ENOEXEC: a file of no known format, like a script without `#!`.
fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}
