//! Parses and describes the commands that the fake backend runs: echo, exit, print, sleep.

use std::time::Duration;

use wharf_model::{Code, Text};

use crate::{Failure, Result};

/// What a command of the fake does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Prints what is typed, until a line `exit N`, ^D or the end of input.
    Echo,
    /// Ends with a code after a while.
    Exit(i32, Duration),
    /// Prints this and ends.
    Print(Vec<u8>),
    /// Reads nothing; ends after a while, or never.
    Sleep(Option<Duration>),
    /// Reads nothing, and only KILL ends it.
    IgnoreTerm,
    /// Prints that many bytes and ends.
    Flood(usize),
}

impl Program {
    /// The program that a command names.
    pub fn parse(argv: &[Text], env: &[(Text, Text)]) -> Result<Self> {
        let word = argv.first().map(|word| word.lossy()).unwrap_or_default();
        let number = |at: usize| argv.get(at).and_then(|text| text.lossy().parse::<u64>().ok());
        Ok(match &*word {
            "fake:echo" => Self::Echo,
            "fake:exit" => {
                Self::Exit(number(1).unwrap_or(0) as i32, Duration::from_millis(number(2).unwrap_or(0)))
            }
            "fake:print" => {
                let words: Vec<&[u8]> = argv[1..].iter().map(Text::as_bytes).collect();
                Self::Print([&words.join(&b' ')[..], b"\n"].concat())
            }
            "fake:sleep" => Self::Sleep(number(1).map(Duration::from_millis)),
            "fake:ignore-term" => Self::IgnoreTerm,
            "fake:flood" => Self::Flood(number(1).unwrap_or(0) as usize),
            "fake:env" => {
                let mut bytes = Vec::new();
                for (name, value) in env {
                    bytes.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
                }
                Self::Print(bytes)
            }
            _ => {
                return Err(Failure::new(Code::CommandNotFound, format!("command {word:?} was not found"))
                    .hint("the fake knows only commands that start with fake:"));
            }
        })
    }

    /// Whether it reads what is typed.
    pub(super) fn reads(&self) -> bool {
        matches!(self, Self::Echo)
    }

    /// Whether a signal ends it.
    pub(super) fn dies_of(&self, signal: i32) -> bool {
        // CHLD, CONT, the stops, URG and WINCH end nothing by default.
        let harmless = matches!(signal, 17..=23 | 28);
        signal == 9 || !(harmless || *self == Self::IgnoreTerm)
    }

    /// What it prints by itself.
    pub(super) fn prints(&self) -> Vec<u8> {
        match self {
            Self::Print(bytes) => bytes.clone(),
            Self::Flood(count) => (0..*count).map(|i| b"0123456789abcdef"[i % 16]).collect(),
            _ => Vec::new(),
        }
    }

    /// When it ends by itself, and with which code.
    pub(super) fn ends(&self) -> Option<(i32, Duration)> {
        match self {
            Self::Exit(code, after) => Some((*code, *after)),
            Self::Print(_) | Self::Flood(_) => Some((0, Duration::ZERO)),
            Self::Sleep(after) => after.map(|after| (0, after)),
            Self::Echo | Self::IgnoreTerm => None,
        }
    }

    /// What a typed line makes of an echo: the code that it ends with.
    pub(super) fn told_to_exit(line: &[u8]) -> Option<i32> {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if line == "exit" {
            return Some(0);
        }
        line.strip_prefix("exit ")?.trim().parse().ok()
    }
}
