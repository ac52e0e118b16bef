//! Checks an agent's log line by line: what was acknowledged is answered exactly once.

use std::collections::HashMap;

use super::chatter::Said;
use crate::counter::number;

/// What one agent's log holds, line by line.
#[derive(Default)]
pub(super) struct Account {
    pub(super) lines: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    answers: HashMap<String, u32>,
    end: Option<u64>,
    strange: Vec<String>,
}

impl Account {
    pub(super) fn of(log: &[u8]) -> Self {
        let mut account = Self::default();
        let mut next = 1;
        for line in log.split_inclusive(|byte| *byte == b'\n') {
            if account.end.is_some() {
                account.strange(line, "after the end");
                continue;
            }
            let text = String::from_utf8_lossy(line);
            if let Some(answer) = text.strip_prefix("got ") {
                *account.answers.entry(answer.trim_end().to_owned()).or_default() += 1;
            } else if let Some(end) = text.strip_prefix("end ") {
                account.end = end.trim_end().parse().ok();
            } else if let Some(number) = number(line) {
                account.lines += 1;
                if number >= next {
                    account.lost += number - next;
                    next = number + 1;
                } else {
                    account.doubled += 1;
                }
            } else {
                account.strange(line, "not whole");
            }
        }
        account
    }

    fn strange(&mut self, line: &[u8], why: &str) {
        self.strange.push(format!("{why}: {:?}", String::from_utf8_lossy(&line[..line.len().min(40)])));
    }

    /// Everything that is not as it should be. What was typed and acknowledged is answered exactly once; what was
    /// not acknowledged, at most once.
    pub(super) fn faults<'a>(&self, said: impl Iterator<Item = &'a Said>) -> Vec<String> {
        let mut faults = self.strange.clone();
        if self.lost > 0 {
            faults.push(format!("{} lines are lost", self.lost));
        }
        if self.doubled > 0 {
            faults.push(format!("{} lines are doubled", self.doubled));
        }
        if self.end != Some(self.lines) {
            faults.push(format!("the last line says {:?}, and {} lines are there", self.end, self.lines));
        }
        if self.answers.get("still there") != Some(&1) {
            faults.push("the last question was not answered once".to_owned());
        }
        for said in said {
            match (said.acknowledged, self.answers.get(&said.text).copied().unwrap_or(0)) {
                (_, 1) | (false, 0) => {}
                (acknowledged, times) => {
                    let word = if acknowledged { "acknowledged" } else { "refused" };
                    faults.push(format!("{:?} was {word} and arrived {times} times", said.text));
                }
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::numbered;

    fn log(numbers: &[u64], rest: &str) -> Vec<u8> {
        let mut log: Vec<u8> = numbers.iter().flat_map(|number| numbered(*number)).collect();
        log.extend_from_slice(rest.as_bytes());
        log
    }

    fn faults(log: &[u8], said: &[Said]) -> Vec<String> {
        Account::of(log).faults(said.iter())
    }

    #[test]
    fn a_whole_log_has_no_faults() {
        let said = [
            Said { text: "ping 1".into(), acknowledged: true },
            Said { text: "ping 2".into(), acknowledged: false },
        ];
        let log = log(&[1, 2, 3], "got ping 1\ngot still there\nend 3\n");
        assert_eq!(faults(&log, &said), Vec::<String>::new());
    }

    #[test]
    fn everything_else_is_a_fault() {
        let end = "got still there\nend 3\n";
        assert_eq!(Account::of(&log(&[1, 3], end)).lost, 1);
        assert_eq!(Account::of(&log(&[1, 2, 2, 3], end)).doubled, 1);
        assert_eq!(faults(&log(&[1, 2, 3], "got still there\n"), &[]).len(), 1, "no end");
        assert_eq!(faults(&log(&[1, 2, 3], "end 3\n"), &[]).len(), 1, "no answer");
        assert_eq!(faults(&log(&[1, 2, 3], "got still there\nxx\nend 3\n"), &[]).len(), 1, "a broken line");
        assert_eq!(faults(&log(&[1, 2, 3], &format!("{end}x")), &[]).len(), 1, "something after the end");
        let said = [Said { text: "ping".into(), acknowledged: true }];
        assert_eq!(faults(&log(&[1, 2, 3], end), &said).len(), 1, "acknowledged and not there");
        let twice = format!("got ping\ngot ping\n{end}");
        assert_eq!(faults(&log(&[1, 2, 3], &twice), &said).len(), 1, "twice");
    }
}
