//! A queue of blocks whose bytes are bounded, so that whoever hands one over never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Records of one stream.
pub(crate) type Block = (u32, Vec<u8>);

/// Hands blocks over.
#[derive(Debug, Clone)]
pub(crate) struct Handing {
    blocks: Sender<Block>,
    queued: Arc<AtomicUsize>,
}

/// Takes them.
#[derive(Debug)]
pub(crate) struct Taking {
    blocks: Receiver<Block>,
    queued: Arc<AtomicUsize>,
}

/// Both ends of a queue.
pub(crate) fn queue() -> (Handing, Taking) {
    let (sender, receiver) = channel();
    let queued = Arc::new(AtomicUsize::new(0));
    (Handing { blocks: sender, queued: Arc::clone(&queued) }, Taking { blocks: receiver, queued })
}

impl Handing {
    /// Hands a block over unless that makes more than `bytes_max` wait; gives it back then.
    pub(crate) fn hand_over(&self, stream: u32, block: Vec<u8>, bytes_max: usize) -> Result<(), Vec<u8>> {
        let bytes = block.len();
        if self.queued.fetch_add(bytes, Ordering::Relaxed) + bytes > bytes_max {
            self.queued.fetch_sub(bytes, Ordering::Relaxed);
            return Err(block);
        }
        self.blocks.send((stream, block)).map_err(|unsent| {
            self.queued.fetch_sub(bytes, Ordering::Relaxed);
            unsent.0.1
        })
    }
}

impl Taking {
    /// The next block; `None` once nobody hands over any more and all is taken.
    pub(crate) fn take(&self) -> Option<Block> {
        let (stream, block) = self.blocks.recv().ok()?;
        self.queued.fetch_sub(block.len(), Ordering::Relaxed);
        Some((stream, block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_bytes_wait_than_the_bound_and_what_is_taken_makes_room() {
        let (handing, taking) = queue();
        assert_eq!(handing.hand_over(1, vec![0; 60], 100), Ok(()));
        assert_eq!(handing.hand_over(2, vec![0; 41], 100), Err(vec![0; 41]));
        assert_eq!(handing.hand_over(2, vec![0; 40], 100), Ok(()));
        assert_eq!(taking.take().map(|(stream, block)| (stream, block.len())), Some((1, 60)));
        assert_eq!(handing.hand_over(3, vec![0; 60], 100), Ok(()));
        drop(handing);
        assert_eq!(taking.take().map(|(stream, _)| stream), Some(2));
        assert_eq!(taking.take().map(|(stream, _)| stream), Some(3));
        assert_eq!(taking.take(), None);
    }
}
