//! Which pane is meant: `SESSION`, `SESSION:WINDOW`, `SESSION:WINDOW.PANE`, or `%PANE`.

use std::fmt;
use std::str::FromStr;

use wharf_model::{Code, Failure};

use crate::guest::Pane;

/// A pane, in a user's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The one that a session shows, or one of its windows, or one by its place.
    Place { session: String, window: Option<u32>, pane: Option<u32> },
    /// The one with this id.
    Id(String),
}

impl Target {
    /// Whether this pane is meant.
    pub(crate) fn means(&self, found: &Pane) -> bool {
        match self {
            Self::Id(wanted) => *wanted == found.id,
            Self::Place { session, window, pane } => {
                *session == found.session
                    && match (window, pane) {
                        (None, _) => found.window_shown && found.shown,
                        (Some(window), None) => *window == found.window && found.shown,
                        (Some(window), Some(pane)) => (*window, *pane) == (found.window, found.index),
                    }
            }
        }
    }
}

impl FromStr for Target {
    type Err = Failure;
    fn from_str(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::new(Code::Invalid, format!("{text:?} names no pane")).hint(
                "SESSION, SESSION:WINDOW, SESSION:WINDOW.PANE or %PANE, with numbers for windows and panes",
            )
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        if let Some(id) = text.strip_prefix('%') {
            return number(id).map(|id| Self::Id(format!("%{id}")));
        }
        let (session, place) =
            text.split_once(':').map_or((text, None), |(session, place)| (session, Some(place)));
        if session.is_empty() {
            return Err(wrong());
        }
        let (window, pane) = match place.map(|place| place.split_once('.').unwrap_or((place, ""))) {
            None => (None, None),
            Some((window, "")) => (Some(number(window)?), None),
            Some((window, pane)) => (Some(number(window)?), Some(number(pane)?)),
        };
        Ok(Self::Place { session: session.to_owned(), window, pane })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::Place { session, window, pane } => {
                f.write_str(session)?;
                window.map_or(Ok(()), |window| write!(f, ":{window}"))?;
                pane.map_or(Ok(()), |pane| write!(f, ".{pane}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pane_that_is_named_is_meant() {
        let means = |text: &str, pane: &str| {
            let pane = Pane::parse(pane).expect("a pane");
            text.parse::<Target>().expect("a target").means(&pane)
        };
        // Its id, window, place, whether its window is shown and whether it is in there, and its session.
        let pane = |place: &str, session: &str| format!("%9 {place} 0 0 1 80 24 /dev/pts/1 {session}");
        assert!(means("eng-1", &pane("3 4 1 1", "eng-1")));
        assert!(!means("eng-1", &pane("3 4 1 1", "eng-10")), "a name is not its beginning");
        assert!(!means("eng-1", &pane("3 4 0 1", "eng-1")), "another window is shown");
        assert!(means("a:3", &pane("3 4 0 1", "a")));
        assert!(!means("a:3", &pane("3 4 0 0", "a")), "another pane of it is shown");
        assert!(means("a:3.4", &pane("3 4 0 0", "a")));
        assert!(!means("a:3.4", &pane("3 5 1 1", "a")));
        assert!(means("%9", &pane("0 0 0 0", "whatever")));
    }

    #[test]
    fn what_names_no_pane_is_refused() {
        for wrong in ["", ":1", "a:b", "a:1.b", "%", "%x", "a:1.2.3", "a:-1"] {
            assert_eq!(
                wrong.parse::<Target>().map_err(|failure| failure.code),
                Err(Code::Invalid),
                "{wrong}"
            );
        }
        assert_eq!("a:1.2".parse::<Target>().expect("a target").to_string(), "a:1.2");
    }
}
