//! Defines what programs tell their terminal beside text: title, bell, progress, shell marks.

use serde::{Deserialize, Serialize};

/// What a program told its terminal beside what it painted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The window's title is another one now.
    Title(String),
    /// The bell was rung.
    Bell,
    /// The program's working directory (OSC 7).
    Directory(String),
    /// A message for the user (OSC 9, 99, 777).
    Notification {
        /// Its title; empty where there is none.
        title: String,
        /// Its text.
        body: String,
    },
    /// How far the program is (OSC 9;4); `None` when it has taken the report back.
    Progress(Option<ProgressReport>),
    /// A mark of the shell's integration (OSC 133).
    Prompt(PromptMark),
    /// What the program says it is doing (OSC 7501); `None` when it has taken the report back.
    Status(Option<StatusReport>),
    /// The program wants to write or read the user's clipboard (OSC 52).
    Clipboard(Clipboard),
    /// A hyperlink began (OSC 8), whatever it points to.
    Link(String),
    /// The alternate screen was entered, or left.
    AltScreen(bool),
    /// The screen was cleared.
    Cleared,
}

/// How far a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressReport {
    /// Of what kind the progress is.
    pub state: ProgressState,
    /// Per cent, where it is known.
    pub percent: Option<u8>,
}

/// Of what kind progress is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgressState {
    /// It goes on.
    Normal,
    /// Something failed.
    Error,
    /// It goes on, and nobody knows how far.
    Indeterminate,
    /// It waits.
    Paused,
}

/// A mark of a shell's integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptMark {
    /// The prompt begins (A).
    PromptStart,
    /// The prompt has ended, and the user may type (B).
    InputStart,
    /// The command line was accepted, and output begins (C).
    OutputStart,
    /// The command has ended (D), with its exit code where the shell says it.
    Done {
        /// The exit code.
        exit: Option<i32>,
    },
}

/// Where a shell is, by its last mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellPhase {
    /// It draws its prompt.
    Prompt,
    /// The user may type.
    Input,
    /// A command runs.
    Running,
    /// A command has ended, and no prompt has come yet.
    Done {
        /// The exit code.
        exit: Option<i32>,
    },
}

impl From<PromptMark> for ShellPhase {
    fn from(mark: PromptMark) -> Self {
        match mark {
            PromptMark::PromptStart => Self::Prompt,
            PromptMark::InputStart => Self::Input,
            PromptMark::OutputStart => Self::Running,
            PromptMark::Done { exit } => Self::Done { exit },
        }
    }
}

/// What a program says it is doing (OSC 7501).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The state.
    pub state: StatusState,
    /// Which part of the program: empty for the program itself.
    #[serde(default)]
    pub id: String,
    /// What a blocked program waits for: `permission`, `question`, `auth`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Per cent.
    #[serde(default)]
    pub progress: Option<u8>,
    /// The program's name for itself.
    #[serde(default)]
    pub app: Option<String>,
    /// What it is about, in words.
    #[serde(default)]
    pub message: Option<String>,
}

/// The state in a program's status report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatusState {
    /// It waits for work.
    Idle,
    /// It works.
    Working,
    /// It waits for somebody.
    Blocked,
    /// It has finished.
    Done,
    /// It has failed.
    Error,
}

/// An attempt at the user's clipboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clipboard {
    /// To read it, which is never answered. Otherwise to write it.
    pub read: bool,
    /// How many bytes of base64 were to be written.
    pub size: usize,
    /// What was to be written, in base64; only where the screen was told to allow it.
    pub payload: Option<String>,
}
