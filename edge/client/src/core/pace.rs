use super::Connection;

/// A block's first bytes leave early, so that the server begins while the rest is still being written.
const FIRST_BYTES: usize = 4 * 1024;

/// Later ones in larger pieces.
const BYTES: usize = 32 * 1024;

/// When the shells send what a block has so far, and when they wait: what is written and not sent, and what is sent and
/// not answered, is bounded.
#[derive(Debug, Default)]
pub(crate) struct SendPace {
    has_sent: bool,
}

impl SendPace {
    /// Whether enough is there for a piece to leave.
    pub(crate) fn is_due(&mut self, core: &Connection) -> bool {
        let enough = if self.has_sent { BYTES } else { FIRST_BYTES };
        let is_due = core.output_bytes() >= enough;
        self.has_sent |= is_due;
        is_due
    }

    /// Whether the network takes less than is written.
    pub(crate) fn must_wait(core: &Connection) -> bool {
        core.output_bytes() > 4 * BYTES
    }

    /// Whether too many replies are awaited.
    pub(crate) fn is_too_deep(core: &Connection) -> bool {
        core.depth() > core.limits().depth
    }

    /// Whether there are still so many that more should be waited for.
    pub(crate) fn is_deep(core: &Connection) -> bool {
        core.depth() > core.limits().depth / 2
    }
}
