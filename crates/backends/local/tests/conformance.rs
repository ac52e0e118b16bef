//! The suite that every backend runs, on this host, with nothing skipped.

use std::sync::Arc;

use wharf_backend::conformance::{Subject, Tools};
use wharf_local::{LocalBackend, Options};
use wharf_model::Home;

wharf_backend::conformance_suite!(async || {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options::new(&Home::below(dir.path()));
    let root = dir.path().to_owned();
    Subject::new(&root, Tools::host("/bin/sh"), move || Arc::new(LocalBackend::new(options.clone())))
        .keep(dir)
});
