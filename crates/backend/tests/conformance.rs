//! The fake keeps the contract as far as it goes, and the suite can be used from outside.

use std::sync::Arc;

use wharf_backend::conformance::{Subject, Tools};
use wharf_backend::fake::FakeBackend;

wharf_backend::conformance_suite!(async || {
    let (dir, backend) = (tempfile::tempdir().expect("a directory"), FakeBackend::new());
    let root = dir.path().to_owned();
    Subject::new(&root, Tools::fake(), move || Arc::new(backend.clone())).keep(dir)
});
