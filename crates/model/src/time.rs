//! Defines a moment in milliseconds, and formats it for people.

use serde::{Deserialize, Serialize};

/// A moment as milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// The moment for people, to the minute: `2026-11-18 09:00 UTC`.
    pub fn utc(&self) -> String {
        const DAY_MILLIS: u64 = 86_400_000;
        let (days, minutes) = (self.0 / DAY_MILLIS, self.0 % DAY_MILLIS / 60_000);
        // Counted in eras of 400 years, all of which have as many days, from a 1 March on: then what is odd about a year
        // is at its end.
        let since = days + 719_468;
        let (era, of_era) = (since / 146_097, since % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = year + 400 * era + next;
        format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
    }

    /// Whether this is no moment at all.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl From<std::time::SystemTime> for Millis {
    /// Times before the epoch become the epoch: a clock that is set wrong must not end anything.
    fn from(time: std::time::SystemTime) -> Self {
        Self(time.duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_as_people_write_it() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00 UTC"),
            (59, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (1_794_992_400, "2026-11-18 09:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(Millis(seconds * 1_000).utc(), shown);
        }
        // Whatever a clock says, this does not fail.
        assert!(Millis(u64::MAX).utc().ends_with(" UTC"));
    }
}
