//! The thread that keeps records: into the trace file, and into the analyzer for the report.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{Analyzer, StreamEncoder, TraceError, TraceWriter};

use crate::GatewayError;
use crate::notice::notice;

/// Blocks that may wait for the thread.
const QUEUE_MAX: usize = 1024;
/// Records of one connection that may wait for a place in the queue; beyond, they are lost and counted.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// A block is handed over from this size on, or when it is old.
const BLOCK_BYTES: usize = 32 * 1024;

/// What the thread ends with.
pub(crate) struct Recorded {
    pub(crate) analyzer: Analyzer,
    /// Why the trace ends early, if it does.
    pub(crate) trace_error: Option<TraceError>,
}

/// Takes blocks from all connections.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    blocks: SyncSender<(u32, Vec<u8>)>,
    lost: Arc<AtomicU64>,
}

/// The running thread.
#[derive(Debug)]
pub(crate) struct RecorderThread {
    recorder: Recorder,
    thread: JoinHandle<Recorded>,
}

impl RecorderThread {
    /// Starts the thread; `origin` is the trace's first block.
    pub(crate) fn start(trace: Option<(&Path, TraceHeader)>, origin: Vec<u8>) -> Result<Self, GatewayError> {
        let writer = trace.map(|(path, header)| TraceWriter::create(path, header)).transpose()?;
        let (blocks, receiver) = sync_channel(QUEUE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let recorder = Recorder { blocks, lost: Arc::clone(&lost) };
        let thread = thread::Builder::new()
            .name("onetrip-recorder".into())
            .spawn(move || record(&receiver, writer, &origin, &lost))
            .map_err(GatewayError::Start)?;
        Ok(Self { recorder, thread })
    }

    pub(crate) fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Waits until everything handed over is kept. All other [`Recorder`]s must be gone.
    pub(crate) fn finish(self) -> Recorded {
        drop(self.recorder);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Recorder {
    /// Hands over what a connection has recorded if it is enough, or in any case if `all` is asked for.
    pub(crate) fn take(&self, number: u32, stream: &mut StreamEncoder, all: bool) {
        if stream.is_empty() || (!all && stream.len() < BLOCK_BYTES) {
            return;
        }
        match self.blocks.try_send((number, stream.take_block())) {
            Ok(()) => {}
            Err(TrySendError::Full((_, block))) if block.len() < WAITING_BYTES_MAX => {
                stream.recycle_unsent(block)
            }
            Err(TrySendError::Full((_, block)) | TrySendError::Disconnected((_, block))) => {
                self.lost.fetch_add(block.len() as u64, Ordering::Relaxed);
            }
        }
    }

    /// Hands over a connection's last block; waits for a place in the queue, because there is no later try.
    pub(crate) fn take_last(&self, number: u32, stream: &mut StreamEncoder) {
        if let Err(lost) = self.blocks.send((number, stream.take_block())) {
            self.lost.fetch_add(lost.0.1.len() as u64, Ordering::Relaxed);
        }
    }
}

fn record(
    blocks: &Receiver<(u32, Vec<u8>)>,
    mut writer: Option<TraceWriter>,
    origin: &[u8],
    lost: &AtomicU64,
) -> Recorded {
    let mut analyzer = Analyzer::new();
    let mut trace_error = None;
    let mut keep = |stream: u32, block: &[u8]| {
        if let Some(Err(error)) = writer.as_mut().map(|writer| writer.append(stream, block)) {
            notice(&format!("{error}; the trace ends here, the gateway goes on"));
            trace_error = Some(error);
            writer = None;
        }
        if let Err(error) = analyzer.block(stream, block) {
            notice(&format!("{error}; please report this"));
        }
    };
    keep(TRACE_STREAM, origin);
    for (stream, block) in blocks {
        keep(stream, &block);
    }
    let lost = lost.load(Ordering::Relaxed);
    if lost > 0 {
        let mut last = StreamEncoder::default();
        last.lost(lost);
        keep(TRACE_STREAM, &last.take_block());
    }
    Recorded { analyzer, trace_error }
}
