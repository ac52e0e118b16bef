//! Whatever the umask is, everything is the user's alone, and the command has the umask of its caller.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::ground::Ground;
use crate::support::Ran;

/// A command of the program as a shell with this umask runs it.
fn with_umask(ground: &Ground, umask: &str, args: &[&str]) -> Ran {
    let plain = ground.command(args);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"])
        .arg(plain.get_program())
        .args(plain.get_args());
    command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(ground.home()).stdin(std::process::Stdio::null());
    command.output().expect("sh runs").into()
}

fn check(path: &Path, seen: &mut Vec<String>) {
    let meta = fs::symlink_metadata(path).unwrap();
    if meta.is_symlink() {
        return;
    }
    let mode = meta.permissions().mode() & 0o7777;
    // To execute a socket means nothing.
    let wanted: &[u32] = if meta.is_dir() {
        &[0o700]
    } else if meta.is_file() {
        &[0o600]
    } else {
        &[0o600, 0o700]
    };
    assert!(wanted.contains(&mode), "{} has mode {mode:o}", path.display());
    assert_eq!(meta.uid(), rustix::process::geteuid().as_raw());
    seen.push(path.file_name().unwrap().to_string_lossy().into_owned());
    if meta.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            check(&entry.unwrap().path(), seen);
        }
    }
}

#[test]
fn everything_is_private_whatever_the_umask_is() {
    for umask in ["000", "777", "077", "022"] {
        let ground = Ground::new();
        let prompt = ground.home().join("text");
        fs::write(&prompt, "secret").unwrap();
        let options =
            ["run", "-d", "--name", "one", "--prompt-file", prompt.to_str().unwrap(), "--motd", "hello"];
        let ran = with_umask(&ground, umask, &[&options[..], &["--", "sh", "-c", "umask; read x"]].concat());
        assert_eq!(ran.code, 0, "umask {umask}: {ran:#?}");
        let ran = with_umask(
            &ground,
            umask,
            &["run", "-d", "--name", "over", "--no-tty", "--", "sh", "-c", "echo x; exit 3"],
        );
        assert_eq!(ran.code, 0, "umask {umask}: {ran:#?}");
        assert_eq!(with_umask(&ground, umask, &["wait", "over"]).code, 3);
        ground.until_log("one", &format!("0{umask}"));
        ground.ok(&["rename", "over", "over2"]);
        ground.kill_daemon();
        assert_eq!(with_umask(&ground, umask, &["ls"]).code, 0);
        let mut seen = Vec::new();
        check(&ground.state(), &mut seen);
        for file in [
            "ticket.json",
            "exit.json",
            "sock",
            "log",
            "daemon.sock",
            "daemon.lock",
            "daemon.log",
            "store.db",
            "prompt",
            "names",
        ] {
            assert!(seen.iter().any(|name| name == file), "{file} was not looked at: {seen:?}");
        }
    }
}

#[test]
fn a_state_directory_that_is_open_to_others_is_closed() {
    let ground = Ground::new();
    fs::create_dir_all(ground.state().join("sessions")).unwrap();
    for dir in [ground.state(), ground.state().join("sessions")] {
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    }
    ground.start("one", &[], &["cat"]);
    check(&ground.state(), &mut Vec::new());
}
