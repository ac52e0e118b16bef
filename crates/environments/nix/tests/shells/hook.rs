//! The shellHook runs when it is asked for, and not else.

use wharf_backend::Environment;
use wharf_model::Nix;

use crate::support::{Ground, host, run};

#[tokio::test]
async fn the_hook_runs_when_it_is_asked_for() {
    let ground = Ground::new();
    let dir = ground.flake(
        "flake",
        "FOO = \"bar\"; shellHook = \"echo hooked in $PWD; export HOOKED=\\\"$FOO two\\\"\";",
    );
    let environment = ground.environment();
    let script = "echo \"got $HOOKED$0\"";
    let launch = environment.apply(ground.launch(&dir, script), &host()).await.unwrap();
    assert_eq!(run(&launch), "got /bin/sh\n");
    let mut launch = ground.launch(&dir, script);
    launch.spec.nix = Some(Box::new(Nix { hook: true, ..Nix::default() }));
    launch.argv.push("$(touch never) 'quoted'".into());
    let launch = environment.apply(launch, &host()).await.unwrap();
    let expected = format!("hooked in {}\ngot bar two$(touch never) 'quoted'\n", dir.display());
    assert_eq!(run(&launch), expected);
    assert!(launch.spec.in_force.iter().any(|said| said.contains("shellHook is run")));
}

#[tokio::test]
async fn a_shell_without_a_hook_says_so() {
    let ground = Ground::new();
    let dir = ground.flake("flake", "FOO = \"bar\";");
    let mut launch = ground.launch(&dir, "echo $FOO");
    launch.spec.nix = Some(Box::new(Nix { hook: true, ..Nix::default() }));
    let launch = ground.environment().apply(launch, &host()).await.unwrap();
    assert_eq!(run(&launch), "bar\n");
    assert!(launch.spec.in_force.iter().any(|said| said.contains("no shellHook")));
}
