//! Output, taken apart and put in order.

use std::io::{self, Read, Write};

/// The most of an unfinished line that is remembered.
const MAX_LINE_LEN: usize = 64 << 10;
/// The most that is held to be compared.
pub(super) const MAX_HELD_LEN: usize = 4 << 20;

/// Which stream: standard output, where terminals have everything, or standard error.
pub(super) type Which = usize;

/// A piece of output.
pub(super) type Piece = (Which, Vec<u8>);

/// Reads output as it comes from an engine: plain where there is a terminal, in frames where there is none.
pub(super) struct Streams<R> {
    reader: R,
    plain: bool,
    /// What is left of the frame that is being read, and whose it is.
    frame: (Which, usize),
}

impl<R: Read> Streams<R> {
    pub(super) fn new(reader: R, plain: bool) -> Self {
        Self { reader, plain, frame: (0, 0) }
    }

    /// The next piece; none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece>> {
        while !self.plain && self.frame.1 == 0 {
            let mut head = [0_u8; 8];
            let first = self.reader.read(&mut head[..1])?;
            if first == 0 {
                return Ok(None);
            }
            self.reader.read_exact(&mut head[1..])?;
            let [kind, _, _, _, a, b, c, d] = head;
            self.frame = (usize::from(kind == 2), u32::from_be_bytes([a, b, c, d]) as usize);
        }
        let mut bytes = vec![0_u8; if self.plain { 16 << 10 } else { self.frame.1.min(16 << 10) }];
        let n = loop {
            match self.reader.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if n == 0 {
            return Ok(None);
        }
        bytes.truncate(n);
        self.frame.1 = self.frame.1.saturating_sub(n);
        Ok(Some((self.frame.0, bytes)))
    }
}

/// Where output goes, and how its last line stands.
pub(super) struct Sink<W> {
    to: [W; 2],
    unfinished: [Vec<u8>; 2],
}

impl<W: Write> Sink<W> {
    pub(super) fn new(to: [W; 2]) -> Self {
        Self { to, unfinished: [Vec::new(), Vec::new()] }
    }

    pub(super) fn put(&mut self, (which, bytes): &Piece) -> io::Result<()> {
        self.to[*which].write_all(bytes)?;
        self.to[*which].flush()?;
        let line = &mut self.unfinished[*which];
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => *line = bytes[end + 1..].to_vec(),
            None => line.extend_from_slice(bytes),
        }
        line.truncate(MAX_LINE_LEN);
        Ok(())
    }

    /// What was printed of a line that had no end yet. A log of whole lines has it once more.
    pub(super) fn unfinished(&self) -> [Vec<u8>; 2] {
        self.unfinished.clone()
    }
}

/// Takes away what a log of whole lines repeats of lines whose beginning was printed before.
pub(super) struct Resumed([Vec<u8>; 2]);

impl Resumed {
    pub(super) fn after(unfinished: [Vec<u8>; 2]) -> Self {
        Self(unfinished)
    }

    pub(super) fn pass(&mut self, (which, bytes): Piece) -> Piece {
        let known = std::mem::take(&mut self.0[which]);
        match bytes.strip_prefix(known.as_slice()) {
            Some(rest) => (which, rest.to_vec()),
            None => (which, bytes),
        }
    }
}

/// What of a log stands before a live stream: the log without what that stream begins with.
pub(super) fn before(log: Vec<Piece>, live: &[Piece]) -> Vec<Piece> {
    let joined = |pieces: &[Piece], wanted: Which| -> Vec<u8> {
        pieces.iter().filter(|(which, _)| *which == wanted).flat_map(|(_, bytes)| bytes.clone()).collect()
    };
    let mut doubled = [0, 1].map(|which| overlap(&joined(&log, which), &joined(live, which)));
    let mut kept: Vec<Piece> = Vec::new();
    for (which, mut bytes) in log.into_iter().rev() {
        let cut = doubled[which].min(bytes.len());
        doubled[which] -= cut;
        bytes.truncate(bytes.len() - cut);
        if !bytes.is_empty() {
            kept.push((which, bytes));
        }
    }
    kept.reverse();
    kept
}

