//! Terminals: its own works, and those of others are not there.

use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::Ground;

/// Somebody else's terminal on this host, and its path.
fn bystander() -> (OwnedFd, String) {
    let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&outer).expect("it is ours");
    unlockpt(&outer).expect("it is ours");
    rustix::io::ioctl_fionbio(&outer, true).expect("it is ours");
    let name = ptsname(&outer, Vec::new()).expect("it has a name");
    (outer, name.into_string().expect("a plain name"))
}

#[tokio::test]
async fn terminals_of_others_are_not_there() {
    let ground = Ground::new();
    let (outer, path) = bystander();
    assert!(std::path::Path::new(&path).exists());
    for script in [format!("echo typed > {path}"), format!("cat {path}"), format!("stat {path}")] {
        ground.refused(&script).await;
    }
    let mut seen = [0; 64];
    let read = std::fs::File::from(outer).read(&mut seen);
    assert!(read.is_err(), "{:?} came out of the terminal", read.map(|count| seen[..count].to_vec()));
}

#[tokio::test]
async fn a_terminal_of_its_own_works() {
    let ground = Ground::new();
    let inner = "tty; test -t 0 && echo at-terminal; : > /dev/tty && echo controls; echo shown > $(tty)";
    // The one that it is started on, as a holder would.
    let launch = ground.apply(&["bash", "-ic", inner]).await.unwrap();
    let words: Vec<String> =
        launch.argv.iter().map(|word| format!("'{}'", word.lossy().replace('\'', "'\\''"))).collect();
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &words.join(" "), "/dev/null"]).current_dir(ground.path("inside"));
    let ran = command.stdin(std::process::Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}");
    for word in ["/dev/", "at-terminal", "controls", "shown"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("not a tty") && !said.contains("no job control"), "{said}");
    // And one that it makes itself.
    let own = "script -qec 'tty; echo made' /dev/null < /dev/null";
    let said = ground.prints(own).await;
    assert!(said.contains("/dev/pts/") && said.contains("made"), "{said}");
}
