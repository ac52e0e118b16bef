use std::time::Duration;

use wharf_model::ProcessIdentity;

/// A process and its ancestors cannot be seen here.
pub(crate) fn ancestors(_pid: i32) -> Option<Vec<(i32, u64)>> {
    Some(Vec::new())
}

/// Nor what is between them.
pub(crate) fn is_held(_chain: &[(i32, u64)]) -> bool {
    false
}

/// Nothing is set aside where nothing is read.
pub(crate) fn keep_reserve() {}

/// How long a process has run cannot be told here.
pub(crate) fn run_age(_process: &ProcessIdentity) -> Option<Duration> {
    None
}
