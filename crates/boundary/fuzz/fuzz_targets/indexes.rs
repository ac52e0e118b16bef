//! Any bytes as a log's index beside any output, in one segment or two: every reader of the log comes to its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_log::{Chunk, Reader, Streams, asciicast, lines_back, marks, since};
use wharf_model::Offset;

/// Longer than whatever the fuzzer makes: a reader that goes on for longer does not end.
const MAX_STEPS: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let Some(([low, high, first, how], rest)) = data.split_first_chunk::<4>() else { return };
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let middle = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (index, output) = rest.split_at(middle);
    let first = u64::from(*first);
    // Half of the time with a header that is sound: what comes after it is what is read.
    let segment = |first: u64| {
        let mut whole = Vec::new();
        if how % 2 == 0 {
            whole.extend_from_slice(b"WHARFIX1");
            whole.extend_from_slice(&first.to_le_bytes());
            whole.extend_from_slice(&1_u32.to_le_bytes());
            whole.extend_from_slice(&[0; 4]);
        }
        whole.extend_from_slice(index);
        std::fs::write(dir.path().join(format!("{first:020}.idx")), whole).expect("a file");
        std::fs::write(dir.path().join(format!("{first:020}.log")), output).expect("a file");
    };
    segment(first);
    // A second one behind the first: right at its end, after a hole, or over its last bytes.
    let second = first.saturating_add_signed(output.len() as i64 + i64::from(how >> 2) - 8);
    if how & 2 != 0 && second != first {
        segment(second);
    }

    let end = Offset(u64::MAX);
    let Ok(mut reader) = Reader::open(dir.path(), Offset(0)) else { return };
    let mut buffer = [0; 97];
    let (mut streams, mut steps) = (Streams::new(), 0);
    loop {
        match reader.read(&mut buffer) {
            Ok(Chunk::Data { offset, len }) => {
                let Ok(pieces) = streams.split(&reader, offset, len) else { break };
                let whole = pieces.iter().fold(0, |at, (_, piece)| {
                    assert_eq!(piece.start, at, "a hole between two pieces");
                    piece.end
                });
                assert_eq!(whole, len, "all of it is on some stream");
            }
            Ok(Chunk::Gap { from, to }) => assert!(from < to, "a gap leads back"),
            Ok(Chunk::End) | Err(_) => break,
        }
        steps += 1;
        assert!(steps < MAX_STEPS, "the reader does not end");
    }
    if let Ok(all) = marks(dir.path(), Offset(0)..end) {
        assert!(
            all.take(MAX_STEPS).count() <= 2 * (index.len() / 24 + 2),
            "more marks than the index has room for"
        );
    }
    let _ = (since(dir.path(), 0), lines_back(dir.path(), 3), Reader::bounds(dir.path()));
    let _ = asciicast::export(dir.path(), &mut std::io::sink(), &asciicast::About::default());
});
