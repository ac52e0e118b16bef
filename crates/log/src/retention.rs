//! Decides how much of a log is kept, and how long its segments are.

/// How much of a log is kept, and in pieces of which size it is dropped.
///
/// Both count the index as well as the bytes: a session that prints one byte at a time would otherwise have an
/// index many times the size of what it is allowed to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The most that all segments together may hold. The current one is kept even where it alone is more.
    pub total: u64,
    /// The size at which a segment is full. The last chunk written to it may go beyond.
    pub segment: u64,
}

impl Retention {
    const DEFAULT_TOTAL: u64 = 64 << 20;

    /// Keeps `total` bytes in segments of a sixteenth, within 64 KiB and 4 MiB.
    pub fn new(total: u64) -> Self {
        Self { total, segment: (total / 16).clamp(64 << 10, 4 << 20) }
    }
}

impl Default for Retention {
    /// 64 MiB.
    fn default() -> Self {
        Self::new(Self::DEFAULT_TOTAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_a_sixteenth_within_bounds() {
        assert_eq!(Retention::default(), Retention { total: 64 << 20, segment: 4 << 20 });
        assert_eq!(Retention::new(16 << 20).segment, 1 << 20);
        assert_eq!(Retention::new(1).segment, 64 << 10);
        assert_eq!(Retention::new(u64::MAX).segment, 4 << 20);
    }
}
