//! Where no shell is captured, nix starts the command, and that is said.

use wharf_backend::Environment;
use wharf_model::{Capabilities, Nix, Text};

use crate::support::{Ground, host, run};

#[tokio::test]
async fn nix_starts_the_command_when_asked() {
    let ground = Ground::new();
    let dir =
        ground.flake("flake", "FOO = \"bar\"; PATH = \"/usr/bin:/bin\"; shellHook = \"export HOOKED=yes\";");
    let mut launch = ground.launch(&dir, "echo \"$FOO $HOOKED $0\"");
    launch.argv.push("$(touch never) 'quoted'".into());
    launch.spec.nix = Some(Box::new(Nix { wrapped: true, ..Nix::default() }));
    let launch = ground.environment().apply(launch, &host()).await.unwrap();
    assert_eq!(run(&launch), "bar yes $(touch never) 'quoted'\n");
    assert!(launch.spec.in_force[0].contains("nix develop"), "{:?}", launch.spec.in_force);
    assert!(!dir.join("never").exists());
}

#[tokio::test]
async fn a_place_of_its_own_uses_its_own_nix() {
    let ground = Ground::new();
    let dir = ground.flake("flake", "FOO = \"bar\";");
    let launch = ground.launch(&dir, "true");
    let (before, argv) = (launch.env.clone(), launch.argv.clone());
    let place = Capabilities { isolation: true, ..Capabilities::default() };
    let launch = ground.environment().apply(launch, &place).await.unwrap();
    assert_eq!(launch.argv[0], Text::from("nix"));
    assert!(launch.argv.ends_with(&argv));
    assert_eq!(launch.env, before);
    assert!(launch.spec.in_force[0].contains("nix develop"), "{:?}", launch.spec.in_force);
    assert!(!ground.home().state().exists(), "nothing was captured on this host");
}
