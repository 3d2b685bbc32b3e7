//! Programs of real drivers: each does a workload's rounds by itself and prints a line for each.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::LabError;
use crate::client::Login;

/// Longest time that a program may take.
const PROGRAM_MAX: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(5);

/// A program that is there.
pub(super) struct Peer {
    words: Vec<String>,
    directory: std::path::PathBuf,
}

/// One line of its output.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Played {
    /// Rows that it read.
    pub(super) rows: u64,
    /// Wall time of the round, in nanoseconds.
    pub(super) ns: u64,
    /// CPU time of the program in the round, in nanoseconds.
    pub(super) cpu_ns: u64,
}

impl Peer {
    /// The program of these words below `clients`, or why there is none.
    pub(super) fn find(words: &[String], clients: Option<&Path>) -> Result<Self, String> {
        let Some(directory) = clients else {
            return Err("needs the programs of --clients DIRECTORY".to_owned());
        };
        // A class path may end in an asterisk.
        let is_there = |word: &str| directory.join(word.trim_end_matches('*')).exists();
        let missing = words.iter().find(|word| word.contains('/') && !is_there(word));
        match missing {
            Some(word) => Err(format!("{word} is not built; `scripts/lab` does that")),
            None => Ok(Self { words: words.to_vec(), directory: directory.to_owned() }),
        }
    }

    /// Runs it for a warm-up round and so many others.
    pub(super) fn play(
        &self,
        address: SocketAddr,
        login: &Login,
        rounds: usize,
        stopped: &AtomicBool,
    ) -> Result<Vec<Played>, LabError> {
        let (Some(program), arguments) = (self.words.first(), self.words.get(1..).unwrap_or_default()) else {
            return Err(LabError::Database("a program without a name".to_owned()));
        };
        let failed = |reason: String| LabError::Database(format!("{}: {reason}", self.words.join(" ")));
        // A file's handle, because a full pipe would stop it.
        let output = tempfile::tempfile().map_err(|error| failed(error.to_string()))?;
        let reader = output.try_clone().map_err(|error| failed(error.to_string()))?;
        let path = if program.contains('/') { self.directory.join(program) } else { program.into() };
        let mut command = Command::new(path);
        command.args(arguments).arg(rounds.to_string()).current_dir(&self.directory);
        command.stdin(Stdio::null()).stdout(output);
        command.env("PGHOST", address.ip().to_string()).env("PGPORT", address.port().to_string());
        command.env("PGUSER", &login.user).env("PGDATABASE", &login.database).env("PGSSLMODE", "disable");
        command.env("PGPASSWORD", login.password.as_ref().map_or("", |password| password.reveal()));
        if let Some(schema) = &login.schema {
            command.env("PGOPTIONS", format!("-c search_path={schema}"));
        }
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| failed(error.to_string()))? {
                break status;
            }
            if stopped.load(Ordering::Relaxed) || began.elapsed() > PROGRAM_MAX {
                // It may have ended by itself just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(LabError::Stopped);
            }
            std::thread::sleep(PAUSE);
        };
        if !status.success() {
            return Err(failed(status.to_string()));
        }
        read_lines(reader).map_err(failed)
    }
}

fn read_lines(mut output: std::fs::File) -> Result<Vec<Played>, String> {
    use std::io::{Read, Seek};
    let mut text = String::new();
    output.rewind().and_then(|()| output.read_to_string(&mut text)).map_err(|error| error.to_string())?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{line:?}: {error}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(script: &str) -> Result<Vec<Played>, LabError> {
        let words = ["sh", "-c", script].map(str::to_owned);
        let peer = Peer::find(&words, Some(Path::new("."))).unwrap();
        let login = Login { user: "ann".into(), database: "shop".into(), password: None, schema: None };
        peer.play(([127, 0, 0, 1], 7).into(), &login, 2, &AtomicBool::new(false))
    }

    #[test]
    fn a_program_finds_its_database_in_the_environment_and_tells_of_its_rounds() {
        let played = play(r#"echo "{\"rows\": $PGPORT, \"ns\": 5, \"cpu_ns\": 3}""#).unwrap();
        assert_eq!(
            played.iter().map(|round| (round.rows, round.ns, round.cpu_ns)).collect::<Vec<_>>(),
            [(7, 5, 3)]
        );
    }

    #[test]
    fn a_program_that_fails_or_says_something_else_ends_the_run() {
        assert!(play("exit 3").unwrap_err().to_string().contains('3'));
        assert!(play("echo hello").unwrap_err().to_string().contains("hello"));
    }

    #[test]
    fn a_program_that_is_not_there_is_left_out() {
        let words = ["target/lab/no_such_program".to_owned()];
        assert!(Peer::find(&words, Some(Path::new("."))).is_err_and(|why| why.contains("not built")));
        assert!(Peer::find(&words, None).is_err_and(|why| why.contains("--clients")));
    }
}
