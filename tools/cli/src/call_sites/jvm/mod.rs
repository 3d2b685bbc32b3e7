//! How a JVM is made to load the agent that tells its program's lines (`agent.c`).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use onetrip_target::launch::Redirect;
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::program::{WORDS_MAX, places, put_first};
use crate::args::CallSitesWhen;

/// The agent, compiled.
static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/jvm.so"));
/// Options for each JVM that a program starts. It prints a line about them.
const OPTIONS: &str = "JAVA_TOOL_OPTIONS";
/// Programs that run the one that their arguments name.
const WRAPPERS: [&str; 10] =
    ["chrt", "env", "ionice", "nice", "nohup", "numactl", "setsid", "stdbuf", "taskset", "timeout"];

/// Has the JVM load the agent: one that the command line names, by an option there, which prints nothing; with `On` any that
/// the program starts, by the environment. `port` is the gateway's.
pub(crate) fn load_agent(
    when: CallSitesWhen,
    directory: &Path,
    port: u16,
    command: &mut Vec<OsString>,
    redirect: &mut Redirect,
) -> io::Result<()> {
    let place = java_in(command);
    if place.is_none() && when != CallSitesWhen::On {
        return Ok(());
    }
    // A JVM that cannot load an agent does not start.
    if statvfs(directory)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        let text = format!("nothing can be loaded from {}: set TMPDIR", directory.display());
        return Err(io::Error::other(text));
    }
    let file = directory.join("jvm.so");
    std::fs::write(&file, AGENT)?;
    let mut option = OsString::from("-agentpath:");
    option.push(file);
    option.push(format!("={port}"));
    match place {
        Some(place) if when == CallSitesWhen::Auto => command.insert(place + 1, option),
        _ => put_first(redirect, OPTIONS, option, " "),
    }
    Ok(())
}

/// Where a command line names `java`, as the program or as the one that a wrapper runs.
pub(crate) fn java_in(command: &[OsString]) -> Option<usize> {
    let place = command.iter().take(WORDS_MAX).position(|word| name_of(word) == "java")?;
    let (first, others) =
        command[..place].split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
    let is_plain = first.is_none_or(|first| WRAPPERS.contains(&name_of(first)))
        && others.iter().all(|word| WRAPPERS.contains(&name_of(word)) || is_argument(word));
    (is_plain && is_of_this_machine(&command[place])).then_some(place)
}

/// Whether a word is an option of a wrapper, or a value of one: `-n`, `19`, `LANG=C`.
fn is_argument(word: &OsStr) -> bool {
    let word = word.to_str().unwrap_or_default();
    word.starts_with(|first: char| first == '-' || first.is_ascii_digit()) || word.contains('=')
}

fn name_of(word: &OsStr) -> &str {
    Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// Whether a program is of the same kind of machine as onetrip, and no script: one may start a JVM in a container.
fn is_of_this_machine(word: &OsStr) -> bool {
    let file = places(word).into_iter().find(|place| place.is_file());
    let kind = |file: PathBuf| -> io::Result<[u8; 20]> {
        let mut bytes = [0; 20];
        File::open(file)?.read_exact(&mut bytes)?;
        bytes[6..18].fill(0); // the same machine's may differ in these
        Ok(bytes)
    };
    let (theirs, ours) = (file.map(kind), kind("/proc/self/exe".into()));
    matches!((theirs, ours), (Some(Ok(theirs)), Ok(ours)) if theirs == ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(command: &str) -> Option<usize> {
        // A file of this machine's kind that has the name.
        let directory = tempfile::tempdir().unwrap();
        let java = directory.path().join("java");
        std::os::unix::fs::symlink("/proc/self/exe", &java).unwrap();
        let words: Vec<OsString> = command
            .split(' ')
            .map(|word| if word == "JAVA" { java.clone().into() } else { word.into() })
            .collect();
        java_in(&words)
    }

    #[test]
    fn java_is_found_as_the_program_and_after_wrappers() {
        assert_eq!(place("JAVA -jar app.jar"), Some(0));
        assert_eq!(place("nice -n 19 JAVA -jar app.jar"), Some(3));
        assert_eq!(place("env LANG=C timeout 30 JAVA App.java"), Some(4));
    }

    #[test]
    fn java_in_a_container_or_as_an_argument_is_left_alone() {
        assert_eq!(place("docker run image JAVA -jar app.jar"), None);
        assert_eq!(place("env docker run image JAVA"), None);
        assert_eq!(place("grep -r JAVA"), None);
    }

    #[test]
    fn a_script_of_that_name_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let java = directory.path().join("java");
        std::fs::write(&java, "#!/bin/sh\nexec docker run image java \"$@\"\n").unwrap();
        assert_eq!(java_in(&[java.into()]), None);
    }
}
