//! A shell is captured once, and again when something changes that decides it.

use wharf_backend::Environment;
use wharf_model::{Change, Code, Nix, Text};

use crate::support::{Ground, captured, flake, host, prepared, run};

#[tokio::test]
async fn a_shell_is_captured_once() {
    let ground = Ground::new();
    let dir = ground.flake("flake", "FOO = \"bar\";");
    let environment = ground.environment();
    let launch = ground.launch(&dir, "echo $FOO");
    assert!(captured(&prepared(&environment, &launch).await.unwrap()));
    assert!(!captured(&prepared(&environment, &launch).await.unwrap()));
    // Also for the next daemon.
    assert!(!captured(&prepared(&ground.environment(), &launch).await.unwrap()));
    let launch = environment.apply(launch, &host()).await.unwrap();
    assert_eq!(launch.argv[0], Text::from("/bin/sh"), "nothing stands before the command");
    assert_eq!(run(&launch), "bar\n");
    let [said] = launch.spec.in_force.as_slice() else { panic!("{:?}", launch.spec.in_force) };
    assert!(said.contains(&*dir.to_string_lossy()) && said.contains("captured"), "{said}");
}

#[tokio::test]
async fn whatever_decides_it_captures_it_again() {
    let ground = Ground::new();
    let dir = ground.path("flake");
    let attributes = "FOO = (import ./other.nix).foo; BAR = builtins.readFile ./bar.txt;";
    ground.flake("flake", attributes);
    ground.write("flake/other.nix", "{ foo = \"one\"; }");
    ground.write("flake/bar.txt", "one");
    ground.write("flake/main.rs", "one");
    let environment = ground.environment();
    let launch = ground.launch(&dir, "echo $FOO $BAR");
    assert!(captured(&prepared(&environment, &launch).await.unwrap()));
    for (file, text, again) in [
        ("flake/main.rs", "two".to_owned(), false),
        ("flake/other.nix", "{ foo = \"two\"; }".to_owned(), true),
        ("flake/bar.txt", "two".to_owned(), true),
        ("flake/flake.nix", flake(&format!("{attributes} NEW = \"x\";")), true),
        ("flake/sub/unused.nix", "{}".to_owned(), true),
        ("flake/flake.lock", r#"{"nodes":{"root":{}},"root":"root","version":7}"#.to_owned(), true),
    ] {
        ground.write(file, &text);
        assert_eq!(captured(&prepared(&environment, &launch).await.unwrap()), again, "{file}");
    }
    let mut other = launch.clone();
    other.env.push(("NIX_CONFIG".into(), "cores = 1".into()));
    assert!(captured(&prepared(&environment, &other).await.unwrap()), "another setting of nix");
    let launch = environment.apply(launch, &host()).await.unwrap();
    assert_eq!(run(&launch), "two two\n");
}

#[tokio::test]
async fn what_belongs_to_the_build_does_not_come_along() {
    let ground = Ground::new();
    let dir =
        ground.flake("flake", "FOO = \"bar\"; PATH = \"/shell/bin\"; KEPT = \"shell\"; MINE = \"shell\";");
    let mut launch = ground.launch(&dir, "true");
    launch.env.push(("MINE".into(), "mine".into()));
    launch.spec.env.changes.push(Change::Set("MINE".into(), "mine".into()));
    let before = launch.env.clone();
    let launch = ground.environment().apply(launch, &host()).await.unwrap();
    let var = |name: &str| {
        let found = launch.env.iter().find(|(n, _)| n.as_bytes() == name.as_bytes());
        found.map(|(_, value)| value.lossy().into_owned())
    };
    for (name, value) in before.iter().filter(|(name, _)| name.as_bytes() != b"PATH") {
        assert_eq!(var(&name.lossy()), Some(value.lossy().into_owned()), "{name:?} is the session's own");
    }
    for noise in
        ["NIX_BUILD_TOP", "TEMP", "TEMPDIR", "TMP", "PWD", "OLDPWD", "out", "shellHook", "NIX_LOG_FD"]
    {
        assert_eq!(var(noise), None, "{noise}");
    }
    assert_eq!(var("KEPT").as_deref(), Some("shell"));
    assert_eq!(var("PATH").as_deref(), Some("/shell/bin:/usr/local/bin:/usr/bin:/bin"));
}

#[tokio::test]
async fn a_cache_of_the_users_choice_is_used() {
    let ground = Ground::new();
    let dir = ground.flake("flake", "FOO = \"bar\";");
    let mut launch = ground.launch(&dir, "true");
    let cache = ground.path("my cache");
    launch.spec.nix = Some(Box::new(Nix { cache: Some(cache.as_path().into()), ..Nix::default() }));
    ground.environment().apply(launch.clone(), &host()).await.unwrap();
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
    assert!(!ground.home().state().join("environments").exists());
    launch.spec.nix = Some(Box::new(Nix { cache: Some("relative".into()), ..Nix::default() }));
    assert_eq!(ground.environment().apply(launch, &host()).await.unwrap_err().code, Code::Invalid);
}

#[tokio::test]
async fn failures_say_what_nix_said() {
    let ground = Ground::new();
    let environment = ground.environment();
    let broken = ground.flake("broken", "FOO = throw \"the thing is not there\";");
    let failure = environment.apply(ground.launch(&broken, "true"), &host()).await.unwrap_err();
    assert_eq!(failure.code, Code::Unavailable);
    assert!(failure.message.contains("the thing is not there"), "{}", failure.message);

    let plain = ground.flake("plain", "FOO = \"bar\";");
    let mut launch = ground.launch(&plain, "true");
    launch.spec.nix = Some(Box::new(Nix::parse("#missing")));
    let failure = environment.apply(launch, &host()).await.unwrap_err();
    assert!(failure.message.contains("missing"), "{}", failure.message);

    let mut launch = ground.launch(&plain, "true");
    launch.spec.dir = ground.path("home").into();
    let failure = environment.apply(launch, &host()).await.unwrap_err();
    assert_eq!(failure.code, Code::Invalid);
    assert!(failure.hint.is_some());
}
