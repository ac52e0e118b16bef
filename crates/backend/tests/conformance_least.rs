//! A backend that can do next to nothing passes as well, by saying so.

use std::sync::Arc;

use wharf_backend::Capabilities;
use wharf_backend::conformance::{Subject, Tools};
use wharf_backend::fake::FakeBackend;

wharf_backend::conformance_suite!(async || {
    let can = Capabilities { pipes: true, ..Capabilities::default() };
    let (dir, backend) = (tempfile::tempdir().expect("a directory"), FakeBackend::with("least", can));
    let root = dir.path().to_owned();
    Subject::new(&root, Tools::fake(), move || Arc::new(backend.clone())).keep(dir)
});
