//! Kills a child process when its handle is dropped.

use std::process::Child;

/// A process that ends with us.
pub(crate) struct Kept(pub(crate) Child);

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
