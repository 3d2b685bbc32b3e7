//! Trace files of any content: an error or records, never a panic, and no more bytes read than there are.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use onetrip_ledger::trace::{Records, TraceHeader, decode_block};
use onetrip_ledger::{Analyzer, Mutes, TraceError, TraceReader, TraceWriter};

fn read(path: &std::path::Path, length: usize) -> usize {
    let mut blocks = 0;
    let Ok(mut reader) = TraceReader::open(path) else { return 0 };
    while let Ok(Some(block)) = reader.next_block() {
        assert!(block.payload.len() <= length);
        blocks += 1;
    }
    let gaps = reader.gaps();
    assert!(gaps.damaged_bytes + gaps.tail_bytes <= length as u64);
    blocks
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, data)) = data.split_first() else { return };
    match mode % 4 {
        // Any file.
        0 => {
            let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
            file.write_all(data).expect("a temporary file");
            read(file.path(), data.len());
        }
        // A whole block, and what a crash left of a second.
        1 => {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = directory.path().join("trace");
            let mut writer = TraceWriter::create(&path, TraceHeader::now(false)).expect("a new trace");
            writer.append(1, data).expect("a block");
            let whole = std::fs::metadata(&path).expect("the trace").len();
            writer.append(2, data).expect("a block");
            let cut = whole + data.len() as u64 / 2;
            let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the trace");
            file.set_len(cut).expect("the trace");
            assert_eq!(read(&path, data.len() + 64), 1);
        }
        // A block's records, one after another and through the analyzer.
        _ => {
            let decoded = decode_block::<TraceError>(&mut Records::default(), 1, data, |_| Ok(()));
            let mut analyzer = Analyzer::new();
            assert_eq!(analyzer.block(1, data).is_ok(), decoded.is_ok());
            analyzer.finish(&Mutes::default());
        }
    }
});
