//! Tests that secrets are private files of a live session and stand nowhere else.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Ran, Wharf, until};

const VALUE: &str = "hunter2-very-secret";

/// Whether any file below a directory has the value in it.
fn leaks(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(leaks(&path)),
            Ok(kind) if kind.is_file() => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                if bytes.windows(VALUE.len()).any(|part| part == VALUE.as_bytes()) {
                    found.push(path.display().to_string());
                }
            }
            _ => {}
        }
    }
    found
}

fn run(wharf: &Wharf, args: &[&str]) -> Ran {
    wharf.command(args).env("MY_KEY", VALUE).output().unwrap().into()
}

/// Starts a session whose secrets come from everywhere, and looks at them from inside.
fn looks_at_them(wharf: &Wharf, name: &str, place: &[&str]) {
    std::fs::write(wharf.home().join("key"), VALUE).unwrap();
    let script = "for name in a b c d; do \
                  printf '%s is %s long\\n' $name \"$(wc -c < \"$WHARF_SECRETS/$name\")\"; done; echo \"and ${MY_KEY-no variable}\"; echo done; exec sleep 1000";
    let options = [
        &["run", "-d", "--name", name][..],
        place,
        &["--secret", "a=env:MY_KEY", "--secret", "b=key", "--secret", "c=file:key"],
        &["--secret", "d=command:printf '%s\\n' \"$MY_KEY\"", "--", "sh", "-c", script],
    ]
    .concat();
    let started = run(wharf, &options);
    assert_eq!(started.code, 0, "{started:#?}");
    wharf.until_log(name, "done");
    let log = String::from_utf8_lossy(&wharf.log(name)).into_owned();
    assert!(log.contains("and no variable"), "{log}");
    for secret in ["a", "b", "c", "d"] {
        assert!(log.contains(&format!("{secret} is {} long", VALUE.len())), "{log}");
    }
}

#[test]
fn secrets_are_private_files_while_the_session_lives_and_stand_nowhere_else() {
    let wharf = Wharf::on_this_host();
    looks_at_them(&wharf, "one", &["--restart", "always"]);
    let dir = wharf.state().join("names/one/secrets");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&dir.join("a"))), (0o700, 0o400));
    let dir = dir.canonicalize().unwrap();
    let leaked = leaks(&wharf.state());
    let names: Vec<String> =
        ["a", "b", "c", "d"].iter().map(|name| dir.join(name).display().to_string()).collect();
    let session = dir.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let elsewhere: Vec<&String> =
        leaked.iter().filter(|file| !file.contains(&session) || !file.contains("/secrets/")).collect();
    assert!(elsewhere.is_empty() && leaked.len() == names.len(), "{leaked:?}");
    for words in [
        &["show", "one"][..],
        &["show", "one", "--json"],
        &["ls", "--json"],
        &["explain", "one"],
        &["env", "one"],
    ] {
        let shown = wharf.run(words);
        assert!(!shown.out.contains(VALUE) && !shown.err.contains(VALUE), "{shown:#?}");
    }
    // Another run by the policy, under another daemon, has them too.
    wharf.kill_daemon();
    wharf.ok(&["signal", "one", "KILL"]);
    let lines = || String::from_utf8_lossy(&wharf.log("one")).matches("done").count();
    assert!(until(|| lines() == 2), "{}", String::from_utf8_lossy(&wharf.log("one")));
    // They go with the session, and are not looked up again.
    wharf.ok(&["kill", "one"]);
    assert!(until(|| !dir.exists()), "{} is left", dir.display());
    let leaked = leaks(&wharf.state());
    assert!(leaked.is_empty(), "{leaked:?}");
    let again = wharf.run(&["restart", "one"]);
    assert!(again.code != 0 && again.err.contains("secret") && again.err.contains("hint: "), "{again:#?}");
}

#[test]
fn a_sandbox_and_a_pane_read_their_secrets() {
    let wharf = Wharf::on_this_host();
    looks_at_them(&wharf, "pane", &["-b", "tmux"]);
    looks_at_them(&wharf, "walled", &["--sandbox"]);
}

#[test]
fn what_cannot_be_looked_up_starts_nothing() {
    let wharf = Wharf::on_this_host();
    for reference in
        ["a=env:NOT_SET_HERE", "a=file:none", "a=command:echo x; exit 3", "a=", "=x", "../a=env:MY_KEY"]
    {
        let ran = run(&wharf, &["run", "-d", "--secret", reference, "--", "true"]);
        assert_eq!(ran.code, 2, "{reference}: {ran:#?}");
        assert!(!ran.err.contains(VALUE), "{ran:#?}");
    }
    let twice =
        run(&wharf, &["run", "-d", "--secret", "a=env:MY_KEY", "--secret", "a=env:MY_KEY", "--", "true"]);
    assert_eq!(twice.code, 2, "{twice:#?}");
    assert_eq!(wharf.ok(&["ls", "-q"]), "");
    assert!(leaks(&wharf.state()).is_empty(), "{:?}", leaks(&wharf.state()));
    // One without any has no variable of another session's.
    let mut command =
        wharf.command(&["run", "-d", "--name", "none", "--", "sh", "-c", "echo \"<$WHARF_SECRETS>\""]);
    let started: Ran = command.env("WHARF_SECRETS", "/elsewhere").output().unwrap().into();
    assert_eq!(started.code, 0, "{started:#?}");
    wharf.until_log("none", "<>");
}
