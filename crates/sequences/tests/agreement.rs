//! The old scanners of the screen model and of the command line, beside the new one: on any bytes in any pieces they agree.

use proptest::prelude::*;
use wharf_sequences::{End, Osc, Rules, Scanner, Sink};

#[allow(dead_code)]
#[path = "../../cli/src/filter.rs"]
mod filter;
#[allow(dead_code)]
#[path = "../../cli/src/scanner.rs"]
mod old_cli;
#[allow(dead_code)]
#[path = "../../screen/src/scanner.rs"]
mod old_screen;

/// What a model hears, with the place of each event in the whole output.
#[derive(Default, Debug, PartialEq)]
struct Heard {
    base: usize,
    events: Vec<(usize, String)>,
}

impl Heard {
    fn note(&mut self, at: usize, event: String) {
        self.events.push((self.base + at, event));
    }
}

impl old_screen::Sink for Heard {
    fn text(&mut self, bytes: &[u8], at: usize) {
        self.note(at, format!("text {bytes:x?}"));
    }
    fn escape(&mut self, body: &[u8], at: usize) {
        self.note(at, format!("escape {body:x?}"));
    }
    fn csi(&mut self, whole: &[u8], at: usize) {
        self.note(at, format!("csi {whole:x?}"));
    }
    fn osc(&mut self, body: &[u8], bell: bool, at: usize) {
        self.note(at, format!("osc {body:x?} {bell}"));
    }
    fn dcs(&mut self, body: &[u8], at: usize) {
        self.note(at, format!("dcs {body:x?}"));
    }
}

impl Sink for Heard {
    const RULES: Rules = Rules::MODEL;
    fn text(&mut self, bytes: &[u8], at: usize) {
        self.note(at, format!("text {bytes:x?}"));
    }
    fn control(&mut self, byte: u8, at: usize) {
        if byte != 0x7f {
            self.note(at, format!("text {:x?}", [byte]));
        }
    }
    fn escape(&mut self, body: &[u8], at: usize) {
        self.note(at, format!("escape {body:x?}"));
    }
    fn csi(&mut self, whole: &[u8], at: usize) {
        self.note(at, format!("csi {whole:x?}"));
    }
    fn osc(&mut self, osc: &Osc<'_>, at: usize) {
        assert_eq!(&osc.introducer, b"\x1b]");
        self.note(at, format!("osc {:x?} {}", osc.body, osc.end == End::Bell));
    }
    fn dcs(&mut self, body: &[u8], at: usize) {
        self.note(at, format!("dcs {body:x?}"));
    }
}

/// Lets some of everything pass, and notes what it was asked.
#[derive(Default, Debug, PartialEq)]
struct Some_(Vec<String>);

impl Some_ {
    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.0.push(format!("control {byte:x}"));
        if byte.is_multiple_of(2) {
            out.push(byte);
        }
    }
    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.0.push(format!("byte {byte:x}"));
        out.push(byte);
    }
    fn sequence(&mut self, what: &str, body: &[u8]) -> bool {
        self.0.push(format!("{what} {body:x?}"));
        body.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) % 3 > 0
    }
}

macro_rules! policy {
    ($policy:path) => {
        impl $policy for Some_ {
            fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
                Some_::control(self, byte, out);
            }
            fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
                Some_::text(self, byte, out);
            }
            fn escape(&mut self, body: &[u8]) -> bool {
                self.sequence("escape", body)
            }
            fn csi(&mut self, body: &[u8]) -> bool {
                self.sequence("csi", body)
            }
            fn osc(&mut self, body: &[u8]) -> bool {
                self.sequence("osc", body)
            }
            fn dcs(&mut self, body: &[u8]) -> bool {
                self.sequence("dcs", body)
            }
        }
    };
}
policy!(old_cli::Policy);
policy!(filter::Policy);

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let bit = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        prop::collection::vec(
            prop::sample::select(
                &b"\x1b\x1b\x1b[]PkX^_\\\\\x07\x18\x1a\x05\n\x7f\xc2\xc2\x9b\x9d\x90\x9c\x98\x9f\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff0;?>q$ n%mZ"[..]
            ),
            0..12
        ),
        prop::sample::select(vec![
            b"\x1b[".to_vec(),
            b"\x1b]".to_vec(),
            b"\x1bP".to_vec(),
            b"\x1b_".to_vec(),
            b"\x1bk".to_vec(),
            b"\x1b\\".to_vec(),
            b"\xc2\x9b".to_vec(),
            b"\xc2\x9d".to_vec(),
            b"\xc2\x90".to_vec(),
            b"\xc2\x9c".to_vec(),
            b"6n".to_vec(),
            b"10;?".to_vec(),
            b"1;2q".to_vec(),
            b"$q".to_vec(),
            b"0;t".to_vec(),
            "text é漢😀".as_bytes().to_vec(),
            vec![b'1'; 600],
            vec![b' '; 20],
        ]),
    ];
    prop::collection::vec(bit, 0..40).prop_map(|bits| bits.concat())
}

fn long() -> impl Strategy<Value = Vec<u8>> {
    let run = (0..9_usize, prop::sample::select(&b"1;x \x01\xa0"[..]))
        .prop_map(|(eights, byte)| vec![byte; eights * 10_000]);
    prop::collection::vec((hostile(), run), 0..3).prop_map(|parts| {
        parts.into_iter().flat_map(|(hostile, run)| [hostile, run]).collect::<Vec<_>>().concat()
    })
}

fn pieces(bytes: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
    for cut in &mut cuts {
        *cut %= bytes.len() + 1;
    }
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn agree(bytes: &[u8], cuts: Vec<usize>) -> Result<(), TestCaseError> {
    let (mut old, mut new) = (old_screen::Scanner::default(), Scanner::default());
    let (mut old_heard, mut new_heard) = (Heard::default(), Heard::default());
    let (mut old_filter, mut new_filter) =
        (old_cli::Scanner::new(Some_::default()), filter::Filter::new(Some_::default()));
    let (mut old_out, mut new_out) = (Vec::new(), Vec::new());
    for piece in pieces(bytes, cuts) {
        old.feed(piece, &mut old_heard);
        new.feed(piece, &mut new_heard);
        old_heard.base += piece.len();
        new_heard.base += piece.len();
        prop_assert_eq!(&old_heard, &new_heard);
        prop_assert_eq!(old.rests(), new.rests());
        prop_assert_eq!(old.unfinished(), new.unfinished());
        prop_assert_eq!(serde_json::to_string(&old)?, serde_json::to_string(&new)?);
        old_filter.feed(piece, &mut old_out);
        new_filter.feed(piece, &mut new_out);
        let (old_asked, new_asked) = (&old_filter.policy().0, &new_filter.policy().0);
        let differ = old_asked.iter().zip(new_asked).position(|(old, new)| old != new);
        if let Some(at) = differ {
            let end = (at + 4).min(old_asked.len()).min(new_asked.len());
            prop_assert!(false, "asked {:?} not {:?}", &new_asked[at..end], &old_asked[at..end]);
        }
        prop_assert_eq!(old_asked.len(), new_asked.len());
        prop_assert!(old_out == new_out);
        prop_assert_eq!(old_filter.skips(), new_filter.drops());
    }
    Ok(())
}

proptest! {
    #[test]
    fn usual_lengths(bytes in hostile(), cuts in prop::collection::vec(any::<usize>(), 0..8)) {
        agree(&bytes, cuts)?;
    }

    #[test]
    fn great_lengths(bytes in long(), cuts in prop::collection::vec(any::<usize>(), 0..8)) {
        agree(&bytes, cuts)?;
    }
}
