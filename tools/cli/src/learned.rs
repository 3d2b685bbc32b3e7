//! `--learned FILE`: what was learned about loops, kept between runs.
//!
//! Only hints are kept. How the server describes statements is an answer. It is true only while the server's
//! catalogue stays as it is, and a later run cannot know that. So a later run asks again.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use onetrip_gateway::{BadKept, Common, Edges, KEPT_BYTES_MAX};
use onetrip_ledger::Remedy;
use rustix::fs::{FlockOperation, flock};
use tempfile::NamedTempFile;

use crate::args::WatchOptions;
use crate::files::directory_of;
use crate::say::{explained, say};

/// How long others may hold the directory's lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The file, and what it held at the start.
pub(crate) struct Learned {
    file: Option<PathBuf>,
    edges: Edges,
}

impl Learned {
    /// Reads the file, if one is named. Whatever cannot be read is an error, so that nothing is written over it.
    pub(crate) fn open(options: &WatchOptions) -> Result<Self> {
        let Some(named) = &options.learned else { return Ok(Self { file: None, edges: Edges::new() }) };
        if ![Remedy::Loops, Remedy::Repeats, Remedy::Lobs].iter().any(|one| options.remedies.has(*one)) {
            say("--learned: nothing is learned without --remedies exact");
        }
        // A link stays one: what it leads to is replaced.
        let file = named.canonicalize().unwrap_or_else(|_| named.clone());
        if !directory_of(&file).is_dir() {
            let directory = directory_of(&file).display();
            bail!("--learned {}: there is no directory {directory}", named.display());
        }
        Ok(Self { edges: read(&file)?, file: Some(file) })
    }

    /// Tells a gateway.
    pub(crate) fn teach(&self, common: &Common) {
        common.learn(&self.edges);
    }

    /// Writes what a gateway knows now. The run is over: that it cannot be kept is said, and no failure of the run.
    pub(crate) fn keep(&self, common: &Common) {
        let Some(file) = &self.file else { return };
        if let Err(error) = write(file, common.learned()) {
            say(format_args!("what was learned is not kept: {}", explained(&error)));
        }
    }
}

/// What the file holds; nothing where there is none.
fn read(file: &Path) -> Result<Edges> {
    let name = file.display();
    let mut text = Vec::new();
    match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Edges::new()),
        Err(error) => return Err(anyhow!(error).context(format!("cannot read {name}"))),
        Ok(opened) => {
            if !opened.metadata().with_context(|| format!("cannot read {name}"))?.is_file() {
                bail!("{name} is not a file; name a file for --learned, or a path that does not exist yet");
            }
            // One byte more shows that it is too long.
            let limit = KEPT_BYTES_MAX as u64 + 1;
            opened.take(limit).read_to_end(&mut text).with_context(|| format!("cannot read {name}"))?;
        }
    }
    let known = if text.len() > KEPT_BYTES_MAX { Err(BadKept::Foreign) } else { Edges::from_text(&text) };
    known.map_err(|bad| {
        let way_out = "name another file, or delete this one: what it held is learned again by the next runs";
        match bad {
            BadKept::Foreign => {
                anyhow!("{name} was not written by --learned, and is left as it is: name another file")
            }
            BadKept::Version => anyhow!("{name} was written by another version of onetrip: {way_out}"),
            BadKept::Damaged(line) => anyhow!("{name} is damaged in line {line}: {way_out}"),
        }
    })
}

/// Replaces the file as a whole by this and what it holds by now.
fn write(file: &Path, mut edges: Edges) -> Result<()> {
    let name = file.display();
    let directory = directory_of(file);
    let failed = || format!("cannot write {name}");
    // Runs that end at the same time write one after the other. Without the lock, one may miss what another has learned;
    // the file is whole all the same.
    let locked = File::open(directory).with_context(failed)?;
    let begun = Instant::now();
    while begun.elapsed() < LOCK_PATIENCE && flock(&locked, FlockOperation::NonBlockingLockExclusive).is_err()
    {
        thread::sleep(LOCK_PAUSE);
    }
    edges.absorb(&read(file)?);
    edges.tidy();
    let mut next = NamedTempFile::new_in(directory).with_context(failed)?;
    next.write_all(edges.to_text().as_bytes()).with_context(failed)?;
    next.as_file().sync_all().with_context(failed)?;
    next.persist(file).map_err(|error| error.error).with_context(failed)?;
    Ok(())
}
