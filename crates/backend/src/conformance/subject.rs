//! Describes the backend under test: how to open it, and what its sessions need.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wharf_model::{Home, Spec};

use super::Tools;
use crate::Backend;

/// A backend to be tried, in an empty home of its own.
pub struct Subject {
    pub(super) root: PathBuf,
    pub(super) home: Home,
    pub(super) tools: Tools,
    pub(super) open: Box<dyn Fn() -> Arc<dyn Backend> + Send + Sync>,
    pub(super) shape: Box<dyn Fn(&mut Spec) + Send + Sync>,
    kept: Box<dyn Any + Send + Sync>,
}

impl Subject {
    /// A subject whose home and whose working directories are below `root`, an empty directory.
    ///
    /// `open` makes the backend. It is called again to see what a new one finds of what an earlier one started.
    pub fn new(
        root: &Path,
        tools: Tools,
        open: impl Fn() -> Arc<dyn Backend> + Send + Sync + 'static,
    ) -> Self {
        let home = Home::below(root);
        let (open, shape, kept) = (Box::new(open), Box::new(|_: &mut Spec| ()), Box::new(()));
        Self { root: root.to_owned(), home, tools, open, shape, kept }
    }

    /// Gives every session what the place needs beyond a command, such as an image.
    #[must_use]
    pub fn shaped(mut self, shape: impl Fn(&mut Spec) + Send + Sync + 'static) -> Self {
        self.shape = Box::new(shape);
        self
    }

    /// Keeps sessions in this home in place of one below `root`.
    #[must_use]
    pub fn at(mut self, home: Home) -> Self {
        self.home = home;
        self
    }

    /// Keeps something, such as a temporary directory, for as long as the case runs.
    #[must_use]
    pub fn keep(mut self, kept: impl Any + Send + Sync) -> Self {
        self.kept = Box::new((self.kept, kept));
        self
    }
}
