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

    pub(crate) async fn stirred(&self) -> std::io::Result<Vec<i32>> {
        std::future::pending().await
    }
}

/// A process and its ancestors cannot be seen here.
pub(crate) fn ancestors(_pid: i32) -> Option<Vec<(i32, u64)>> {
    Some(Vec::new())
}

/// Who owns a terminal cannot be told here.
pub(crate) fn foreground(_pid: i32) -> Option<crate::attend::Foreground> {
    None
}

/// Nor what is between them.
pub(crate) fn is_held(_chain: &[(i32, u64)]) -> bool {
    false
}

/// Where a file system puts a directory is its own affair here.
pub(crate) fn apart<T>(_parent: &std::path::Path, make: impl FnOnce() -> T) -> T {
    make()
}

/// Nothing is set aside where nothing is read.
pub(crate) fn keep_reserve() {}

/// How long a process has run cannot be told here.
pub(crate) fn run_age(_process: &ProcessIdentity) -> Option<Duration> {
    None
}
