//! A flake is read as git has it, or whole where git does not have all of it.

use std::path::Path;
use std::process::Command;

use wharf_backend::Environment;
use wharf_model::Nix;

use crate::support::{Ground, captured, host, prepared, run};

fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(dir).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
    let ran = command.output().expect("git is here");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[tokio::test]
async fn what_git_does_not_know_is_not_copied() {
    let ground = Ground::new();
    let dir = ground.flake("repo/sub", "SRC = \"${self}\";");
    ground.write("repo/sub/known", "");
    git(&ground.path("repo"), &["init", "-q"]);
    git(&ground.path("repo"), &["add", "."]);
    ground.write("repo/sub/build/large", "");
    let launch = ground.launch(&dir, "find $SRC -type f | sed 's,.*/,,' | sort | tr '\\n' ' '");
    let launch = ground.environment().apply(launch, &host()).await.unwrap();
    let seen = run(&launch);
    assert!(seen.contains("known") && !seen.contains("large"), "{seen}");
}

#[tokio::test]
async fn a_dirty_tree_is_read_as_it_is() {
    let ground = Ground::new();
    let dir = ground.flake("repo", "FOO = (import ./new.nix).foo;");
    git(&dir, &["init", "-q"]);
    git(&dir, &["add", "."]);
    // Git does not know this one: nix would not see it by way of git.
    ground.write("repo/new.nix", "{ foo = \"one\"; }");
    let environment = ground.environment();
    let launch = environment.apply(ground.launch(&dir, "echo $FOO"), &host()).await.unwrap();
    assert_eq!(run(&launch), "one\n");
    git(&dir, &["add", "."]);
    ground.write("repo/new.nix", "{ foo = \"two\"; }");
    let launch = environment.apply(ground.launch(&dir, "echo $FOO"), &host()).await.unwrap();
    assert_eq!(run(&launch), "two\n");
}

#[tokio::test]
async fn a_reference_is_captured_again_when_it_has_moved_on() {
    let ground = Ground::new();
    let dir = ground.flake("repo", "FOO = \"one\";");
    git(&dir, &["init", "-q"]);
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-q", "-m", "one"]);
    let environment = ground.environment();
    let launch = || {
        let mut launch = ground.launch(&ground.path("home"), "echo $FOO");
        launch.spec.nix = Some(Box::new(Nix::parse(&format!("git+file://{}", dir.display()))));
        launch
    };
    assert!(captured(&prepared(&environment, &launch()).await.unwrap()));
    assert!(!captured(&prepared(&environment, &launch()).await.unwrap()));
    ground.flake("repo", "FOO = \"two\";");
    git(&dir, &["commit", "-q", "-a", "-m", "two"]);
    let launch = environment.apply(launch(), &host()).await.unwrap();
    assert_eq!(run(&launch), "two\n");
}

#[tokio::test]
async fn odd_directories_and_those_below_work() {
    let ground = Ground::new();
    let environment = ground.environment();
    for name in ["with space", "a#b?c", "größe", "plain"] {
        let dir = ground.flake(name, &format!("FOO = \"{name}\";"));
        std::fs::create_dir(dir.join("below")).unwrap();
        let launch = ground.launch(&dir.join("below"), "echo $FOO");
        let launch = environment.apply(launch, &host()).await.unwrap();
        assert_eq!(run(&launch), format!("{name}\n"));
        assert!(!captured(&prepared(&environment, &ground.launch(&dir, "")).await.unwrap()));
    }
}
