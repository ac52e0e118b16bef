//! Makes old output safe to show again: what would make the user's terminal answer is taken out.
//!
//! An answer would be typed into the agent, which asked long ago. Live output is never touched.

use wharf_sequences::{Csi, control_question, csi_question, escape_question, osc_question};

use crate::filter::{Filter, Policy};

/// A filter for output from the log.
pub(crate) struct Replay {
    filter: Filter<Quiet>,
    live: bool,
}

impl Replay {
    pub(crate) fn new() -> Self {
        Self { filter: Filter::new(Quiet::default()), live: false }
    }

    /// Old output: questions and reports are dropped.
    pub(crate) fn old(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.filter.feed(bytes, out);
    }

    /// Live output: passes as it is. A sequence that began in the old part and ends here is live.
    pub(crate) fn live(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if !self.live {
            self.filter.release(out);
            self.live = true;
            self.filter.policy().settle(out);
        }
        let mut rest = bytes;
        while self.filter.drops() {
            let Some((first, more)) = rest.split_first() else { return };
            self.filter.feed(std::slice::from_ref(first), out);
            rest = more;
        }
        out.extend_from_slice(rest);
    }
}

/// Drops whatever a terminal answers, and what acts on more than the screen.
#[derive(Default)]
struct Quiet {
    /// Modes that make a terminal report at once when they are set: only the last setting is replayed.
    focus: bool,
    in_band_size: bool,
}

impl Quiet {
    fn settle(&self, out: &mut Vec<u8>) {
        if self.focus {
            out.extend_from_slice(b"\x1b[?1004h");
        }
        if self.in_band_size {
            out.extend_from_slice(b"\x1b[?2048h");
        }
    }
}

impl Policy for Quiet {
    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        // A bell of yesterday is no bell.
        if control_question(byte).is_none() && byte != 0x07 {
            out.push(byte);
        }
    }

    fn escape(&mut self, body: &[u8]) -> bool {
        // The end of a string that is none says nothing.
        escape_question(body).is_none() && body != b"\\"
    }

    fn csi(&mut self, body: &[u8]) -> bool {
        let Some(csi) = Csi::parse(body) else { return false };
        if csi_question(&csi).is_some() {
            return false;
        }
        match (csi.marker, csi.intermediates, csi.action) {
            // Printing.
            (_, b"", b'i') => false,
            // Of the window's operations only the title stack is about what is shown.
            (0, b"", b't') => {
                matches!(csi.parameters.split(|&byte| byte == b';').next(), Some(b"22" | b"23"))
            }
            (b'?', b"", b'h' | b'l') => self.mode(csi.parameters, csi.action == b'h'),
            _ => true,
        }
    }

    fn osc(&mut self, body: &[u8]) -> bool {
        let digits = body.split(|&byte| byte == b';').next();
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
        // Titles, the directory, links, colours, the shell's marks.
        matches!(number, Some(0..=2 | 4 | 5 | 7 | 8 | 10..=19 | 104..=119 | 133))
            && osc_question(body).is_none()
    }

    fn dcs(&mut self, head: &[u8]) -> bool {
        // Sixel pictures pass; everything else asks, or defines keys and fonts.
        head.split_last().is_some_and(|(&last, rest)| {
            last == b'q' && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
        })
    }
}

