//! Tests dev shells, sandboxes and the `auto` backend on the command line.

use std::fs;
use std::process::{Command, Stdio};

use wharf_backend::conformance::left_out;

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
    if !there {
        left_out("nix is not here: `cargo xtask setup` installs it");
    }
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
    // A builder that is killed leaves its directory behind.
    command.env("TMPDIR", wharf.home());
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

#[test]
fn a_restart_that_would_be_refused_leaves_the_session_alone() {
    let wharf = Wharf::on_this_host();
    let (work, given) = (wharf.home().join("work"), wharf.home().join("given"));
    fs::create_dir_all(&work).expect("the home is ours");
    fs::create_dir(&given).expect("the home is ours");
    let options = ["-w", work.to_str().expect("UTF-8"), "--sandbox", "--sandbox-write"];
    let options = [&options[..], &[given.to_str().expect("UTF-8")]].concat();
    wharf.start("live", &options, &["sleep", "600"]);
    let pid = || wharf.json(&["show", "live", "--json"])["pid"].as_i64();
    let before = pid();
    fs::remove_dir(&given).expect("it is empty");
    std::os::unix::fs::symlink(&work, &given).expect("a link");
    let refused = wharf.run(&["restart", "live"]);
    assert_eq!(refused.code, 5, "{refused:#?}");
    assert!(refused.err.contains("given is now a link to"), "{refused:#?}");
    assert_eq!(pid(), before, "it was stopped for a start that cannot be");
    assert_eq!(wharf.run(&["restart", "live", "--repin"]).code, 0);
    assert_ne!(pid(), before);
}

#[test]
fn a_sandbox_path_that_the_session_swapped_is_refused_until_somebody_accepts_it() {
    let wharf = Wharf::on_this_host();
    let (work, outside) = (wharf.home().join("work"), wharf.home().join("outside"));
    fs::create_dir_all(work.join("given")).expect("the home is ours");
    fs::create_dir(&outside).expect("the home is ours");
    let script = "echo run; echo x > given/mark; rm -r given; ln -s \"$OUT\" given; exit 3";
    let (dir, given) = (work.to_str().expect("UTF-8"), work.join("given"));
    let out = format!("OUT={}", outside.display());
    let place = ["run", "-d", "--name", "swap", "-w", dir, "-e", &out, "--restart", "on-failure"];
    let rules = ["--sandbox", "--sandbox-write", given.to_str().expect("UTF-8"), "--", "bash", "-c", script];
    let ran = wharf.run(&[&place[..], &rules].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    // The policy does not accept it, and does not go on trying.
    let shown = || wharf.json(&["show", "swap", "--json"]);
    assert!(until(|| shown()["state"] == "exited"), "{}", shown());
    let detail = shown()["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.contains("given is now a link to"), "{}", shown());
    let refused = wharf.run(&["restart", "swap"]);
    assert_eq!(refused.code, 5, "{refused:#?}");
    assert!(refused.err.contains("--repin"), "{refused:#?}");
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 0, "nothing was written there");
    let page = wharf.run(&["show", "swap"]).out;
    assert!(page.contains("pinned") && page.contains("the directory with inode"), "{page}");
    assert_eq!(wharf.run(&["restart", "swap", "--repin"]).code, 0);
    assert!(until(|| outside.join("mark").exists()), "what was accepted is in force");
}

#[test]
fn auto_takes_the_flake_that_is_there_where_one_asks_for_it() {
    let wharf = Wharf::on_this_host();
    flake(&wharf, "FOO = \"bar\";");
    let script = "echo \"FOO is $FOO.\"; exec cat";
    let asked = ["run", "-d", "-b", "auto", "--nix", "auto"];
    let start = |name: &str, more: &[&str]| {
        let ran = run(&wharf, &[&asked, more, &["--name", name, "--", "sh", "-c", script]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        wharf.until_log(name, "FOO is ");
        String::from_utf8_lossy(&wharf.log(name)).into_owned()
    };
    let log = start("with", &[]);
    assert!(log.contains("FOO is bar."), "{log}");
    let shown = wharf.json(&["show", "with", "--json"]);
    let chosen = shown["chosen"].as_str().unwrap_or_default();
    assert!(chosen.contains("is the first of") && chosen.contains("the flake"), "{shown}");
    // Nobody asked for it, or there is none.
    let plain = run(&wharf, &["run", "-d", "-b", "auto", "--name", "plain", "--", "sh", "-c", script]);
    assert_eq!(plain.code, 0, "{plain:?}");
    wharf.until_log("plain", "FOO is .");
    let log = start("none", &["-w", wharf.home().to_str().expect("UTF-8")]);
    assert!(log.contains("FOO is ."), "{log}");
    wharf.ok(&["kill", "--all"]);
    clear(&wharf);
}
