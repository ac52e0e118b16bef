use std::fs;
use std::process::{Command, Stdio};

use crate::support::{Ran, Wharf, until};

/// The variables by which nix keeps to the instance's own directory.
const PLACES: [(&str, &str); 4] = [
    ("NIX_CONF_DIR", "nix/conf"),
    ("NIX_STORE_DIR", "nix/store"),
    ("NIX_STATE_DIR", "nix/var"),
    ("NIX_LOG_DIR", "nix/log"),
];

/// A flake with one shell, and a nix that needs no network.
fn flake(wharf: &Wharf, attributes: &str) {
    let there = Command::new("nix").arg("--version").output().is_ok_and(|ran| ran.status.success());
    assert!(there, "nix is not here: `cargo xtask setup` installs it");
    let home = wharf.home();
    fs::create_dir_all(home.join("nix/conf")).expect("the home is ours");
    fs::create_dir_all(home.join("flake")).expect("the home is ours");
    let registry = home.join("nix/conf/registry.json");
    fs::write(&registry, r#"{"flakes":[],"version":2}"#).expect("the home is ours");
    let settings = format!(
        "experimental-features = nix-command flakes\nsandbox = false\nbuild-users-group =\nsubstituters =\n\
         warn-dirty = false\nflake-registry = {}\n",
        registry.display()
    );
    fs::write(home.join("nix/conf/nix.conf"), settings).expect("the home is ours");
    let system = format!("{}-linux", std::env::consts::ARCH);
    let text = format!(
        "{{ outputs = {{ self }}: let system = \"{system}\"; in {{ devShells.${{system}}.default = derivation {{\n\
         name = \"dev\"; inherit system; builder = \"/bin/bash\"; args = [ \"-c\" \"echo > $out\" ];\n\
         outputs = [ \"out\" ]; {attributes} }}; }}; }}\n"
    );
    fs::write(home.join("flake/flake.nix"), text).expect("the home is ours");
}

fn command(wharf: &Wharf, args: &[&str]) -> Command {
    let mut command = wharf.command(args);
    command.current_dir(wharf.home().join("flake"));
    command.envs(PLACES.map(|(name, below)| (name, wharf.home().join(below))));
    command
}

fn run(wharf: &Wharf, args: &[&str]) -> Ran {
    command(wharf, args).output().expect("wharf runs").into()
}

/// Nix takes the right to write from what it stores, which would keep the directory from being removed.
fn clear(wharf: &Wharf) {
    let store = wharf.home().join("nix/store");
    let _ = Command::new("chmod").args(["-R", "u+w"]).arg(store).status();
}

#[test]
fn a_session_runs_in_a_dev_shell_and_says_so() {
    // A container has a home of its own; dev shells there have a suite of their own.
    let wharf = Wharf::on_this_host();
    flake(&wharf, "FOO = \"bar\"; shellHook = \"export HOOKED=yes\";");
    let ready = run(&wharf, &["env", "prepare", "--json"]);
    assert_eq!(ready.code, 0, "{ready:?}");
    assert!(ready.out.contains("captured") && ready.err.contains("capturing the dev shell"), "{ready:?}");
    let again = run(&wharf, &["env", "prepare"]);
    assert!(!again.err.contains("capturing"), "{again:?}");

    let script = "echo \"$FOO/$HOOKED/$HOME\"";
    let plain = run(&wharf, &["run", "-d", "--no-tty", "-n", "one", "--nix", "--", "sh", "-c", script]);
    assert_eq!(plain.code, 0, "{plain:?}");
    wharf.ok(&["wait", "one"]);
    assert_eq!(wharf.ok(&["logs", "one"]), format!("bar//{}\n", wharf.home().display()));
    let hooked = [
        "run",
        "-d",
        "--no-tty",
        "-n",
        "two",
        "--nix",
        ".",
        "--nix-hook",
        "--sandbox",
        "--",
        "sh",
        "-c",
        script,
    ];
    let hooked = run(&wharf, &hooked);
    assert_eq!(hooked.code, 0, "{hooked:?}");
    wharf.ok(&["wait", "two"]);
    assert_eq!(wharf.ok(&["logs", "two"]), format!("bar/yes/{}\n", wharf.home().display()));
    let shown = wharf.json(&["show", "two", "--json"]);
    let said = shown["environment"].to_string();
    assert!(said.contains("dev shell of") && said.contains("shellHook is run"), "{said}");
    assert_eq!(shown["isolation"], "sandbox");
    assert!(wharf.ok(&["show", "two"]).contains("inside     nix"));

    let broken = run(&wharf, &["run", "-d", "--nix", "#missing", "--", "true"]);
    assert_eq!(broken.code, 7, "{broken:?}");
    assert!(broken.err.contains("missing"), "{broken:?}");
    assert_eq!(wharf.json(&["ls", "--json"]).as_array().map(Vec::len), Some(2));
    clear(&wharf);
}

#[test]
fn whoever_interrupts_a_preparation_ends_the_build() {
    let wharf = Wharf::new();
    let mark = format!("600.3{}", std::process::id());
    let began = wharf.home().join("began");
    let script =
        format!("export PATH=/usr/bin:/bin; echo > {}; setsid sleep {mark}; exit 0", began.display());
    flake(
        &wharf,
        &format!(
            "TOOL = derivation {{ name = \"tool\"; inherit system; builder = \"/bin/bash\"; args = [ \"-c\" ''{script}'' ]; }};"
        ),
    );
    let mut child = command(&wharf, &["run", "-d", "--nix", "--", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("wharf runs");
    let builders = || {
        let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
            .filter(|line| line.windows(mark.len()).any(|part| part == mark.as_bytes()))
            .count()
    };
    assert!(until(|| began.exists() && builders() > 0), "the build has not begun");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(until(|| builders() == 0), "something of the build is left");
    assert_eq!(wharf.ok(&["ls", "--json"]).trim(), "[]");
    clear(&wharf);
}

#[test]
fn a_sandbox_keeps_to_its_directory_and_says_so() {
    // A container is one already.
    let wharf = Wharf::on_this_host();
    let (dir, secret) = (wharf.home().join("work"), wharf.home().join("secret"));
    fs::create_dir(&dir).unwrap();
    fs::write(&secret, "secret").unwrap();
    let script = format!(
        "cat {0} 2>/dev/null || echo closed; echo x > {0} || echo closed; echo y > mine; cat mine",
        secret.display()
    );
    let dir = dir.to_str().unwrap();
    let args = [
        "run",
        "-d",
        "--no-tty",
        "-n",
        "one",
        "-w",
        dir,
        "--sandbox",
        "--sandbox-network",
        "off",
        "--",
        "sh",
        "-c",
        &script,
    ];
    wharf.ok(&args);
    wharf.ok(&["wait", "one"]);
    let seen: Vec<String> = wharf.ok(&["logs", "one"]).lines().map(str::to_owned).collect();
    assert_eq!(seen.iter().filter(|line| *line == "closed").count(), 2, "{seen:?}");
    assert!(seen.contains(&"y".to_owned()), "{seen:?}");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    let page = wharf.ok(&["show", "one"]);
    assert!(page.contains("inside     sandbox: no network, no Unix sockets"), "{page}");
    let missing = wharf.run(&["run", "-d", "--sandbox", "--sandbox-read", "/no/such/path", "--", "true"]);
    assert_eq!(missing.code, 2, "{missing:?}");
}

#[test]
fn auto_says_what_was_chosen_and_never_falls_back_from_a_container() {
    // It chooses.
    let wharf = Wharf::on_this_host();
    let config = wharf.home().join(".config/wharf");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[backends]\nauto = ['docker', 'local']\n").unwrap();
    wharf.ok(&["run", "-d", "-n", "one", "-b", "auto", "--", "sleep", "600"]);
    let session = wharf.json(&["show", "one", "--json"]);
    assert_eq!(session["backend"], "local");
    assert!(session["chosen"].as_str().is_some_and(|why| why.starts_with("local is the first")), "{session}");
    let mut command = wharf.command(&[
        "run",
        "-d",
        "-b",
        "auto",
        "--image",
        "no-such-image-of-wharf",
        "--pull",
        "never",
        "--",
        "true",
    ]);
    let ran: Ran = command.output().expect("wharf runs").into();
    assert_ne!(ran.code, 0, "{ran:?}");
    wharf.ok(&["kill", "one"]);
    assert_eq!(wharf.json(&["ls", "--json"]).as_array().map(Vec::len), Some(1));
}
