//! Durations as people write and read them.

use std::time::Duration;

use wharf_model::Millis;

/// Reads `90`, `1.5s`, `500ms`, `10m`, `1h30m`, `7d`. A number alone is seconds.
// By hand: the friendly format of jiff takes no number alone, no days or weeks in a duration, and a fraction in the last unit only
// (`1.5h30m`); all of these are accepted here.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration: write 90, 500ms, 10m, 1h30m or 7d");
    if let Some(seconds) = number(text) {
        return seconds_of(seconds).ok_or_else(wrong);
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (count, tail) = rest.split_at(digits);
        let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return Err(wrong()),
        };
        let part = number(count).and_then(|count| seconds_of(count * scale)).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// The same as milliseconds, which is how it travels.
pub(crate) fn parse_millis(text: &str) -> Result<Millis, String> {
    parse(text).map(|duration| Millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
}

fn number(text: &str) -> Option<f64> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if plain { text.parse().ok() } else { None }
}

fn seconds_of(seconds: f64) -> Option<Duration> {
    // A hundred years is for ever; more than that overflows somewhere.
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| duration.as_secs() < 3_153_600_000)
}

/// The time between two moments in its largest unit: `3m`, `2h`, `5d`.
pub(crate) fn human(from: Millis, to: Millis) -> String {
    let seconds = to.0.saturating_sub(from.0) / 1_000;
    let (count, unit) = match seconds {
        0..60 => (seconds, 's'),
        60..3_600 => (seconds / 60, 'm'),
        3_600..86_400 => (seconds / 3_600, 'h'),
        _ => (seconds / 86_400, 'd'),
    };
    let mut text = count.to_string();
    text.push(unit);
    text
}

/// A duration as it was given: `1 s`, `1.5 s`, `50 ms`.
pub(crate) fn exact(duration: Duration) -> String {
    if duration < Duration::from_secs(1) && !duration.is_zero() {
        return format!("{} ms", duration.as_millis());
    }
    format!("{} s", duration.as_millis() as f64 / 1_000.0)
}

/// The time now.
pub(crate) fn now() -> Millis {
    std::time::SystemTime::now().into()
}

/// A moment in RFC 3339, UTC.
pub(crate) fn rfc3339(moment: Millis) -> String {
    i64::try_from(moment.0)
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .map_or_else(|| format!("{} ms", moment.0), |time| format!("{time:.3}"))
}

/// A moment: `5m` (ago), or RFC 3339.
pub(crate) fn parse_moment(text: &str, now: Millis) -> Result<Millis, String> {
    if let Ok(ago) = parse_millis(text) {
        return Ok(Millis(now.0.saturating_sub(ago.0)));
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| {
        format!("{text:?} is no time: write 5m for five minutes ago, or 2026-01-31T12:00:00Z")
    })?;
    Ok(Millis(u64::try_from(time.as_millisecond()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let cases = [
            ("0", 0),
            ("5", 5_000),
            ("1.5", 1_500),
            ("500ms", 500),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("2w", 1_209_600_000),
            ("0.5s", 500),
            ("1m0.5s", 60_500),
        ];
        for (text, millis) in cases {
            assert_eq!(parse_millis(text), Ok(Millis(millis)), "{text}");
        }
        for bad in ["", "-1", "5x", "m", "1h30", "inf", "nan", "1e3", "99999999999999999999d", "1.2.3", " 5"]
        {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn durations_are_shown_in_their_largest_unit() {
        let shown: Vec<String> = [0, 59, 60, 3_599, 3_600, 90_000, 864_000]
            .map(|seconds| human(Millis(1_000), Millis(1_000 + seconds * 1_000)))
            .into();
        assert_eq!(shown, ["0s", "59s", "1m", "59m", "1h", "1d", "10d"]);
        assert_eq!(human(Millis(5), Millis(0)), "0s");
    }

    #[test]
    fn a_duration_is_told_as_it_was_given() {
        let told = [0, 50, 1_000, 1_500, 90_000].map(|millis| exact(Duration::from_millis(millis)));
        assert_eq!(told, ["0 s", "50 ms", "1 s", "1.5 s", "90 s"]);
    }

    #[test]
    fn moments_are_ages_or_dates() {
        let now = Millis(1_000_000);
        assert_eq!(parse_moment("5m", now), Ok(Millis(700_000)));
        assert_eq!(parse_moment("1970-01-01T00:00:10Z", now), Ok(Millis(10_000)));
        assert!(parse_moment("yesterday", now).is_err());
        assert_eq!(rfc3339(Millis(10_000)), "1970-01-01T00:00:10.000Z");
    }
}
