//! Lists the fake agent's modes, each of which misbehaves in one way.

use std::time::Duration;

/// How an agent behaves. A mode is a manner with one thing wrong.
#[expect(clippy::struct_excessive_bools, reason = "each is one fault, and faults are independent")]
#[derive(Clone, Debug)]
pub struct Manner {
    /// Input before this time is dropped, and nothing is drawn.
    pub deaf_for: Duration,
    /// Asks for bracketed paste.
    pub paste: bool,
    /// Leaves the terminal in canonical mode, with its echo.
    pub cooked: bool,
    /// Uses the alternate screen and draws all of it every time.
    pub full_screen: bool,
    /// Prints this many bytes in each turn.
    pub flood: usize,
    /// Asks for permission in each turn.
    pub asks: bool,
    /// Asks for permission when the first text is pasted, before it is submitted.
    pub asks_at_paste: bool,
    /// Draws nothing at all.
    pub silent: bool,
    /// Exits when it has read something.
    pub dies: bool,
    /// Reads at most this much, then pauses.
    pub sips: Option<(usize, Duration)>,
    /// An Enter this soon after a paste or fast typing is a line break.
    pub swallow: Option<Duration>,
    /// The first Enter of every message is dropped.
    pub drops_enter: bool,
    /// Asks the terminal at the start, and waits for every answer.
    pub queries: bool,
    /// Shows a large paste as one short mark.
    pub collapses: bool,
    /// How long a turn takes.
    pub work: Duration,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            deaf_for: Duration::ZERO,
            paste: true,
            cooked: false,
            full_screen: false,
            flood: 0,
            asks: false,
            asks_at_paste: false,
            silent: false,
            dies: false,
            sips: None,
            swallow: None,
            drops_enter: false,
            queries: false,
            collapses: false,
            work: Duration::from_millis(300),
        }
    }
}

/// Every mode and what is wrong with it.
pub const MODES: &[(&str, &str)] = &[
    ("plain", "nothing is wrong"),
    ("slow-start", "drops input and draws nothing until --delay has passed"),
    ("swallow", "an Enter within 120 ms of a paste or of fast typing is a line break"),
    ("no-paste", "raw mode without bracketed paste"),
    ("full-screen", "the alternate screen, all of it drawn every time"),
    ("flood", "prints --flood bytes in every turn"),
    ("menu", "asks for permission in every turn; what is typed answers"),
    ("asks-at-paste", "asks for permission between the first paste and its key"),
    ("silent", "reads, submits, shows nothing"),
    ("dies", "exits when it has read something"),
    ("slow-reader", "reads 1 KiB every 50 ms"),
    ("cooked", "canonical mode, lines echoed by the terminal"),
    ("swallow-first-enter", "the first Enter of every message is dropped"),
    ("queries", "asks the terminal at the start and waits for every answer"),
    ("collapse", "shows a large paste as one short mark"),
];

impl Manner {
    /// The manner of a mode, or nothing where there is no such mode.
    pub fn of(mode: &str) -> Option<Self> {
        let plain = Self::default();
        Some(match mode {
            "plain" => plain,
            "slow-start" => Self { deaf_for: Duration::from_millis(1500), ..plain },
            "swallow" => Self { swallow: Some(Duration::from_millis(120)), ..plain },
            "no-paste" => Self { paste: false, ..plain },
            "full-screen" => Self { full_screen: true, ..plain },
            "flood" => Self { flood: 4 << 20, ..plain },
            "menu" => Self { asks: true, ..plain },
            "asks-at-paste" => Self { asks_at_paste: true, ..plain },
            "silent" => Self { silent: true, ..plain },
            "dies" => Self { dies: true, ..plain },
            "slow-reader" => Self { sips: Some((1024, Duration::from_millis(50))), ..plain },
            "cooked" => Self { paste: false, cooked: true, ..plain },
            "swallow-first-enter" => Self { drops_enter: true, ..plain },
            "queries" => Self { queries: true, ..plain },
            "collapse" => Self { collapses: true, ..plain },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_mode_has_a_manner() {
        for (mode, _) in MODES {
            assert!(Manner::of(mode).is_some(), "{mode}");
        }
        assert!(Manner::of("polite").is_none());
    }
}
