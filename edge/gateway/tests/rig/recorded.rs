//! Programs that others have run: what a driver's own tests or an application sent to a server, one connection a program.
//!
//! `ONETRIP_RECORDINGS` names the directory of the files that `scripts/record` has made.

use std::path::{Path, PathBuf};

use onetrip_wire::pg::{FrameHeader, frontend};

use super::perturb::perturb_gently;
use super::random::Random;
use super::step::{Patience, Program, Step, Wait};

/// Where the files are.
pub(crate) const DIRECTORY: &str = "ONETRIP_RECORDINGS";
/// What has to be there before they are run.
pub(crate) const SCHEMA: &str = "schema.sql";
/// Steps of one program.
const STEPS_MAX: usize = 400;
/// Bytes of one step.
const STEP_BYTES_MAX: usize = 1 << 20;

/// What is all databases', ends or waits for other sessions, or waits by the clock.
const EXCLUDED: [&[u8]; 14] = [
    b"pg_terminate",
    b"pg_cancel",
    b"pg_sleep",
    b"create database",
    b"drop database",
    b"alter system",
    b"create role",
    b"drop role",
    b"alter role",
    b"create user",
    b"start_replication",
    b"prepare transaction",
    b"commit prepared",
    b"tablespace",
];

/// One connection.
#[derive(Debug)]
pub(crate) struct Recording {
    steps: Vec<Step>,
}

/// The recordings of a directory; connections that sent nothing but a startup packet, or cancelled others, are left out.
pub(crate) fn read(directory: &Path) -> Vec<Recording> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{DIRECTORY}={}: {error}", directory.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "client"))
        .collect();
    paths.sort();
    let recordings = paths
        .iter()
        .map(|path| Recording { steps: steps(&std::fs::read(path).expect("it can be read"), STEPS_MAX) });
    recordings.filter(|recording| !recording.steps.is_empty()).collect()
}

/// What a client sent, cut where it has to wait for the server: behind each simple query, Sync and call of a function. Data
/// of COPY go with the statement in front of them.
fn steps(bytes: &[u8], count: usize) -> Vec<Step> {
    let startup = bytes.first_chunk::<4>().map_or(0, |length| u32::from_be_bytes(*length) as usize);
    let mut rest = bytes.get(startup..).unwrap_or_default();
    let (mut steps, mut step, mut ready) = (Vec::new(), Vec::new(), 0);
    while let Some(Ok(header)) = FrameHeader::peek(rest, u32::MAX) {
        let Some((frame, behind)) = rest.split_at_checked(header.frame_len()) else { break };
        let is_copied = matches!(header.tag, frontend::COPY_DATA | frontend::COPY_DONE | frontend::COPY_FAIL);
        if ready > 0 && !is_copied {
            steps.push((std::mem::take(&mut step), std::mem::take(&mut ready)));
        }
        match header.tag {
            frontend::TERMINATE | frontend::PASSWORD => {}
            tag => {
                step.extend_from_slice(frame);
                ready +=
                    usize::from(matches!(tag, frontend::QUERY | frontend::SYNC | frontend::FUNCTION_CALL));
            }
        }
        rest = behind;
    }
    if ready > 0 {
        steps.push((step, ready));
    }
    let usable = steps.into_iter().filter(|(bytes, _)| is_usable(bytes)).take(count);
    usable
        .map(|(bytes, ready)| {
            let shown = shown(&bytes);
            // A connection alone waits for nobody.
            Step { patience: Patience::Ends, ..Step::new(0, bytes, Wait::Ready(ready), shown) }
        })
        .collect()
}

fn is_usable(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    let has = |word: &[u8]| lower.windows(word.len()).any(|other| other == word);
    bytes.len() <= STEP_BYTES_MAX && !EXCLUDED.iter().any(|word| has(word))
}

/// A step's tags and its texts, for people.
fn shown(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes).chars().filter(|letter| !letter.is_control()).collect();
    text.chars().take(160).collect()
}

/// A recording as it was, or with settings and cancels between its steps.
pub(crate) fn program(seed: u64, recording: &Recording) -> Program {
    let program = Program { sessions: 1, steps: recording.steps.clone() };
    let random = &mut Random::new(seed ^ 0x4ec0_0000_0000);
    if random.one_in(2) { program } else { perturb_gently(random, program) }
}
