//! How a scanner reads odd input, and how much of a sequence it holds.

/// How odd input is read, and how much of a sequence is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanRules {
    /// Whether to expect the worst of the terminal: controls of the upper half count as controls, a string counts only with
    /// its own end, and a byte that has no place in a sequence ends it.
    pub(crate) any_terminal: bool,
    /// The longest control sequence that is held, in bytes with its introducer; a longer one is dropped.
    pub(crate) max_sequence_len: usize,
    /// How many bytes stand between `ESC` and the final byte.
    pub(crate) max_intermediates: usize,
    /// The longest operating system command, in bytes; of a longer one nothing is kept.
    pub(crate) max_string_len: usize,
    /// The same for device control strings.
    pub(crate) max_device_string_len: usize,
    /// How many bytes of a dropped string are swallowed before what follows counts as text again.
    pub(crate) max_dropped_len: usize,
}

impl ScanRules {
    /// As the terminal reads that the screen model is.
    pub const MODEL: Self = Self {
        any_terminal: false,
        // Nothing that means anything is longer.
        max_sequence_len: 512,
        max_intermediates: 512,
        max_string_len: 64 << 10,
        // Of these only short questions matter.
        max_device_string_len: 4 << 10,
        // A terminal waits for the end.
        max_dropped_len: usize::MAX,
    };

    /// So that no terminal finds a sequence which the scanner did not.
    pub const ANY_TERMINAL: Self = Self {
        any_terminal: true,
        max_sequence_len: 8 << 10,
        max_intermediates: 15,
        // As long as the longest control sequence, with the two bytes that begin it.
        max_string_len: (8 << 10) - 2,
        max_device_string_len: (8 << 10) - 2,
        // Whoever reads the log must not lose the rest of it to a string without an end.
        max_dropped_len: 64 << 10,
    };
}
