//! What stands in the frames. Control data is JSON: unknown fields are ignored, missing ones have defaults.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_model::{
    DiskUse, Expected, Limits, Millis, NetworkUse, Offset, ProcessIdentity, Reason, Scope, Size, Text,
};

/// What this version can do beyond the first frames there ever were.
pub const FEATURES: &[&str] = &[
    "input-ack",
    "cancel",
    "pending",
    "resize",
    "tree-signal",
    "read",
    "duplicates",
    "resume",
    "exec",
    "daemon",
    "usage",
    BORROW,
];

/// The terminal itself can be had, to type past the holder.
pub const BORROW: &str = "borrow";

/// How often a holder tells programs that somebody types, and a client tells the holder that it types past it.
pub const INPUT_NEWS_INTERVAL: Duration = Duration::from_millis(200);

/// What a holder says beside that whose terminal answers the questions of applications by itself.
pub const ANSWERS: &str = "answers";

/// The first frame of either side. It may be left out: then nothing beyond the basics is assumed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What the client is: `attach` counts as a terminal, `watch` may not type, anything else is a program.
    #[serde(default)]
    pub role: String,
    /// What the sender can do.
    #[serde(default)]
    pub features: Vec<String>,
    /// The sender's version, for people.
    #[serde(default)]
    pub version: String,
    /// The session as it is, in the holder's hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<HolderStatus>,
    /// The oldest byte of output that is still there, in the holder's hello.
    #[serde(default)]
    pub log_start: Offset,
    /// The end of output, in the holder's hello.
    #[serde(default)]
    pub log_end: Offset,
}

/// What to start. The ticket, the arguments and the variables follow as sections of their own.
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The session's directory.
    pub home: Text,
    /// Which start of the session this is.
    pub run: u32,
    /// The directory to run in.
    pub dir: Text,
    /// A terminal, or three pipes.
    pub tty: bool,
    /// The terminal's size.
    #[serde(default)]
    pub size: Size,
    /// Bytes of output to keep; zero is the default of the log.
    #[serde(default)]
    pub log_size: u64,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// Printed to the log first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub motd: Option<Text>,
    /// The command's file creation mask; the holder's own inherited one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// The command's soft limit of descriptors; the holder's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u64>,
    /// The session's mark.
    pub token: String,
    /// Somebody else's: it is watched and typed at, and let go where another would be ended.
    #[serde(default)]
    pub guest: bool,
    /// The command only passes through what runs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Through>,
    /// The words that stand before a further command's own, so that it is kept to what the first one is. The holder adds
    /// which process that is, and `--`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enter: Vec<Text>,
    /// Whether the command gets a channel to Wharf, as descriptor
    /// [`channel::NUMBER`](wharf_boundary::channel::NUMBER).
    #[serde(default)]
    pub channel: bool,
    /// Where the asker wants output from, as it comes: one that asked for it later might come too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<Offset>,
    /// Whether the command, and each further one, gets the `HOME` that its place gave the holder, where it has none of its
    /// own.
    #[serde(default)]
    pub place_home: bool,
    /// What must stand where, or nothing is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Expected>,
}

/// What is known of something that runs elsewhere and is passed through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Through {
    /// Why it cannot be typed at, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard: Option<String>,
}

/// The answer to a start, with the descriptors of [`Kind::Duplicates`](crate::frame::Kind::Duplicates).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartedReply {
    /// The holder.
    pub holder: ProcessIdentity,
    /// The command.
    pub command: ProcessIdentity,
    /// How its processes are kept together.
    pub scope: Scope,
    /// When it was started.
    pub started: Millis,
    /// What each passed descriptor is, in order.
    pub descriptors: Vec<Duplicate>,
}

