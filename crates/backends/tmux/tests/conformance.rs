//! The suite that every backend runs, in panes of a real tmux.

use std::sync::Arc;

use wharf_backend::conformance::{Subject, Tools};
use wharf_model::Home;
use wharf_tmux::{Options, TmuxBackend};

wharf_backend::conformance_suite!(async || {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options::new(&Home::below(dir.path()));
    let root = dir.path().to_owned();
    Subject::new(&root, Tools::host("/bin/sh"), move || Arc::new(TmuxBackend::new(options.clone()))).keep(dir)
});
