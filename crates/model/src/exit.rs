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

impl ExitRecord {
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
