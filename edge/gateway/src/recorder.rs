//! The threads that keep records: one feeds the analyzer, the other writes the trace. What a session hands over never
//! waits for either: where they are too slow, records are lost and counted.
//!
//! ```text
//!  sessions --> [queue] --> recorder: analyzer --> [queue] --> writer: trace file
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{Analyzer, StreamEncoder, TraceError, TraceWriter};

use crate::GatewayError;
use crate::notice::{Kind, notice};
use crate::queue::{Block, Handing, Taking, bytes_of, queue};
use crate::shared::spawn;

/// Bytes that may wait for the recorder.
const RECORDER_BYTES_MAX: usize = 32 << 20;
/// The same for the last blocks of connections, for which there is no later try.
const RECORDER_LAST_BYTES_MAX: usize = 64 << 20;
/// Bytes that may wait for the trace's file.
const WRITER_BYTES_MAX: usize = 32 << 20;
/// Records of one connection that may wait for a place in the queue; beyond, they are lost and counted.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// A block is handed over from this size on, and otherwise with those of the other connections.
const BLOCK_BYTES: usize = 32 * 1024;
/// How often the end of the trace is asked for.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// What the threads end with.
pub(crate) struct Recorded {
    pub(crate) analyzer: Analyzer,
    /// Why the trace does not hold everything, if it does not.
    pub(crate) trace_error: Option<String>,
}

/// Blocks of several connections, handed over at once.
pub(crate) type Batch = Vec<Block>;

/// Takes blocks from all connections.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    blocks: Handing,
    lost: Arc<AtomicU64>,
}

/// The running threads.
#[derive(Debug)]
pub(crate) struct RecorderThread {
    recorder: Recorder,
    thread: JoinHandle<Analyzer>,
    writer: Option<WriterThread>,
}

/// The thread that writes the trace; it may hang as long as its file does.
#[derive(Debug)]
struct WriterThread {
    progress: Arc<Progress>,
    /// Behind a lock so that a gateway may be shared between threads.
    done: Mutex<Receiver<Option<TraceError>>>,
}

/// How far the trace is, for those who do not wait for its file.
#[derive(Debug, Default)]
struct Progress {
    written_bytes: AtomicU64,
    lost_bytes: AtomicU64,
}

impl RecorderThread {
    /// Starts the threads; `origin` is the trace's first block.
    pub(crate) fn start(trace: Option<(&Path, TraceHeader)>, origin: Vec<u8>) -> Result<Self, GatewayError> {
        let writer = trace.map(|(path, header)| TraceWriter::create(path, header)).transpose()?;
        let (blocks, taking) = queue();
        let lost = Arc::new(AtomicU64::new(0));
        let recorder = Recorder { blocks, lost: Arc::clone(&lost) };
        let (to_writer, writer) =
            writer.map(|writer| start_writer(writer, Arc::clone(&lost))).transpose()?.unzip();
        let record = move || record(&taking, origin, to_writer, &lost);
        let thread = spawn("onetrip-recorder", record)?;
        Ok(Self { recorder, thread, writer })
    }

    pub(crate) fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Waits until everything handed over is counted, and for the trace as long as it goes on within `patience`. All
    /// other [`Recorder`]s must be gone.
    pub(crate) fn finish(self, patience: Duration) -> Recorded {
        drop(self.recorder);
        let analyzer = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Recorded { analyzer, trace_error: self.writer.and_then(|writer| writer.finish(patience)) }
    }
}

