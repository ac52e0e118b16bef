//! The suite that every backend runs, with sessions of this host in a captured dev shell.

use std::sync::Arc;

use wharf_backend::conformance::{Dressed, Subject, Tools};
use wharf_local::{LocalBackend, Options};
use wharf_model::{Nix, Text};

mod support;

wharf_backend::conformance_suite!(async || {
    let ground = support::Ground::new();
    let flake = ground.flake("flake", "FOO = \"bar\";");
    let (environment, settings, options) =
        (ground.environment(), ground.settings(), Options::new(&ground.home()));
    std::fs::create_dir(ground.path("work")).expect("a directory");
    let adds: Vec<Text> = support::ADDS.into_iter().chain(["system"]).map(Text::from).collect();
    let mut tools = Tools::host("/bin/sh");
    tools.adds = adds;
    let open = move || {
        let local = Arc::new(LocalBackend::new(options.clone()));
        Arc::new(Dressed::new(local, environment.clone()).told(settings.clone())) as Arc<_>
    };
    Subject::new(&ground.path("work"), tools, open)
        .at(ground.home())
        .shaped(move |spec| {
            spec.nix = Some(Box::new(Nix { flake: flake.as_path().into(), ..Nix::default() }));
        })
        .keep(ground)
});
