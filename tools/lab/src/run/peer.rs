//! Programs of real drivers: each has a session of its own and plays a round for each line that it is sent.

use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;

use crate::LabError;
use crate::client::Login;

/// Longest time that a round of a program may take.
const ROUND_MAX: Duration = Duration::from_secs(600);
/// Longest time that a program may take to end.
const END_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// How often a waiting lab looks whether it was stopped.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A program that is there.
#[derive(Debug)]
pub(super) struct Peer {
    words: Vec<String>,
    directory: std::path::PathBuf,
}

/// Where a program's session goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Destination<'d> {
    pub(super) address: SocketAddr,
    /// Who logs in, where the server is a PostgreSQL.
    pub(super) login: Option<&'d Login>,
}

/// One line of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Played {
    /// Rows that it read.
    pub(super) rows: u64,
    /// Wall time of the round, in nanoseconds.
    pub(super) ns: u64,
    /// CPU time of the program in the round, in nanoseconds.
    pub(super) cpu_ns: u64,
}

/// Programs that play together.
#[derive(Debug)]
pub(super) struct Peers<'s> {
    words: String,
    programs: Vec<Running>,
    stopped: &'s AtomicBool,
}

#[derive(Debug)]
struct Running {
    process: Child,
    /// `None` when it has been told to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// The program of these words below `clients`, or why there is none.
    pub(super) fn find(words: &[String], clients: Option<&Path>) -> Result<Self, String> {
        let Some(directory) = clients else {
            return Err("needs the programs of --clients DIRECTORY".to_owned());
        };
        // A class path has several parts, which may end in an asterisk.
        let is_there =
            |word: &str| word.split(':').all(|part| directory.join(part.trim_end_matches('*')).exists());
        let missing = words.iter().find(|word| word.contains('/') && !is_there(word));
        match missing {
            Some(word) => Err(format!("{word} is not built; `scripts/lab` does that")),
            None => Ok(Self { words: words.to_vec(), directory: directory.to_owned() }),
        }
    }

    /// Starts it for each of these scripts, with the script's number as its last word, and tells it the script.
    pub(super) fn start<'s>(
        &self,
        scripts: &[String],
        destination: Destination<'_>,
        stopped: &'s AtomicBool,
    ) -> Result<Peers<'s>, LabError> {
        let mut peers = Peers { words: self.words.join(" "), programs: Vec::new(), stopped };
        for session in 0..scripts.len() {
            let running = self.spawn(session, destination).map_err(|error| peers.failed(&error))?;
            peers.programs.push(running);
        }
        for (place, script) in scripts.iter().enumerate() {
            peers.tell(place, script.as_bytes())?;
        }
        Ok(peers)
    }

    fn spawn(&self, session: usize, destination: Destination<'_>) -> io::Result<Running> {
        let (program, arguments) =
            self.words.split_first().ok_or_else(|| io::Error::other("a program without a name"))?;
        let path = if program.contains('/') { self.directory.join(program) } else { program.into() };
        let mut command = Command::new(path);
        command.args(arguments).arg(session.to_string()).current_dir(&self.directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let address = destination.address;
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        command
            .env("PGHOST", &host)
            .env("PGPORT", &port)
            .env("MYSQL_HOST", &host)
            .env("MYSQL_TCP_PORT", &port);
        if let Some(login) = destination.login {
            command.env("PGUSER", &login.user).env("PGDATABASE", &login.database).env("PGSSLMODE", "disable");
            command.env("PGPASSWORD", login.password.as_ref().map_or("", |password| password.reveal()));
            if let Some(schema) = &login.schema {
                command.env("PGOPTIONS", format!("-c search_path={schema}"));
            }
        }
        let mut process = command.spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        Ok(Running { process, input: Some(input), output: BufReader::new(output) })
    }
}