impl WriterThread {
    /// Why the trace does not hold everything.
    fn finish(self, patience: Duration) -> Option<String> {
        let written = || self.progress.written_bytes.load(Ordering::Relaxed);
        let (mut before, mut waited) = (written(), Duration::ZERO);
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let error = loop {
            match done.recv_timeout(ASK_EVERY) {
                Ok(None) => break None,
                Err(RecvTimeoutError::Disconnected) => {
                    break Some("the thread that writes it has died, and the trace has no end".to_owned());
                }
                Ok(Some(error)) => break Some(error.to_string()),
                Err(RecvTimeoutError::Timeout) if written() > before => {
                    before = written();
                    waited = Duration::ZERO;
                }
                Err(RecvTimeoutError::Timeout) if waited >= patience => {
                    break Some("its file takes nothing, and the trace has no end".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => waited += ASK_EVERY,
            }
        };
        match (error, self.progress.lost_bytes.load(Ordering::Relaxed)) {
            (None, 0) => None,
            (None, lost) => Some(format!("records of {lost} bytes are missing, as its file was too slow")),
            (Some(error), 0) => Some(error),
            (Some(error), lost) => Some(format!("{error}; records of {lost} bytes are missing")),
        }
    }
}

impl Recorder {
    /// Hands over what a connection has recorded if it is much.
    pub(crate) fn take_if_much(&self, number: u32, stream: &mut StreamEncoder) {
        if stream.len() < BLOCK_BYTES {
            return;
        }
        if let Err(block) = self.blocks.hand_over(number, stream.take_block(), RECORDER_BYTES_MAX) {
            self.keep_waiting(stream, block);
        }
    }

    /// Puts what a connection has recorded into a batch. Returns whether nothing is left of it.
    pub(crate) fn collect(&self, number: u32, stream: &mut StreamEncoder, batch: &mut Batch) -> bool {
        if stream.is_empty() {
            return true;
        }
        match self.blocks.collect(number, stream.take_block(), RECORDER_BYTES_MAX, batch) {
            Ok(()) => true,
            Err(block) => self.keep_waiting(stream, block),
        }
    }

    /// Hands over a batch, if there is something in it.
    pub(crate) fn take_batch(&self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        // The thread ends only behind the last of those that hand over, unless it has died.
        if let Err(unsent) = self.blocks.hand_over_all(batch) {
            self.lost.fetch_add(bytes_of(&unsent) as u64, Ordering::Relaxed);
        }
    }

    /// A block that found no place waits for one where it came from, or is lost. Returns whether it is lost.
    fn keep_waiting(&self, stream: &mut StreamEncoder, block: Vec<u8>) -> bool {
        let is_lost = block.len() >= WAITING_BYTES_MAX;
        if is_lost {
            self.lost.fetch_add(block.len() as u64, Ordering::Relaxed);
        } else {
            stream.recycle_unsent(block);
        }
        is_lost
    }

    /// Hands over a connection's last block: there is no later try.
    pub(crate) fn take_last(&self, number: u32, stream: &mut StreamEncoder) {
        if let Err(block) = self.blocks.hand_over(number, stream.take_block(), RECORDER_LAST_BYTES_MAX) {
            self.lost.fetch_add(block.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Counts what comes, and hands it on to the trace.
fn record(
    blocks: &Taking,
    origin: Vec<u8>,
    writer: Option<(Handing, Arc<Progress>)>,
    lost: &AtomicU64,
) -> Analyzer {
    let mut analyzer = Analyzer::new();
    let mut keep = |batch: Batch| {
        let mut to_write = Batch::with_capacity(batch.len());
        for (stream, block) in batch {
            if let Err(error) = analyzer.block(stream, &block) {
                notice(Kind::Trace, None, &format!("{error}; please report this"));
            }
            if let Some((writer, progress)) = &writer {
                if let Err(block) = writer.collect(stream, block, WRITER_BYTES_MAX, &mut to_write) {
                    progress.lost(block.len());
                }
            }
        }
        if let Some((writer, progress)) = writer.as_ref().filter(|_| !to_write.is_empty()) {
            if let Err(unsent) = writer.hand_over_all(to_write) {
                progress.lost(bytes_of(&unsent));
            }
        }
    };
    keep(vec![(TRACE_STREAM, origin)]);
    while let Some(batch) = blocks.take() {
        keep(batch);
    }
    // The trace gets its own, with what only it has lost.
    let mut end = StreamEncoder::default();
    match lost.load(Ordering::Relaxed) {
        0 => {}
        lost => end.lost(lost),
    }
    end.end(None);
    if let Err(error) = analyzer.block(TRACE_STREAM, &end.take_block()) {
        notice(Kind::Trace, None, &format!("{error}; please report this"));
    }
    analyzer
}

impl Progress {
    fn lost(&self, bytes: usize) {
        if self.lost_bytes.fetch_add(bytes as u64, Ordering::Relaxed) == 0 {
            let text =
                "the trace's file takes less than comes: records are missing in it, the gateway goes on";
            notice(Kind::Trace, None, text);
        }
    }
}

type Writing = ((Handing, Arc<Progress>), WriterThread);

fn start_writer(writer: TraceWriter, lost: Arc<AtomicU64>) -> Result<Writing, GatewayError> {
    let (handing, taking) = queue();
    let progress = Arc::new(Progress::default());
    let (ended, done) = channel();
    let mine = Arc::clone(&progress);
    let write = move || {
        let error = write(writer, &taking, &mine, &lost);
        // Nobody listens any more if that took too long.
        let _ = ended.send(error);
    };
    spawn("onetrip-writer", write)?;
    Ok(((handing, Arc::clone(&progress)), WriterThread { progress, done: Mutex::new(done) }))
}

/// Writes the trace to its end; returns what kept it from being whole.
fn write(
    mut writer: TraceWriter,
    blocks: &Taking,
    progress: &Progress,
    lost: &AtomicU64,
) -> Option<TraceError> {
    let (mut failed, mut has_ended) = (None, false);
    for (stream, block) in std::iter::from_fn(|| blocks.take()).flatten() {
        match writer.append(stream, &block) {
            Ok(()) => {
                progress.written_bytes.fetch_add(block.len() as u64, Ordering::Relaxed);
            }
            Err(error) => {
                progress.lost_bytes.fetch_add(block.len() as u64, Ordering::Relaxed);
                // The writer appends nothing after another error, and says the same each time.
                if !has_ended {
                    has_ended = ends_trace(&error);
                    let what = match has_ended {
                        true => "the trace ends here, the gateway goes on",
                        false => "it is left out, the trace goes on",
                    };
                    notice(Kind::Trace, None, &format!("{error}; {what}"));
                }
                failed.get_or_insert(error);
            }
        }
    }
    // All that hand over are gone: nothing more is lost.
    let lost = lost.load(Ordering::Relaxed) + progress.lost_bytes.load(Ordering::Relaxed);
    let ended = writer.finish(lost);
    failed.or(ended.err())
}

/// Whether nothing is appended after this error.
fn ends_trace(error: &TraceError) -> bool {
    !matches!(error, TraceError::TooLong { .. })
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::TraceReader;
    use onetrip_ledger::trace::BLOCK_BYTES_MAX;

    use super::*;

    #[test]
    fn a_block_that_is_too_long_is_left_out_and_does_not_end_the_trace() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("run.trace");
        let writer = TraceWriter::create(&path, TraceHeader::now(false)).expect("a new file");
        let (handing, taking) = queue();
        for (stream, bytes) in [(1, 8), (2, BLOCK_BYTES_MAX + 1), (3, 8)] {
            handing.hand_over(stream, vec![0; bytes], usize::MAX).expect("there is room");
        }
        drop(handing);
        let (progress, lost) = (Progress::default(), AtomicU64::new(0));
        let error = write(writer, &taking, &progress, &lost).expect("a block is missing");
        assert!(matches!(error, TraceError::TooLong { stream: 2, .. }) && !ends_trace(&error), "{error}");
        let mut reader = TraceReader::open(&path).expect("a trace");
        let mut streams = Vec::new();
        while let Some(block) = reader.next_block().expect("it is readable") {
            streams.push(block.stream);
        }
        assert_eq!(streams, [1, 3, TRACE_STREAM]);
        assert_eq!(progress.lost_bytes.load(Ordering::Relaxed), BLOCK_BYTES_MAX as u64 + 1);
    }
}
