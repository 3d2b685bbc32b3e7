//! A queue of blocks whose bytes are bounded, so that whoever hands some over never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Records of one stream.
pub(crate) type Block = (u32, Vec<u8>);

/// Hands blocks over.
#[derive(Debug, Clone)]
pub(crate) struct Handing {
    batches: Sender<Vec<Block>>,
    queued: Arc<AtomicUsize>,
}

/// Takes them.
#[derive(Debug)]
pub(crate) struct Taking {
    batches: Receiver<Vec<Block>>,
    queued: Arc<AtomicUsize>,
}

/// Both ends of a queue.
pub(crate) fn queue() -> (Handing, Taking) {
    let (sender, receiver) = channel();
    let queued = Arc::new(AtomicUsize::new(0));
    (Handing { batches: sender, queued: Arc::clone(&queued) }, Taking { batches: receiver, queued })
}

impl Handing {
    /// Hands a block over unless that makes more than `bytes_max` wait; gives it back then.
    pub(crate) fn hand_over(&self, stream: u32, block: Vec<u8>, bytes_max: usize) -> Result<(), Vec<u8>> {
        let mut batch = Vec::with_capacity(1);
        self.collect(stream, block, bytes_max, &mut batch)?;
        self.hand_over_all(batch)
            .map_err(|mut unsent| unsent.pop().map(|(_, block)| block).unwrap_or_default())
    }

    /// Puts a block into a batch that is to be handed over, unless that makes more than `bytes_max` wait; gives it back then.
    pub(crate) fn collect(
        &self,
        stream: u32,
        block: Vec<u8>,
        bytes_max: usize,
        batch: &mut Vec<Block>,
    ) -> Result<(), Vec<u8>> {
        let bytes = block.len();
        if self.queued.fetch_add(bytes, Ordering::Relaxed) + bytes > bytes_max {
            self.queued.fetch_sub(bytes, Ordering::Relaxed);
            return Err(block);
        }
        batch.push((stream, block));
        Ok(())
    }

    /// Hands over blocks that were collected; gives them back where nobody takes any.
    pub(crate) fn hand_over_all(&self, batch: Vec<Block>) -> Result<(), Vec<Block>> {
        self.batches.send(batch).map_err(|unsent| {
            self.queued.fetch_sub(bytes_of(&unsent.0), Ordering::Relaxed);
            unsent.0
        })
    }
}

impl Taking {
    /// The next blocks; `None` once nobody hands over any more and all are taken.
    pub(crate) fn take(&self) -> Option<Vec<Block>> {
        let batch = self.batches.recv().ok()?;
        self.queued.fetch_sub(bytes_of(&batch), Ordering::Relaxed);
        Some(batch)
    }
}

/// Bytes in blocks.
pub(crate) fn bytes_of(batch: &[Block]) -> usize {
    batch.iter().map(|(_, block)| block.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The streams of the next batch.
    fn streams(taking: &Taking) -> Vec<u32> {
        taking.take().into_iter().flatten().map(|(stream, _)| stream).collect()
    }

    #[test]
    fn no_more_bytes_wait_than_the_bound_and_what_is_taken_makes_room() {
        let (handing, taking) = queue();
        assert_eq!(handing.hand_over(1, vec![0; 60], 100), Ok(()));
        assert_eq!(handing.hand_over(2, vec![0; 41], 100), Err(vec![0; 41]));
        assert_eq!(handing.hand_over(2, vec![0; 40], 100), Ok(()));
        assert_eq!(streams(&taking), [1]);
        let mut batch = Vec::new();
        assert_eq!(handing.collect(3, vec![0; 20], 100, &mut batch), Ok(()));
        assert_eq!(handing.collect(4, vec![0; 41], 100, &mut batch), Err(vec![0; 41]));
        assert_eq!(handing.collect(5, vec![0; 40], 100, &mut batch), Ok(()));
        assert_eq!(handing.hand_over_all(batch), Ok(()));
        drop(handing);
        assert_eq!([streams(&taking), streams(&taking)], [vec![2], vec![3, 5]]);
        assert_eq!(taking.take(), None);
    }
}
