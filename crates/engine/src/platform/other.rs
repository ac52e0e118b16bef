//! Stands in for the Linux calls where there is no Linux: it knows nothing and says so.

use std::time::Duration;

use wharf_model::ProcessIdentity;

/// Nothing tells here which files are written to.
pub(crate) struct Watches;

impl Watches {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn add(&self, _dir: &std::path::Path) -> std::io::Result<Option<i32>> {
        Ok(None)
    }

    pub(crate) fn remove(&self, _number: i32) {}

    pub(crate) async fn changed_dirs(&self) -> std::io::Result<Vec<i32>> {
        std::future::pending().await
    }
}

/// Who owns a terminal cannot be told here.
pub(crate) fn foreground(_pid: i32) -> Option<crate::observe::seen::Foreground> {
    None
}

/// Where a file system puts a directory is its own affair here.
pub(crate) fn with_spread_dirs<T>(_parent: &std::path::Path, make: impl FnOnce() -> T) -> T {
    make()
}

/// How long a process has run cannot be told here.
pub(crate) fn run_age(_process: &ProcessIdentity) -> Option<Duration> {
    None
}
