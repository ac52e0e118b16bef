//! The suite that every backend runs, with sessions of this host in a sandbox.

use std::sync::Arc;

use wharf_backend::conformance::{Dressed, Subject, Tools, needs_namespaces};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Home, Sandbox};
use wharf_sandbox::{Guarded, SandboxEnvironment};

wharf_backend::conformance_suite!(async || {
    // Cases are in the reach of the instance's own directory, which is hidden from them.
    needs_namespaces();
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().to_owned();
    let options = Options::new(&Home::below(&root));
    let environment =
        Arc::new(SandboxEnvironment::new(options.holder.clone(), Guarded::of(&Home::below(&root))));
    let mut tools = Tools::host("/bin/sh");
    tools.adds = vec!["TMPDIR".into(), "WHARF_CHANNEL".into()];
    tools.state = false;
    tools.descriptors = vec![wharf_boundary::channel::NUMBER.to_string()];
    let open = move || {
        let local = Arc::new(LocalBackend::new(options.clone()));
        Arc::new(Dressed::new(local, environment.clone())) as Arc<_>
    };
    let write = root.clone();
    Subject::new(&root, tools, open)
        // Cases run in directories below, and leave files beside them.
        .shaped(move |spec| {
            spec.sandbox =
                Some(Box::new(Sandbox { write: vec![write.as_path().into()], ..Sandbox::default() }));
        })
        .keep(dir)
});