impl Quiet {
    /// Remembers the two modes that report at once; a sequence that sets only them is dropped.
    fn mode(&mut self, parameters: &[u8], on: bool) -> bool {
        let mut others = false;
        let mut held = false;
        for parameter in parameters.split(|&byte| byte == b';') {
            match parameter {
                b"1004" => (self.focus, held) = (on, true),
                b"2048" => (self.in_band_size, held) = (on, true),
                _ => others = true,
            }
        }
        // A sequence with several modes passes when it switches them off: nothing is reported then.
        !held || (others && !on)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut replay, mut out) = (Replay::new(), Vec::new());
        for piece in pieces {
            replay.old(piece, &mut out);
        }
        out
    }

    #[test]
    fn questions_are_dropped() {
        let questions: &[&[u8]] = &[
            b"\x1b[6n",
            b"\x1b[5n",
            b"\x1b[?6n",
            b"\x1b[?996n",
            b"\x1b[c",
            b"\x1b[0c",
            b"\x1b[>c",
            b"\x1b[=c",
            b"\x1b[>q",
            b"\x1b[>0q",
            b"\x1b[?2004$p",
            b"\x1b[4$p",
            b"\x1b[?u",
            b"\x1b[14t",
            b"\x1b[18t",
            b"\x1b[21t",
            b"\x1b[x",
            b"\x1b[1x",
            b"\x1b]10;?\x07",
            b"\x1b]11;?\x1b\\",
            b"\x1b]4;1;?\x07",
            b"\x1b]4;1;red;2;?\x07",
            b"\x1b]52;c;?\x07",
            b"\x1b]52;c;aGk=\x07",
            b"\x1b]7501;?\x07",
            b"\x1b]12;?\xc2\x9c",
            b"\x1bP$qm\x1b\\",
            b"\x1bP+q544e\x1b\\",
            b"\x05",
            b"\x1bZ",
            b"\xc2\x9b6n",
            b"\xc2\x9d10;?\x07",
            b"\x1b_Gi=1,a=q;AAAA\x1b\\",
            b"\x1b[1;1;1;1;1;1*y",
            b"\x1b[1$w",
            b"\x1b['|",
            b"\x1b[?4m",
            b"\x1b[?1;1;0S",
            b"\x1b]1337;ReportCellSize\x07",
            b"\x1b]60\x07",
            b"\x1b]21;fg=?\x07",
            b"\x1b[5i",
            b"\x1b[8;50;100t",
            b"\x1b[220t",
            b"\x1b[?1004h",
            b"\x1b[?2048h",
            b"\x1b[\x056n",
            b"\x1bPtmux;\x1b\x1b[6n\x1b\\",
        ];
        for question in questions {
            let around = [b"a".as_slice(), question, b"b"].concat();
            let shown = filter(&[&around]);
            // What is left of a broken string may be text, but nothing that a terminal acts on.
            assert!(!shown.contains(&0x1b) && !shown.contains(&0x05), "{question:?} gave {shown:?}");
            assert!(shown.starts_with(b"a") && shown.ends_with(b"b"), "{question:?} gave {shown:?}");
        }
    }

    #[test]
    fn what_is_shown_passes() {
        let passing: &[&[u8]] = &[
            b"plain\r\n\ttext",
            "é漢🚢".as_bytes(),
            b"\x1b[1;31mred\x1b[0m",
            b"\x1b[2J\x1b[H",
            b"\x1b[?1049h",
            b"\x1b[?2004h",
            b"\x1b[2 q",
            b"\x1b[>1u",
            b"\x1b[<u",
            b"\x1b[!p",
            b"\x1b]0;title\x07",
            b"\x1b]8;;http://x/?a\x1b\\link\x1b]8;;\x1b\\",
            b"\x1b]11;#000000\x07",
            b"\x1b(B",
            b"\x1bc",
            b"\x1b7",
            b"\x1bPq#0;2;0;0;0#0~~@@\x1b\\",
            b"\x1b[22;0t",
            b"\x1b]133;A\x07",
            b"\x1b[>4;2m",
            b"\xff\xfe",
        ];
        for bytes in passing {
            assert_eq!(filter(&[bytes]), *bytes, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn live_output_is_untouched_and_a_question_cut_by_the_border_is_live() {
        let (mut replay, mut out) = (Replay::new(), Vec::new());
        replay.old(b"\x1b[6nold\x1b[", &mut out);
        replay.live(b"6n\x1b]10;?\x07", &mut out);
        assert_eq!(out, b"old\x1b[6n\x1b]10;?\x07");
    }

    #[test]
    fn the_border_may_cut_anything_that_passes() {
        let bytes =
            "\x1b]0;t\x1b\\é\x1b[1m\x1b(B\u{9d}2;u\u{9c}\x1bPq#0~~\x1b\\\u{9b}m\x1b]8;;x\x07".as_bytes();
        for border in 0..=bytes.len() {
            let (mut replay, mut out) = (Replay::new(), Vec::new());
            replay.old(&bytes[..border], &mut out);
            replay.live(&bytes[border..], &mut out);
            assert_eq!(out, bytes, "cut at {border}");
        }
    }

    #[test]
    fn a_dropped_string_ends_after_the_border() {
        let (mut replay, mut out) = (Replay::new(), Vec::new());
        replay.old(b"\x1bP$q", &mut out);
        replay.live(b"m\x1b\\then", &mut out);
        assert_eq!(out, b"then");
    }

    #[test]
    fn focus_reports_are_switched_on_once() {
        let (mut replay, mut out) = (Replay::new(), Vec::new());
        replay.old(b"\x1b[?1004h\x1b[?1004l\x1b[?1004h", &mut out);
        assert_eq!(out, b"");
        replay.live(b"x", &mut out);
        assert_eq!(out, b"\x1b[?1004hx");
    }

    #[test]
    fn dropping_bytes_never_joins_others_to_a_control() {
        // Without the ENQ the title would end at once, and a question would follow it.
        let shown = filter(&[b"\x1b]0;t\xc2\x05\x9c\xc2\x05\x9b6n\x07"]);
        assert_eq!(shown, b"\x1b]0;t6n\x07");
        assert_eq!(filter(&[b"\xc2\x1b[6n\x9b6n"]), b"6n");
    }

    #[test]
    fn endless_sequences_are_bounded() {
        let mut endless = b"\x1b[".to_vec();
        endless.extend(std::iter::repeat_n(b'1', 1 << 20));
        endless.extend_from_slice(b"mend");
        assert_eq!(filter(&[&endless]), b"end");
        let mut string = b"\x1b]0;".to_vec();
        string.extend(std::iter::repeat_n(b'x', 1 << 20));
        let shown = filter(&[&string]);
        assert!(!shown.is_empty() && !shown.contains(&0x1b));
    }

    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let bit = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..6),
            prop::sample::select(vec![
                b"\x1b[".to_vec(),
                b"\x1b]".to_vec(),
                b"\x1bP".to_vec(),
                b"\x1b_".to_vec(),
                b"\x1b".to_vec(),
                b"\x1b\\".to_vec(),
                b"\x07".to_vec(),
                b"6n".to_vec(),
                b"10;?".to_vec(),
                b"52;c;?".to_vec(),
                b"\xc2".to_vec(),
                b"\x9b".to_vec(),
                b"\x9c".to_vec(),
                b"q".to_vec(),
                b"$q".to_vec(),
                b"?1004h".to_vec(),
                b"0;t".to_vec(),
                b"\x18".to_vec(),
                b"text".to_vec(),
            ]),
        ];
        prop::collection::vec(bit, 0..40).prop_map(|bits| bits.concat())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same(bytes in hostile(), cuts in prop::collection::vec(0usize..200, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(filter(&[&bytes]), filter(&pieces));
        }

        #[test]
        fn what_passed_once_passes_again(bytes in hostile()) {
            let once = filter(&[&bytes]);
            prop_assert_eq!(filter(&[&once]), once);
        }

        #[test]
        fn no_cursor_report_is_ever_asked(bytes in hostile()) {
            let shown = filter(&[&bytes]);
            prop_assert!(!shown.windows(4).any(|window| window == b"\x1b[6n"));
            prop_assert!(!shown.windows(4).any(|window| window == b"\xc2\x9b6n"));
            prop_assert!(!shown.contains(&0x05));
        }
    }
}
