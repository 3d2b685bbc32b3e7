use std::fmt;
use std::time::Duration;

use crate::units::{BitsPerSecond, ByteSize, HumanDuration};
use crate::window::WINDOW_MAX_BYTES;

/// A path between two programs. The default is the path of no distance: nothing is delayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSpec {
    /// Time from sending a byte to hearing of its arrival; each direction takes half of it.
    pub rtt: Duration,
    /// What the connections of one direction share, each direction for itself. `None`: no limit.
    pub bandwidth: Option<BitsPerSecond>,
    /// A round trip takes between `rtt` and `rtt + jitter`; each direction adds up to half of it. Bytes never
    /// overtake each other within a connection.
    pub jitter: Duration,
    /// Whether TCP's congestion window holds back what exceeds it, as a kernel would over this distance.
    pub tcp_window: bool,
    /// Bytes held at once in one direction of the link. Beyond it the relay stops reading, so that the sender
    /// feels back pressure; each connection may always hold 64 KiB, so that none can block another. With TCP's window
    /// a connection holds no more than the largest window.
    pub buffer: usize,
    /// Replays the same jitter for the same seed.
    pub seed: u64,
}

impl Default for LinkSpec {
    fn default() -> Self {
        Self {
            rtt: Duration::ZERO,
            bandwidth: None,
            jitter: Duration::ZERO,
            tcp_window: true,
            buffer: 64 << 20,
            seed: 0,
        }
    }
}

impl LinkSpec {
    /// A path that differs from the default in its round-trip time only.
    pub fn with_rtt(rtt: Duration) -> Self {
        Self { rtt, ..Self::default() }
    }

    /// Time for a byte to cross an idle path in one direction, without jitter.
    pub fn one_way(&self) -> Duration {
        self.rtt / 2
    }

    /// Bytes that one connection may hold in one direction, whatever the others hold. With TCP's window no more can
    /// be under way, or wait for a receiver that does not read; what is beyond it waits in the sender's socket.
    pub(crate) fn connection_buffer(&self) -> usize {
        if self.tcp_window { WINDOW_MAX_BYTES } else { usize::MAX }
    }
}

impl fmt::Display for LinkSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "rtt {}", HumanDuration(self.rtt))?;
        if let Some(bandwidth) = self.bandwidth {
            write!(out, ", bandwidth {bandwidth}")?;
        }
        if !self.jitter.is_zero() {
            write!(out, ", jitter {} (seed {})", HumanDuration(self.jitter), self.seed)?;
        }
        if !self.tcp_window {
            write!(out, ", no TCP window")?;
        }
        if self.buffer != Self::default().buffer {
            write!(out, ", buffer {}", ByteSize(self.buffer))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_describes_itself_in_the_words_of_its_flags() {
        let link = LinkSpec {
            bandwidth: BitsPerSecond::new(32_000_000),
            jitter: Duration::from_millis(1),
            tcp_window: false,
            buffer: 1 << 20,
            ..LinkSpec::with_rtt(Duration::from_micros(12_900))
        };
        assert_eq!(
            link.to_string(),
            "rtt 12.9ms, bandwidth 32mbit, jitter 1ms (seed 0), no TCP window, buffer 1MiB"
        );
        assert_eq!(LinkSpec::default().to_string(), "rtt 0ns");
    }
}
