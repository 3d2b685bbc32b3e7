use std::time::Duration;

use crate::Moment;
use crate::units::BitsPerSecond;

/// The narrowest point of one direction of a link: a first-in first-out queue that every connection of that
/// direction passes, at the link's bandwidth. Its queue is unbounded (loss is not modelled); what bounds it is the
/// window of each connection and the relay's buffer.
#[derive(Debug, Clone)]
pub struct Bottleneck {
    bandwidth: Option<BitsPerSecond>,
    free_at: Moment,
}

impl Bottleneck {
    /// A queue that is empty now; `None` passes everything at once.
    pub fn new(bandwidth: Option<BitsPerSecond>) -> Self {
        Self { bandwidth, free_at: Moment::ZERO }
    }

    /// Queues `bytes` that reach it at `at` and says when the last of them has left. Call in the order of `at`.
    pub fn pass(&mut self, at: Moment, bytes: usize) -> Moment {
        let Some(bandwidth) = self.bandwidth else { return at };
        self.free_at = self.free_at.max(at) + bandwidth.time_for(bytes as u64);
        self.free_at
    }

    /// The largest piece that leaves as one: what passes in [`PIECE_TIME`], in whole segments of `segment` bytes.
    /// Everything, where nothing limits the bandwidth.
    pub(crate) fn piece(&self, segment: usize) -> usize {
        let Some(bandwidth) = self.bandwidth else { return usize::MAX };
        let bytes = u128::from(bandwidth.get()) * PIECE_TIME.as_nanos() / 8_000_000_000;
        let segments = (bytes / segment as u128).clamp(1, PIECE_SEGMENTS_MAX as u128);
        segments as usize * segment
    }
}

/// How finely a narrow path is drawn. Finer costs a system call per piece, coarser lets the first bytes of an answer
/// wait for its last.
const PIECE_TIME: Duration = Duration::from_micros(100);

/// About 64 KiB: what a kernel hands to a network card at once.
const PIECE_SEGMENTS_MAX: usize = 45;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Moment {
        Moment::from_millis(value)
    }

    #[test]
    fn bytes_queue_behind_those_that_came_first() {
        let mut queue = Bottleneck::new(BitsPerSecond::new(8_000_000)); // one byte per microsecond
        assert_eq!(queue.pass(ms(0), 1000), ms(1));
        assert_eq!(queue.pass(ms(0), 2000), ms(3));
        assert_eq!(queue.pass(ms(10), 1000), ms(11)); // idle in between: no credit is saved up
    }

    #[test]
    fn no_limit_means_no_queue() {
        let mut queue = Bottleneck::new(None);
        assert_eq!(queue.pass(ms(5), usize::MAX), ms(5));
        assert_eq!(queue.piece(1448), usize::MAX);
    }

    #[test]
    fn pieces_are_whole_segments_worth_a_tenth_of_a_millisecond() {
        let piece = |bits| Bottleneck::new(BitsPerSecond::new(bits)).piece(1448);
        assert_eq!(piece(32_000_000), 1448);
        assert_eq!(piece(1_000_000_000), 8 * 1448);
        assert_eq!(piece(100_000_000_000), 45 * 1448);
    }
}
