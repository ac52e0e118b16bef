use std::time::Duration;

use wharf_model::ProcessIdentity;

/// A process and its ancestors cannot be seen here.
pub(crate) fn ancestors(_pid: i32) -> impl Iterator<Item = (i32, u64)> {
    std::iter::empty()
}

/// How long a process has run cannot be told here.
pub(crate) fn run_age(_process: &ProcessIdentity) -> Option<Duration> {
    None
}