/// How many bytes the end of one and the beginning of the other have in common, or the whole of the other.
fn overlap(first: &[u8], second: &[u8]) -> usize {
    // The longest beginning of `second` that ends here, byte by byte: Knuth, Morris and Pratt.
    let second = &second[..second.len().min(first.len())];
    if second.is_empty() {
        return 0;
    }
    let mut falls = vec![0_usize; second.len()];
    let mut matched = 0;
    for at in 1..second.len() {
        while matched > 0 && second[at] != second[matched] {
            matched = falls[matched - 1];
        }
        matched += usize::from(second[at] == second[matched]);
        falls[at] = matched;
    }
    matched = 0;
    for (at, byte) in first.iter().enumerate() {
        while matched > 0 && (matched == second.len() || *byte != second[matched]) {
            matched = falls[matched - 1];
        }
        matched += usize::from(*byte == second[matched]);
        // All of it, and not at the end: what follows in the first is older than what the second goes on with.
        if matched == second.len() && at + 1 < first.len() {
            matched = falls[matched - 1];
        }
    }
    matched
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(text: &str) -> Piece {
        (0, text.as_bytes().to_vec())
    }

    #[test]
    fn frames_are_taken_apart_and_plain_output_is_left_alone() {
        let mut bytes = Vec::new();
        for (kind, text) in [(1_u8, "one"), (2, "two"), (1, ""), (1, "three")] {
            bytes.extend([kind, 0, 0, 0]);
            bytes.extend((text.len() as u32).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        for cut in 0..bytes.len() {
            let mut streams = Streams::new(bytes[..cut].chain(&bytes[cut..]), false);
            let mut seen = [Vec::new(), Vec::new()];
            while let Some((which, bytes)) = streams.next().unwrap() {
                seen[which].extend(bytes);
            }
            assert_eq!(seen, [b"onethree".to_vec(), b"two".to_vec()], "{cut}");
        }
        let mut plain = Streams::new(&bytes[..], true);
        assert_eq!(plain.next().unwrap(), Some((0, bytes.clone())));
        assert_eq!(plain.next().unwrap(), None);
    }

    #[test]
    fn the_past_ends_where_the_present_begins() {
        let join = |log: &str, live: &str| before(vec![out(log)], &[out(live)]);
        assert_eq!(join("a\nb\n", "c\n"), [out("a\nb\n")]);
        assert_eq!(join("a\nb\n", "b\nc"), [out("a\n")]);
        assert_eq!(join("hello world\n", "world\nnext"), [out("hello ")]);
        assert_eq!(join("a\nb\n", "a\nb\nc\n"), []);
        assert_eq!(join("b\na\n", "b"), [out("b\na\n")]);
        assert_eq!(join("", "b"), []);
        assert_eq!(join("b", ""), [out("b")]);
        assert_eq!(join("xaab", "aabaab"), [out("x")]);
        let both = before(
            vec![out("o1\n"), (1, b"e1\n".to_vec()), out("o2\n")],
            &[out("o2\n"), (1, b"e1\n".to_vec())],
        );
        assert_eq!(both, [out("o1\n")]);
    }

    #[test]
    fn the_longest_overlap_is_the_one_that_a_plain_search_finds() {
        let words: Vec<Vec<u8>> = (0..729_u32)
            .map(|number| (0..6).map(|digit| b'a' + (number / 3_u32.pow(digit) % 3) as u8).collect())
            .collect();
        for (first, second) in words.iter().zip(words.iter().rev()).chain(words.iter().zip(&words)) {
            let plain = (0..=first.len().min(second.len())).rev().find(|n| first.ends_with(&second[..*n]));
            assert_eq!(Some(overlap(first, second)), plain, "{first:?} {second:?}");
        }
    }

    #[test]
    fn a_line_that_was_begun_is_not_begun_again() {
        let mut sink = Sink::new([Vec::new(), Vec::new()]);
        sink.put(&out("one\ntw")).unwrap();
        sink.put(&out("o th")).unwrap();
        let mut resumed = Resumed::after(sink.unfinished());
        assert_eq!(resumed.pass(out("two three\n")), out("ree\n"));
        assert_eq!(resumed.pass(out("two")), out("two"));
        let mut resumed = Resumed::after(sink.unfinished());
        assert_eq!(resumed.pass(out("other\n")), out("other\n"));
    }
}
