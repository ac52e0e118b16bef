//! A log that may have gaps: everything in it is in order, and nothing is missing that it does not tell of.

use std::collections::HashMap;

use anyhow::{Context, Result};
use wharf_tool_support::instance::Instance;

use super::chatter::Said;
use crate::counter::{LINE_LEN, number};

/// What an agent's log holds and what it says is gone.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) lines: u64,
    pub(super) gone: u64,
    pub(super) gaps: u64,
    /// The last line, where the agent said that it ends.
    pub(super) end: Option<u64>,
    pub(super) faults: Vec<String>,
    answers: HashMap<String, u32>,
}

impl Ledger {
    /// Reads the log of a session.
    pub(super) fn of(instance: &Instance, name: &str) -> Result<Self> {
        let read = instance.try_run(&["logs", name])?;
        let told = String::from_utf8_lossy(&read.stderr).into_owned();
        let mut gaps = Vec::new();
        for line in told.lines().filter(|line| line.contains(" bytes are gone here, from ")) {
            let number = |word: &str| line.split(word).nth(1)?.split_whitespace().next()?.parse().ok();
            gaps.push(number("from ").zip(number(" to ")).context("a gap without numbers")?);
        }
        let mut ledger = Self::read(&read.stdout, &gaps);
        if !read.status.success() {
            ledger.faults.push(format!("its log cannot be read: {}", told.trim_end()));
        }
        Ok(ledger)
    }

    /// Takes bytes as they are shown, and the gaps between them by their offsets in the log.
    fn read(shown: &[u8], gaps: &[(u64, u64)]) -> Self {
        let mut ledger = Self { gaps: gaps.len() as u64, ..Self::default() };
        let (mut at, mut rest) = (0_u64, shown);
        // The number of the next line, and the bytes since the last line that was whole.
        let (mut next, mut since) = (1_u64, 0_u64);
        let mut after_gap = false;
        for (from, to) in gaps.iter().copied().chain([(u64::MAX, u64::MAX)]) {
            let here = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX).min(rest.len());
            if from != u64::MAX && (here as u64) < from.saturating_sub(at) {
                ledger.faults.push(format!("a gap at {from}, and only {} bytes before it", at + here as u64));
            }
            let (piece, more) = rest.split_at(here);
            ledger.piece(piece, from == u64::MAX, &mut after_gap, &mut next, &mut since);
            rest = more;
            if from != u64::MAX {
                (at, after_gap) = (to, true);
                ledger.gone += to - from;
                since += to - from;
            }
        }
        ledger
    }

    fn piece(&mut self, piece: &[u8], last: bool, after_gap: &mut bool, next: &mut u64, since: &mut u64) {
        let lines: Vec<&[u8]> = piece.split_inclusive(|byte| *byte == b'\n').collect();
        for (at, line) in lines.iter().enumerate() {
            let (first, cut) = (at == 0 && *after_gap, at + 1 == lines.len() && !line.ends_with(b"\n"));
            let text = String::from_utf8_lossy(line);
            if let Some(number) = number(line) {
                self.lines += 1;
                if number < *next {
                    self.faults.push(format!("line {number} came again, or {next} too early"));
                } else if number > *next {
                    let missing = (number - *next) * LINE_LEN as u64;
                    // What is gone has room for them: else they were lost without a word.
                    if missing > *since {
                        self.faults.push(format!("lines {next} to {} are missing: {missing} bytes, and {since} are told to be gone", number - 1));
                    }
                }
                (*next, *since, *after_gap) = (number + 1, 0, false);
            } else if let (Some(answer), false) = (text.strip_prefix("got "), cut) {
                *self.answers.entry(answer.trim_end().to_owned()).or_default() += 1;
            } else if let (Some(end), false) = (text.strip_prefix("end "), cut) {
                self.end = end.trim_end().parse().ok();
                let missing = self.end.map_or(0, |end| (end + 1).saturating_sub(*next)) * LINE_LEN as u64;
                if missing > *since {
                    self.faults.push(format!("{missing} bytes are missing before the end, {since} are told"));
                }
            } else if first || cut && !last {
                // The halves of lines that a gap has cut.
                *since += line.len() as u64;
            } else if !cut {
                let shown = String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned();
                self.faults.push(format!("not a whole line: {shown:?}"));
            }
        }
    }

    /// What was typed and acknowledged is answered once, or its answer is in a gap; never twice.
    pub(super) fn check_answers<'a>(&mut self, said: impl Iterator<Item = &'a Said>, lost: bool) {
        for said in said {
            let times = self.answers.get(&said.text).copied().unwrap_or(0);
            if times > 1 || times == 0 && said.acknowledged && self.gone == 0 && !lost {
                let word = if said.acknowledged { "acknowledged" } else { "refused" };
                self.faults.push(format!("{:?} was {word} and answered {times} times", said.text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::numbered;

    fn lines(numbers: std::ops::RangeInclusive<u64>) -> Vec<u8> {
        numbers.flat_map(numbered).collect()
    }

    #[test]
    fn what_is_told_to_be_gone_is_no_fault_and_all_else_is() {
        let whole = [lines(1..=9), b"got a\nend 9\n".to_vec()].concat();
        let ledger = Ledger::read(&whole, &[]);
        assert_eq!((ledger.lines, ledger.end, ledger.faults), (9, Some(9), vec![]));
        // From the middle of the third line to the middle of the seventh.
        let cut = [&whole[..250], &whole[650..]].concat();
        let ledger = Ledger::read(&cut, &[(250, 650)]);
        assert_eq!((ledger.lines, ledger.gone, ledger.faults), (4, 400, vec![]));
        assert_eq!(Ledger::read(&cut, &[]).faults.len(), 2, "a cut line, and lines that are missing");
        assert_eq!(Ledger::read(&cut, &[(250, 350)]).faults.len(), 1, "more is missing than is told");
        let silent = [lines(1..=3), lines(5..=9)].concat();
        assert_eq!(Ledger::read(&silent, &[]).faults.len(), 1);
        let doubled = [lines(1..=3), lines(3..=9)].concat();
        assert_eq!(Ledger::read(&doubled, &[]).faults.len(), 1);
        // A front that was dropped, as a long log does it.
        assert_eq!(Ledger::read(&whole[450..], &[(0, 450)]).faults, Vec::<String>::new());
        assert_eq!(Ledger::read(b"end 5\n", &[]).faults.len(), 1);
    }

    #[test]
    fn answers_come_once_or_are_in_a_gap() {
        let said = |acknowledged| Said { text: "a".into(), acknowledged };
        let faults = |log: &[u8], gaps: &[(u64, u64)], acknowledged| {
            let mut ledger = Ledger::read(log, gaps);
            ledger.check_answers([said(acknowledged)].iter(), false);
            ledger.faults.len()
        };
        assert_eq!(faults(b"got a\n", &[], true), 0);
        assert_eq!(faults(b"", &[], true), 1);
        assert_eq!(faults(b"", &[], false), 0);
        assert_eq!(faults(b"", &[(0, 6)], true), 0);
        assert_eq!(faults(b"got a\ngot a\n", &[], false), 1);
    }
}
