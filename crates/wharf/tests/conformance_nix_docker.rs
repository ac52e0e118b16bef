//! The suite that every backend runs, with sessions of a real Docker in a dev shell that was captured on the host.

use std::sync::Arc;

use wharf_backend::conformance::{Dressed, Subject, Tools};
use wharf_container::{ContainerBackend, Flavour, Options};
use wharf_model::{Container, Nix, Text, Volume};

#[path = "../../backends/container/tests/support/engine.rs"]
mod engine;
#[path = "../../environments/nix/tests/support/mod.rs"]
mod nix;

wharf_backend::conformance_suite!(async || {
    let engine = engine::TestEngine::get(Flavour::Docker).await;
    let ground = nix::Ground::new();
    let (flake, work) = (ground.flake("flake", "FOO = \"bar\";"), ground.path("work"));
    for dir in [&work, &ground.path("store")] {
        std::fs::create_dir_all(dir).expect("a directory");
    }
    let options =
        Options { endpoint: Some(engine.endpoint()), ..Options::new(Flavour::Docker, &ground.home()) };
    let (environment, settings) = (ground.environment(), ground.settings());
    let mut tools = Tools::host("/bin/sh");
    tools.starts = 10;
    tools.adds = nix::ADDS.into_iter().chain(["system"]).map(Text::from).collect();
    let volume =
        |path: &std::path::Path, read_only| Volume { source: path.into(), target: path.into(), read_only };
    let container = Container {
        network: Some("none".into()),
        volumes: vec![volume(&work, false), volume(&ground.path("store"), true)],
        ..Container::of(engine::IMAGE)
    };
    let open = move || {
        let docker = Arc::new(ContainerBackend::new(options.clone()));
        Arc::new(Dressed::new(docker, environment.clone()).told(settings.clone())) as Arc<_>
    };
    Subject::new(&work, tools, open)
        .at(ground.home())
        .shaped(move |spec| {
            spec.container = Some(Box::new(container.clone()));
            spec.nix = Some(Box::new(Nix { flake: flake.as_path().into(), ..Nix::default() }));
        })
        .keep((ground, engine))
});
