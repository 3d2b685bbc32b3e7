//! How far a run is, on standard error where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Redraws per second.
const REDRAWS_HZ: u8 = 10;

/// A bar that is gone when the run ends in any way.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn start(name: &str, cells: usize) -> Self {
        let bar =
            ProgressBar::with_draw_target(Some(cells as u64), ProgressDrawTarget::stderr_with_hz(REDRAWS_HZ));
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        Self(bar)
    }

    /// Another cell begins; those before it are done.
    pub(super) fn begin(&self, cell: &str) {
        if !self.0.message().is_empty() {
            self.0.inc(1);
        }
        self.0.set_message(cell.to_owned());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
