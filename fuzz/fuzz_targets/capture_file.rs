//! Capture files of any content, read in pieces of any size: packets or an error with its place, never a panic; the same
//! packets however they are cut. Files that are compressed are not looked at here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_capture::{Capture, CaptureConfig, CaptureFile, FileError};

/// Times, lengths and sizes of the packets, and how the file ended.
type Read = (Vec<(u64, usize, usize)>, Option<FileError>);

fn read(mut reader: CaptureFile, mut file: &[u8], piece: usize) -> Read {
    let mut packets = Vec::new();
    let mut is_dry = false;
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => packets.push((packet.at_ns, packet.length, packet.data.len())),
            Ok(None) if is_dry => return (packets, reader.finish().err()),
            Ok(None) if file.is_empty() => {
                reader.dry();
                is_dry = true;
            }
            Ok(None) => {
                let room = reader.room();
                let count = room.len().min(piece).min(file.len());
                room[..count].copy_from_slice(&file[..count]);
                reader.filled(count);
                file = &file[count..];
            }
            Err(error) => return (packets, Some(error)),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&piece, file)) = data.split_first() else { return };
    let (mut packets, end) = read(CaptureFile::new(), file, usize::MAX);
    let (pieces, pieces_end) = read(CaptureFile::new(), file, usize::from(piece) + 1);
    assert_eq!(packets, pieces);
    assert_eq!(end.map(|error| error.offset), pieces_end.map(|error| error.offset));
    let sizes: usize = packets.iter().map(|(_, _, size)| size).sum();
    assert!(sizes <= file.len());
    // Sorting loses none.
    let (mut sorted, _) = read(CaptureFile::sorted(), file, usize::from(piece) + 1);
    packets.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(packets, sorted);

    let mut reader = CaptureFile::new();
    let count = reader.room().len().min(file.len());
    reader.room()[..count].copy_from_slice(&file[..count]);
    reader.filled(count);
    let mut capture = Capture::new(CaptureConfig::default());
    while let Ok(Some(packet)) = reader.next_packet() {
        capture.packet(&packet, &mut |_, _| {});
    }
    capture.finish(0, &mut |_, _| {});
});
