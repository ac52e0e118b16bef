//! Defines the exit record and its short form for a full disk.

use serde::{Deserialize, Serialize};

use crate::{Millis, Offset};

/// How a session ended. Written once, by its holder, after its output was drained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The command's exit code; absent when a signal ended it or when nobody could read it.
    #[serde(default)]
    pub code: Option<i32>,
    /// The signal that ended the command.
    #[serde(default)]
    pub signal: Option<i32>,
    /// Whether the kernel killed it for want of memory.
    #[serde(default)]
    pub oom: bool,
    /// The limit of its processes that ended it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Why it ended.
    #[serde(default)]
    pub reason: Reason,
    /// Who asked for the end, in the asker's words; absent when it ended by itself.
    #[serde(default)]
    pub by: Option<String>,
    /// When the command started.
    #[serde(default)]
    pub started: Millis,
    /// When the command ended.
    #[serde(default)]
    pub ended: Millis,
    /// The end of the log at that moment.
    #[serde(default)]
    pub log_end: Offset,
    /// How many descendants were left and had to be ended.
    #[serde(default)]
    pub leftovers: u32,
    /// How many processes could not be ended.
    #[serde(default)]
    pub survivors: u32,
    /// Whether a process may be left that nobody could look for: its holder was killed, and nobody was there to take in what
    /// only that one knew of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The command ended by itself.
    #[default]
    Exited,
    /// Somebody stopped it: TERM, grace, KILL.
    Stopped,
    /// Somebody killed it at once.
    Killed,
    /// It ran longer than its run timeout.
    Timeout,
    /// It was idle longer than its idle timeout.
    Idle,
    /// Its holder is gone and so is the command; its end was not seen.
    Lost,
    /// It never ran: what it waited for, or its start, failed.
    Failed,
    /// A reason of a newer version.
    #[serde(other)]
    Other,
}

/// The most bytes of a record in brief: what a file system keeps as the text of a link without a block for it.
const MAX_BRIEF_LEN: usize = 59;

impl ExitRecord {
    /// The record as JSON in so few bytes that it can stand as the text of a link: what a disk without room for a file still
    /// takes. How the command ended and why come first; then, as far as they fit, when, and the end of its log.
    pub fn brief(&self) -> String {
        let reason = (self.reason != Reason::Exited).then_some(self.reason);
        let field = |name: &str, value: Option<String>| value.map(|value| format!("\"{name}\":{value}"));
        let fields = [
            field("code", self.code.map(|code| code.to_string())),
            field("signal", self.signal.map(|signal| signal.to_string())),
            field("reason", reason.and_then(|reason| serde_json::to_string(&reason).ok())),
            field("ended", Some(self.ended.0.to_string())),
            field("log_end", Some(self.log_end.0.to_string())),
        ];
        let mut brief = String::from("{");
        for field in fields.into_iter().flatten() {
            let comma = if brief.len() > 1 { "," } else { "" };
            if brief.len() + comma.len() + field.len() < MAX_BRIEF_LEN {
                brief.extend([comma, &field]);
            }
        }
        brief.push('}');
        brief
    }

    /// The code that a shell would report: the command's own, or 128 + the signal, or 125 where none is known.
    pub fn shell_code(&self) -> i32 {
        match (self.code, self.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 125,
        }
    }

    /// Whether a restart policy *on-failure* would start it again.
    pub fn failed(&self) -> bool {
        self.code != Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_in_brief_says_how_it_ended() {
        let reasons = [
            Reason::Exited,
            Reason::Stopped,
            Reason::Killed,
            Reason::Timeout,
            Reason::Idle,
            Reason::Lost,
            Reason::Failed,
        ];
        let ends = [(Some(0), None), (Some(255), None), (None, Some(64)), (None, None)];
        for (reason, (code, signal)) in reasons.into_iter().flat_map(|reason| ends.map(|end| (reason, end))) {
            let ended = Millis(9_999_999_999_999);
            let whole = ExitRecord {
                code,
                signal,
                reason,
                ended,
                by: Some("somebody with a long name".into()),
                started: Millis(1),
                log_end: Offset(1 << 40),
                ..ExitRecord::default()
            };
            let brief = whole.brief();
            assert!(brief.len() <= MAX_BRIEF_LEN, "{brief}");
            let read: ExitRecord = serde_json::from_str(&brief).unwrap();
            assert_eq!(
                (read.code, read.signal, read.reason, read.ended),
                (code, signal, reason, ended),
                "{brief}"
            );
        }
    }
}
