//! How far a command is, on standard error where that is a terminal, with the time left.

use std::borrow::Cow;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Redraws per second.
const REDRAWS_HZ: u8 = 10;
/// Files below this are read within a second.
const BYTES_MIN: u64 = 8 << 20;
/// Bytes that are read of so many.
pub(crate) const BYTES: &str = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
/// Steps that are made of so many.
const STEPS: &str = "{msg} {bar:40} {human_pos}/{human_len}, {eta} left";

/// A bar that is gone when the work ends in any way.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of reading a file. There is no bar for a small one, and none for what is no file.
    pub(crate) fn of_file(path: &Path) -> Self {
        let is_long = |file: &std::fs::Metadata| file.is_file() && file.len() >= BYTES_MIN;
        match std::fs::metadata(path).ok().filter(is_long) {
            Some(file) => Self::start(file.len(), BYTES),
            None => Self(ProgressBar::hidden()),
        }
    }

    /// Of so many steps of what `title` names.
    pub(crate) fn of_steps(title: impl Into<Cow<'static, str>>, steps: u64) -> Self {
        let progress = Self::start(steps, STEPS);
        progress.0.set_message(title);
        progress
    }

    /// So much more is done.
    pub(crate) fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    fn start(whole: u64, template: &str) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_HZ);
        Self(ProgressBar::with_draw_target(Some(whole), target).with_style(style(template)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A template of onetrip's own; one that does not parse falls back on the usual bar.
pub(crate) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
