//! Maps every error code to its word, its exit code and its HTTP status.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What went wrong, as a program wants to know it. One table: error code, HTTP status, exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The request itself is wrong.
    Invalid,
    /// The name is not a legal one.
    InvalidName,
    /// No such session.
    NotFound,
    /// The name is taken.
    NameTaken,
    /// The session has ended, and this needs a running one.
    Ended,
    /// The session still runs, and this needs an ended one.
    Running,
    /// The session does not run yet.
    NotStarted,
    /// The command does not exist.
    CommandNotFound,
    /// The command is not executable, or its interpreter is not.
    NotExecutable,
    /// The directory to run in does not exist or cannot be entered.
    NoDirectory,
    /// The arguments and variables are more than the system takes.
    TooLong,
    /// A program that `--require` names is not there.
    MissingRequirement,
    /// A limit was asked for that nothing here can enforce.
    LimitRefused,
    /// This backend or version cannot do that.
    Unsupported,
    /// The backend is not available.
    Unavailable,
    /// The session or backend could not be reached; nothing is known to have happened.
    Unreachable,
    /// It took longer than was allowed.
    Timeout,
    /// The terminal takes no more input now.
    Busy,
    /// Processes of the session are left that could not be ended.
    Survivors,
    /// The agent asks a question, and typing would answer it.
    Asking,
    /// The agent asks nothing, and there is nothing to answer.
    NotAsking,
    /// The text would not arrive as what it is.
    Refused,
    /// It was typed, and there is no proof that it was taken.
    Unconfirmed,
    /// It was not typed in the time that it was given.
    Expired,
    /// It was taken back before it was typed.
    Cancelled,
    /// The caller may not do that.
    Forbidden,
    /// The system is out of something: descriptors, terminals, processes, memory.
    Exhausted,
    /// A disk is full, or the user's share of it is.
    DiskFull,
    /// Another engine owns this instance.
    Locked,
    /// A fault of Wharf or of the system.
    Internal,
    /// A code of a newer version.
    #[serde(other)]
    Other,
}

impl Code {
    /// Every code, for the documentation and for tests.
    pub const ALL: &'static [Self] = &[
        Self::Invalid,
        Self::InvalidName,
        Self::NotFound,
        Self::NameTaken,
        Self::Ended,
        Self::Running,
        Self::NotStarted,
        Self::CommandNotFound,
        Self::NotExecutable,
        Self::NoDirectory,
        Self::TooLong,
        Self::MissingRequirement,
        Self::LimitRefused,
        Self::Unsupported,
        Self::Unavailable,
        Self::Unreachable,
        Self::Timeout,
        Self::Busy,
        Self::Survivors,
        Self::Asking,
        Self::NotAsking,
        Self::Refused,
        Self::Unconfirmed,
        Self::Expired,
        Self::Cancelled,
        Self::Forbidden,
        Self::Exhausted,
        Self::DiskFull,
        Self::Locked,
        Self::Internal,
    ];

    /// The stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::InvalidName => "invalid_name",
            Self::NotFound => "not_found",
            Self::NameTaken => "name_taken",
            Self::Ended => "ended",
            Self::Running => "running",
            Self::NotStarted => "not_started",
            Self::CommandNotFound => "command_not_found",
            Self::NotExecutable => "not_executable",
            Self::NoDirectory => "no_directory",
            Self::TooLong => "too_long",
            Self::MissingRequirement => "missing_requirement",
            Self::LimitRefused => "limit_refused",
            Self::Unsupported => "unsupported",
            Self::Unavailable => "unavailable",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::Survivors => "survivors",
            Self::Asking => "asking",
            Self::NotAsking => "not_asking",
            Self::Refused => "refused",
            Self::Unconfirmed => "unconfirmed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Forbidden => "forbidden",
            Self::Exhausted => "exhausted",
            Self::DiskFull => "disk_full",
            Self::Locked => "locked",
            Self::Internal => "internal",
            Self::Other => "other",
        }
    }

    /// The exit code of a command that failed with it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Invalid | Self::InvalidName => 2,
            Self::NotFound => 3,
            Self::NameTaken | Self::Ended | Self::Running | Self::NotStarted => 4,
            Self::Forbidden => 5,
            Self::Unsupported | Self::LimitRefused => 6,
            Self::Unavailable | Self::Unreachable | Self::Locked => 7,
            Self::Busy | Self::Exhausted | Self::DiskFull | Self::Survivors => 8,
            Self::Asking | Self::NotAsking => 9,
            Self::Refused => 10,
            Self::Unconfirmed => 11,
            Self::Expired => 12,
            Self::Cancelled => 13,
            Self::Timeout => 124,
            Self::NoDirectory | Self::TooLong | Self::Internal | Self::Other => 125,
            Self::NotExecutable => 126,
            Self::CommandNotFound | Self::MissingRequirement => 127,
        }
    }

    /// The HTTP status of a response that carries it.
    pub fn status(self) -> u16 {
        match self {
            Self::Invalid | Self::InvalidName => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::NameTaken
            | Self::Ended
            | Self::Running
            | Self::NotStarted
            | Self::Asking
            | Self::NotAsking
            | Self::Cancelled => 409,
            Self::CommandNotFound
            | Self::NotExecutable
            | Self::NoDirectory
            | Self::TooLong
            | Self::MissingRequirement
            | Self::LimitRefused
            | Self::Refused => 422,
            Self::Busy => 429,
            Self::Internal | Self::Survivors | Self::Unconfirmed | Self::Other => 500,
            Self::Unsupported => 501,
            Self::Unavailable | Self::Unreachable | Self::Locked => 503,
            Self::Timeout | Self::Expired => 504,
            Self::Exhausted | Self::DiskFull => 507,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
