//! Room in memory for what requests bring along: so much at once and no more, however many come. Sessions have a part of their
//! own, so that none of them keeps the user out.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use wharf_model::{Code, Failure};

/// Room is given out in pieces of this size.
const UNIT_LEN: usize = 16 << 10;

/// A request up to this size needs no room of its own: the number of connections is limited, too.
const MAX_SMALL_LEN: usize = UNIT_LEN;

/// What all requests of one kind of caller may have in memory together: two of the largest.
const MAX_TOTAL_LEN: usize = 64 << 20;

/// How long a request may wait for room. Those before it have time to arrive and to be answered.
const ROOM_TIMEOUT: Duration = Duration::from_secs(120);

/// How many values a large request may have. Each takes more memory than it has bytes on the way: a text of no length takes
/// eight times as much.
const MAX_VALUES: usize = 1 << 20;

static FOR_THOSE_OUTSIDE: Semaphore = Semaphore::const_new(MAX_TOTAL_LEN / UNIT_LEN);
static FOR_SESSIONS: Semaphore = Semaphore::const_new(MAX_TOTAL_LEN / UNIT_LEN);

/// Room that a request has, until it is answered.
pub(crate) struct Room {
    _pieces: Option<SemaphorePermit<'static>>,
}

impl Room {
    /// Waits for room for a request of this length.
    pub(crate) async fn take(len: usize, outside: bool) -> Result<Self, Failure> {
        if len <= MAX_SMALL_LEN {
            return Ok(Self { _pieces: None });
        }
        let all = if outside { &FOR_THOSE_OUTSIDE } else { &FOR_SESSIONS };
        let pieces = u32::try_from(len.div_ceil(UNIT_LEN).min(MAX_TOTAL_LEN / UNIT_LEN)).unwrap_or(u32::MAX);
        match tokio::time::timeout(ROOM_TIMEOUT, all.acquire_many(pieces)).await {
            // Nobody closes them.
            Ok(pieces) => Ok(Self { _pieces: pieces.ok() }),
            Err(_) => Err(Failure::new(Code::Busy, "the daemon has too many large requests at once")
                .hint("ask again once they are answered")),
        }
    }
}

/// Whether a JSON text has more values than a request needs.
pub(crate) fn has_too_many_values(json: &[u8]) -> bool {
    if json.len() <= MAX_SMALL_LEN {
        return false;
    }
    let (mut values, mut in_text, mut escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            // Each value but the first follows one of these.
            b',' | b'[' | b'{' | b':' if !in_text => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_what_stands_in_texts_is_none() {
        let many = format!("[{}1]", "\"\",".repeat(MAX_VALUES));
        assert!(has_too_many_values(many.as_bytes()));
        assert!(has_too_many_values("[".repeat(MAX_VALUES + 1).as_bytes()));
        let text = format!(r#"{{"text":"\"{}"}}"#, ",[".repeat(MAX_VALUES));
        assert!(!has_too_many_values(text.as_bytes()));
        let variables = format!("[{}[]]", r#"["A","\\"],"#.repeat(200_000));
        assert!(!has_too_many_values(variables.as_bytes()));
    }

    #[tokio::test]
    async fn one_kind_of_caller_takes_nothing_from_the_other() {
        let soon = Duration::from_millis(50);
        let all = Room::take(MAX_TOTAL_LEN, false).await.unwrap();
        assert!(tokio::time::timeout(soon, Room::take(MAX_SMALL_LEN + 1, false)).await.is_err());
        let later = Duration::from_secs(30);
        let small = tokio::time::timeout(later, Room::take(MAX_SMALL_LEN, false)).await;
        let outside = tokio::time::timeout(later, Room::take(MAX_TOTAL_LEN, true)).await;
        assert!(small.is_ok() && outside.is_ok());
        drop(all);
        assert!(tokio::time::timeout(later, Room::take(MAX_TOTAL_LEN, false)).await.is_ok());
    }
}