/// A descriptor that keeps a session alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicate {
    /// The terminal's master side.
    Terminal,
    /// The end of the inner pipe that the log is written from.
    PipeRead,
    /// The end of the inner pipe that the terminal is moved to.
    PipeWrite,
    /// The command's standard input.
    Stdin,
    /// The command's standard output.
    Stdout,
    /// The command's standard error.
    Stderr,
    /// The command's pidfd.
    Command,
    /// The socket to a program that holds the terminal.
    Link,
    /// That terminal, from the command's side.
    #[serde(rename = "seat")]
    PaneTerminal,
    /// The session's own channel, from our side.
    ChannelOutside,
    /// The same from the command's side, for further commands.
    ChannelInside,
    /// One of a newer version.
    #[serde(other)]
    Other,
}

/// What to take over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// As it was started.
    pub start: Start,
    /// As it answered then.
    pub started: StartedReply,
}

/// How to end a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    /// How long TERM may take.
    pub grace: Millis,
    /// Why.
    #[serde(default)]
    pub reason: Reason,
    /// Who asks.
    #[serde(default)]
    pub by: String,
}

/// The session as its holder sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderStatus {
    /// Attached terminals.
    #[serde(default)]
    pub attached: u32,
    /// The command's pid.
    #[serde(default)]
    pub pid: i32,
    /// The terminal's size.
    #[serde(default)]
    pub size: Size,
    /// Those of them that may type, and whose terminal answers what the application asks; absent from older holders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typists: Option<u32>,
    /// When something was last typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_input: Option<Millis>,
    /// Whether a line was begun and not submitted, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_open: Option<bool>,
    /// Whether something of that line was typed while the terminal was in line mode: it keeps it until the line ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub line_kept: bool,
    /// Whether the input of a pipe session was ended: whoever keeps a duplicate of it must let go too.
    #[serde(default)]
    pub input_closed: bool,
    /// Bytes of output that could not be kept for want of disk.
    #[serde(default)]
    pub dropped: u64,
    /// Whether the command is stopped by a signal.
    #[serde(default)]
    pub suspended: bool,
    /// How often something of it was killed for want of memory.
    #[serde(default)]
    pub oom_kills: u64,
}

/// Input that is on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingInput {
    /// Taken from clients and not in the terminal yet.
    #[serde(default)]
    pub queued: u64,
    /// In the terminal and not read by the application.
    #[serde(default)]
    pub unread: u64,
    /// Whether the terminal hands over whole lines.
    #[serde(default)]
    pub canonical: bool,
    /// Whether the terminal echoes.
    #[serde(default)]
    pub echo: bool,
}

/// What the session's processes use, for those who cannot see them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Processor time in milliseconds.
    #[serde(default)]
    pub cpu: u64,
    /// Resident memory in bytes.
    #[serde(default)]
    pub memory: u64,
    /// How many there are.
    #[serde(default)]
    pub processes: u32,
    /// Bytes from and to disks; absent from older holders, and where it cannot be read.
    #[serde(default)]
    pub io: Option<DiskUse>,
    /// Bytes by the network that the holder is in; absent from older holders.
    #[serde(default)]
    pub network: Option<NetworkUse>,
}

/// A further command. Arguments and variables follow as sections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    /// The directory to run in.
    pub dir: Text,
    /// Whether the first descriptor is a terminal that the command shall control.
    #[serde(default)]
    pub tty: bool,
}

/// Joins byte strings to one payload, each with its length before it.
pub fn sections(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 4).sum());
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// Takes a payload of `N` sections apart.
pub fn split_sections<const N: usize>(mut bytes: &[u8]) -> io::Result<[&[u8]; N]> {
    let mut parts = [&[] as &[u8]; N];
    for part in &mut parts {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
        (*part, bytes) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
    }
    Ok(parts)
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame is shorter than its sections say")
}

/// Strings as one section: each ends with a NUL, so an exec needs no copies.
pub fn strings<'a>(strings: impl IntoIterator<Item = &'a [u8]>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for string in strings {
        if string.contains(&0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an argument or variable contains a NUL byte",
            ));
        }
        bytes.extend_from_slice(string);
        bytes.push(0);
    }
    Ok(bytes)
}

/// Variables as one section.
pub fn variables(vars: &[(Text, Text)]) -> io::Result<Vec<u8>> {
    let joined: Vec<Vec<u8>> =
        vars.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect();
    strings(joined.iter().map(Vec::as_slice))
}
