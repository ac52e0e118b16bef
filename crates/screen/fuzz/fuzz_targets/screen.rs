//! Any bytes, in any pieces, at any sizes: nothing panics, a repaint and a checkpoint show the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_model::Size;
use wharf_screen::{Format, Screen, What};
use wharf_sequences::Queries;

fuzz_target!(|data: &[u8]| {
    let Some((head, output)) = data.split_first_chunk::<5>() else { return };
    let size = |cols: u8, rows: u8| Size { cols: u16::from(cols % 40), rows: u16::from(rows % 12) };
    let mut whole = Screen::new(size(head[0], head[1]), 30);
    let mut cut = Screen::new(size(head[0], head[1]), 30);
    let middle = usize::from(head[2]).min(output.len());
    let _ = whole.feed(output);
    let mut queries = Queries::new();
    for piece in [&output[..middle], &output[middle..]] {
        let asked = queries.scan(piece);
        let heard = cut.feed(piece);
        assert!(asked || heard.replies.is_empty(), "an answer without a question");
    }
    let look = |screen: &Screen| screen.capture(What::All, Format::Json);
    assert_eq!(look(&cut), look(&whole));
    whole.resize(size(head[3], head[4]));
    let _ = whole.feed(output);
    let restored = Screen::restore(&whole.checkpoint()).expect("a checkpoint");
    assert_eq!(look(&restored), look(&whole));
    let mut painted = Screen::new(whole.size(), 30);
    assert!(painted.feed(&whole.repaint()).replies.is_empty(), "a repaint asks nothing");
    assert_eq!(painted.rows(), whole.rows());
    let _ =
        (whole.since(""), whole.capture(What::Last(5), Format::Html), whole.capture(What::All, Format::Ansi));
});
