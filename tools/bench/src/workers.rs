//! Keeps the kernel's worker threads on one processor while latencies are measured.

use std::fs;

/// Which processors the kernel's own worker threads may use.
const MASK: &str = "/sys/devices/virtual/workqueue/cpumask";

/// Keeps those threads on one processor as long as it lives, where we may.
///
/// They are what moves bytes from one end of a terminal to the other. On another processor than everything else each
/// byte waits for that one to wake up, which takes several times as long as all the rest: what is measured then
/// is where a thread happened to be.
pub(crate) struct Workers {
    before: String,
}

impl Workers {
    pub(crate) fn keep_on(processor: usize) -> Option<Self> {
        let before = fs::read_to_string(MASK).ok()?;
        // The mask is hexadecimal, in groups of 32 bits.
        if processor >= 32 || fs::write(MASK, format!("{:x}", 1_u32 << processor)).is_err() {
            println!("the kernel's workers stay where they are (root may keep them): latencies are noisier");
            return None;
        }
        Some(Self { before })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Err(error) = fs::write(MASK, &self.before) {
            eprintln!("wharf-bench: {MASK} was {}, and cannot be put back: {error}", self.before.trim_end());
        }
    }
}
