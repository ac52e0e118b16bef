//! The suite that every backend runs, with sessions of a real Docker in a dev shell that was captured on the host.

use std::sync::Arc;

use wharf_backend::conformance::{Dressed, Subject, Tools};
use wharf_backend::{Backend, OutputChunk};
use wharf_container::{ContainerBackend, Flavour, Options};
use wharf_model::{Container, Nix, Offset, Text, Volume};

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

/// An image with a nix of its own, which is what there is where the host's store is not seen.
#[tokio::test]
async fn the_images_own_nix_starts_the_command_elsewhere() {
    let engine = engine::TestEngine::get(Flavour::Docker).await;
    let ground = nix::Ground::new();
    let flake = ground.flake("flake", "FOO = \"bar\"; PATH = \"/usr/bin:/bin\";");
    let options =
        Options { endpoint: Some(engine.endpoint()), ..Options::new(Flavour::Docker, &ground.home()) };
    let mut launch = ground.launch(&flake, "echo \"$FOO $(pwd)\"");
    // Paths that the container makes for itself: it does not see the ground's. The host's nix looks at them too.
    let own = ground.path("own");
    for (name, value) in &mut launch.env {
        match name.as_bytes() {
            b"NIX_STORE_DIR" => *value = own.join("store").into(),
            b"NIX_STATE_DIR" => *value = own.join("var").into(),
            b"NIX_LOG_DIR" => *value = own.join("log").into(),
            b"HOME" | b"TMPDIR" => *value = "/tmp".into(),
            _ => {}
        }
    }
    let see = |path: std::path::PathBuf| Volume {
        source: path.as_path().into(),
        target: path.as_path().into(),
        read_only: true,
    };
    launch.spec.tty = false;
    launch.spec.container = Some(Box::new(Container {
        network: Some("none".into()),
        // The host's programs, and so its nix.
        volumes: vec![see("/usr".into()), see(flake.clone()), see(ground.path("conf"))],
        ..Container::of(engine::IMAGE)
    }));
    std::fs::create_dir_all(ground.home().sessions()).expect("a directory");
    let docker = Dressed::new(Arc::new(ContainerBackend::new(options)), ground.environment());
    let (ticket, connection) = docker.start(launch).await.expect("it starts");
    assert!(ticket.spec.in_force[0].contains("the place's own `nix develop`"), "{:?}", ticket.spec.in_force);
    let exit = connection.wait().await.expect("it ends");
    let mut output = connection.output(Offset(0)).await.expect("its output");
    let mut seen = Vec::new();
    while let Ok(Some(OutputChunk::Data { bytes, .. })) = output.next().await {
        seen.extend_from_slice(&bytes);
    }
    let seen = String::from_utf8_lossy(&seen);
    assert_eq!(exit.code, Some(0), "{seen}");
    assert!(seen.ends_with(&format!("bar {}\n", flake.display())), "{seen}");
    docker.sweep(&ticket).await.expect("nothing is left");
}