impl Peers<'_> {
    /// Lets all of them play a round at once.
    pub(super) fn round(&mut self) -> Result<Vec<Played>, LabError> {
        let mut done = Vec::new();
        for place in 0..self.programs.len() {
            self.tell(place, b"\n")?;
        }
        for place in 0..self.programs.len() {
            done.push(self.line_of(place)?);
        }
        Ok(done)
    }

    /// Lets them end.
    pub(super) fn finish(mut self) -> Result<(), LabError> {
        let began = Instant::now();
        self.programs.iter_mut().for_each(|program| program.input = None);
        for place in 0..self.programs.len() {
            let status = loop {
                let ended = self.programs[place].process.try_wait();
                match ended.map_err(|error| self.failed(&error))? {
                    Some(status) => break status,
                    None if began.elapsed() > END_MAX => return Err(self.failed(&"it does not end")),
                    None => std::thread::sleep(PAUSE),
                }
            };
            if !status.success() {
                return Err(self.failed(&status));
            }
        }
        Ok(())
    }

    fn tell(&mut self, place: usize, text: &[u8]) -> Result<(), LabError> {
        let told = self.programs[place].input.as_mut().map_or(Ok(()), |input| input.write_all(text));
        told.map_err(|error| self.failed(&error))
    }

    fn line_of(&mut self, place: usize) -> Result<Played, LabError> {
        let began = Instant::now();
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(LabError::Stopped);
            }
            if began.elapsed() > ROUND_MAX {
                return Err(self.failed(&"a round does not end"));
            }
            let output = self.programs[place].output.get_ref();
            let mut polled = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)];
            if matches!(poll(&mut polled, Some(&PATIENCE)), Ok(1..)) {
                break;
            }
        }
        let mut line = String::new();
        // A line is written at once.
        let read = self.programs[place].output.read_line(&mut line);
        read.map_err(|error| self.failed(&error))?;
        if line.is_empty() {
            let ended = self.programs[place].process.wait().map_err(|error| self.failed(&error))?;
            return Err(self.failed(&ended));
        }
        serde_json::from_str(&line).map_err(|error| self.failed(&format!("{line:?}: {error}")))
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> LabError {
        LabError::Database(format!("{}: {reason}", self.words))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended, as it should have.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(script: &str, sessions: usize) -> Result<Vec<Played>, LabError> {
        let words = ["sh", "-c", script].map(str::to_owned);
        let peer = Peer::find(&words, Some(Path::new("."))).unwrap();
        let login = Login { user: "ann".into(), database: "shop".into(), password: None, schema: None };
        let destination = Destination { address: ([127, 0, 0, 1], 7).into(), login: Some(&login) };
        let stopped = AtomicBool::new(false);
        let mut peers = peer.start(&vec![String::new(); sessions], destination, &stopped)?;
        let mut played = peers.round()?;
        played.extend(peers.round()?);
        peers.finish()?;
        Ok(played)
    }

    #[test]
    fn programs_find_their_database_in_the_environment_and_play_a_round_for_each_line() {
        // The shell takes the number behind its script as $0.
        let script = r#"while read go; do echo "{\"rows\": $PGPORT, \"ns\": $0, \"cpu_ns\": 3}"; done"#;
        let played = play(script, 2).unwrap();
        assert_eq!(
            played.iter().map(|round| (round.rows, round.ns)).collect::<Vec<_>>(),
            [(7, 0), (7, 1), (7, 0), (7, 1)]
        );
    }

    #[test]
    fn a_program_that_fails_or_says_something_else_ends_the_run() {
        assert!(play("read go; exit 3", 1).unwrap_err().to_string().contains('3'));
        assert!(play("read go; echo hello", 1).unwrap_err().to_string().contains("hello"));
        let late = r#"while read go; do echo "{\"rows\": 1, \"ns\": 1, \"cpu_ns\": 3}"; done; exit 4"#;
        assert!(play(late, 1).unwrap_err().to_string().contains('4'));
    }

    #[test]
    fn a_program_that_is_not_there_is_left_out() {
        let words = ["target/lab/no_such_program".to_owned()];
        assert!(Peer::find(&words, Some(Path::new("."))).is_err_and(|why| why.contains("not built")));
        assert!(Peer::find(&words, None).is_err_and(|why| why.contains("--clients")));
    }
}
