//! Frames: what is encoded comes back whatever the pieces it arrives in, and nonsense is refused without harm.

use proptest::collection::vec;
use proptest::prelude::*;
use wharf_holder::frame::{self, Decoder, HEADER_LEN, Header, Kind, MAX_PAYLOAD_LEN};
use wharf_holder::wire::{Duplicate, sections, split_sections, strings};

fn kind() -> impl Strategy<Value = Kind> {
    (0..=u8::MAX).prop_filter_map("a known kind", Kind::known)
}

fn decoded(bytes: &[u8], cuts: &[usize]) -> Vec<(u8, u32, Vec<u8>)> {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    let mut at = 0;
    for cut in cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([bytes.len()]) {
        let cut = cut.max(at);
        decoder.push(&bytes[at..cut]);
        at = cut;
        while let Some((header, payload)) = decoder.next().expect("our own frames are legal") {
            frames.push((header.kind, header.seq, payload.to_vec()));
        }
        decoder.rest();
    }
    frames
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_frames(
        sent in vec((kind(), any::<u32>(), vec(any::<u8>(), 0..300)), 0..20),
        mut cuts in vec(any::<usize>(), 0..40),
    ) {
        let bytes: Vec<u8> = sent.iter().flat_map(|(kind, seq, payload)| frame::encode(*kind, *seq, payload)).collect();
        cuts.sort_unstable_by_key(|cut| cut % (bytes.len() + 1));
        let expected: Vec<_> = sent.into_iter().map(|(kind, seq, payload)| (kind as u8, seq, payload)).collect();
        prop_assert_eq!(decoded(&bytes, &cuts), expected);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(pieces in vec(vec(any::<u8>(), 0..64), 0..32)) {
        let mut decoder = Decoder::default();
        'all: for piece in &pieces {
            decoder.push(piece);
            loop {
                prop_assert!(decoder.missing() <= HEADER_LEN + u32::MAX as usize);
                match decoder.next() {
                    Ok(Some((header, payload))) => prop_assert_eq!(header.length as usize, payload.len()),
                    Ok(None) => break,
                    Err(_) => break 'all,
                }
            }
        }
    }

    #[test]
    fn sections_come_back_and_cut_ones_are_refused(parts in vec(vec(any::<u8>(), 0..50), 3), cut in any::<prop::sample::Index>()) {
        let parts: [Vec<u8>; 3] = parts.try_into().expect("three");
        let whole = sections(&[&parts[0], &parts[1], &parts[2]]);
        prop_assert_eq!(split_sections::<3>(&whole).expect("whole"), [&parts[0][..], &parts[1], &parts[2]]);
        let cut = cut.index(whole.len());
        prop_assert!(split_sections::<3>(&whole[..cut]).is_err());
    }
}

#[test]
fn a_hostile_length_is_refused_before_anything_is_kept() {
    let header = Header { kind: 4, seq: 1, length: (MAX_PAYLOAD_LEN + 1) as u32 };
    let mut decoder = Decoder::default();
    decoder.push(&header.encode());
    assert!(decoder.next().is_err());
}

#[test]
fn a_string_with_a_nul_is_no_argument() {
    assert!(strings([b"a\0b".as_slice()]).is_err());
    assert_eq!(strings([b"a".as_slice(), b""]).expect("fine"), b"a\0\0");
}

#[test]
fn what_is_renamed_here_keeps_its_name_on_the_wire() {
    let name = |duplicate: Duplicate| serde_json::to_value(duplicate).expect("plain data");
    assert_eq!(name(Duplicate::PaneTerminal), "seat");
    assert_eq!(name(Duplicate::PipeRead), "pipe-read");
}
