//! The backend of the example keeps the contract: the suite that every backend runs.

use std::sync::Arc;

use wharf_backend::conformance::{Subject, Tools};
use wharf_model::Home;

#[path = "../examples/outside_backend/frugal.rs"]
mod frugal;

wharf_backend::conformance_suite!(async || {
    let dir = tempfile::tempdir().expect("a directory");
    let (root, home) = (dir.path().to_owned(), Home::below(dir.path()));
    Subject::new(&root, Tools::host("/bin/sh"), move || Arc::new(frugal::Frugal::new(&home))).keep(dir)
});
