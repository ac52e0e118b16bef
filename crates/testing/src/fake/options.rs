//! Parses the fake agent's command line.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::manner::{MODES, Manner};

/// What the command line asks for.
pub(super) struct Options {
    pub(super) manner: Manner,
    pub(super) log: Option<PathBuf>,
}

impl Options {
    /// Reads `MODE [--log FILE] [--work MS] [--delay MS] [--flood BYTES]`.
    pub(super) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mode = words.next().unwrap_or_default();
        let mut manner =
            Manner::of(&mode).ok_or_else(|| format!("there is no mode {mode:?}\n{}", usage()))?;
        let mut log = None;
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
            let number = || value.parse::<u64>().map_err(|error| format!("{word} {value}: {error}"));
            match word.as_str() {
                "--log" => log = Some(PathBuf::from(value)),
                "--work" => manner.work = Duration::from_millis(number()?),
                "--delay" => manner.deaf_for = Duration::from_millis(number()?),
                "--flood" => manner.flood = number()? as usize,
                _ => return Err(format!("{word:?} is not understood\n{}", usage())),
            }
        }
        Ok(Self { manner, log })
    }
}

fn usage() -> String {
    let mut text =
        String::from("wharf-fake-agent MODE [--log FILE] [--work MS] [--delay MS] [--flood BYTES]");
    for (mode, about) in MODES {
        let _ = write!(text, "\n  {mode:<20} {about}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        Options::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_mode_and_its_numbers() {
        let options = read("slow-start --delay 20 --work 5 --log /tmp/x").unwrap();
        assert_eq!(options.manner.deaf_for, Duration::from_millis(20));
        assert_eq!(options.manner.work, Duration::from_millis(5));
        assert_eq!(options.log, Some(PathBuf::from("/tmp/x")));
        for wrong in ["", "polite", "plain --log", "plain --work soon", "plain --fast 1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
