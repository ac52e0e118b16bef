//! The last lines of a text that comes in pieces.

/// Keeps no more than these lines, whatever passes through.
pub(crate) struct LastLines {
    wanted: usize,
    kept: Vec<u8>,
    /// How long the text may get before the lines that are not wanted are dropped.
    limit: usize,
}

/// How much is gathered before it is looked through.
const SPARE_LEN: usize = 1 << 20;

impl LastLines {
    pub(crate) fn new(wanted: usize) -> Self {
        Self { wanted, kept: Vec::new(), limit: SPARE_LEN }
    }

    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.kept.extend_from_slice(piece);
        if self.kept.len() > self.limit {
            let from = self.begin();
            self.kept.drain(..from);
            // Each byte is moved a bounded number of times, however long the lines are.
            self.limit = self.kept.len() * 2 + SPARE_LEN;
        }
    }

    /// The lines. What comes after the last line feed is one.
    pub(crate) fn take(self) -> Vec<u8> {
        let from = self.begin();
        let mut kept = self.kept;
        kept.drain(..from);
        kept
    }

    /// Where they begin.
    fn begin(&self) -> usize {
        let text = self.kept.strip_suffix(b"\n").unwrap_or(&self.kept);
        if self.wanted == 0 {
            return self.kept.len();
        }
        let breaks = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        breaks.map(|(at, _)| at + 1).nth(self.wanted - 1).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_lines_than_were_asked_for() {
        let last = |wanted, text: &[u8]| {
            let mut lines = LastLines::new(wanted);
            text.chunks(3).for_each(|piece| lines.add(piece));
            String::from_utf8(lines.take()).unwrap()
        };
        assert_eq!(last(2, b"one\ntwo\nthree\n"), "two\nthree\n");
        assert_eq!(last(2, b"one\ntwo\nprompt$ "), "two\nprompt$ ");
        assert_eq!(last(9, b"one\ntwo"), "one\ntwo");
        assert_eq!(last(0, b"one\ntwo"), "");
        assert_eq!(last(1, b""), "");
        let long: Vec<u8> = (0..600_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
        assert_eq!(last(2, &long), "599998\n599999\n");
    }
}
