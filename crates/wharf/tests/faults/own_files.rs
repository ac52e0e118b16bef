//! Links, pipes, directories and second names in the place of our own files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::ground::Ground;
use crate::support::{lives, until};

/// Puts something in the place of a file of ours; what it points to is `victim`.
type Plant = (&'static str, fn(&Path, &Path));

const WAYS: [Plant; 5] = [
    ("a link", |path, victim| symlink(victim, path).unwrap()),
    ("a link to nowhere", |path, victim| symlink(victim.with_extension("nowhere"), path).unwrap()),
    ("a second name", |path, victim| fs::hard_link(victim, path).unwrap()),
    ("a pipe", |path, _| {
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
    }),
    ("a directory", |path, _| fs::create_dir(path).unwrap()),
];

fn plant(way: fn(&Path, &Path), path: &Path, victim: &Path) {
    fs::write(victim, "precious\n").unwrap();
    let _ = fs::remove_file(path);
    way(path, victim);
}

#[track_caller]
fn untouched(how: &str, victim: &Path) {
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious\n", "{how}: {}", victim.display());
    assert!(!victim.with_extension("nowhere").exists(), "{how}: it was made");
}

#[test]
fn what_stands_in_the_place_of_the_instances_files_is_put_aside() {
    const FILES: [&str; 4] = ["daemon.lock", "daemon.log", "store.db", "store.db-wal"];
    for (how, way) in WAYS {
        let ground = Ground::new();
        ground.start("live", &[], &["cat"]);
        let pid = ground.pid("live");
        ground.ok(&["daemon", "stop"]);
        let victim = |name: &str| ground.home().join(format!("victim-{name}"));
        for name in FILES {
            plant(way, &ground.state().join(name), &victim(name));
        }
        assert_eq!(ground.pid("live"), pid, "{how}");
        ground.ok(&["write", "live", "hello\r"]);
        for name in FILES {
            untouched(how, &victim(name));
            let meta = fs::symlink_metadata(ground.state().join(name)).unwrap();
            assert!(meta.is_file(), "{how}: {name} is {:?}", meta.file_type());
        }
        let log = fs::read_to_string(ground.state().join("daemon.log")).unwrap();
        for name in ["daemon.lock", "daemon.log"] {
            let said = format!("{name} was put aside as {name}.aside.0");
            assert!(log.contains(&said), "{how}: {said:?} is not in {log}");
        }
        assert!(log.contains("the store could not be read"), "{how}: {log}");
    }
}

#[test]
fn what_stands_in_the_place_of_a_sessions_journals_is_put_aside() {
    for (how, way) in WAYS {
        let ground = Ground::new();
        ground.start("live", &[], &["cat"]);
        let dir = ground.show("live")["path"].as_str().unwrap().to_owned();
        ground.ok(&["daemon", "stop"]);
        let victim = |name: &str| ground.home().join(format!("victim-{name}"));
        for name in ["events", "messages", "screen"] {
            plant(way, &Path::new(&dir).join(name), &victim(name));
        }
        ground.ok(&["send", "live", "hello"]);
        // The state is told as an event.
        let told = || !ground.ok(&["events", "live", "--json"]).is_empty();
        assert!(until(told), "{how}: nothing was told");
        for name in ["events", "messages", "screen"] {
            untouched(how, &victim(name));
        }
        for name in ["events", "messages"] {
            let meta = fs::symlink_metadata(Path::new(&dir).join(name)).unwrap();
            assert!(meta.is_file(), "{how}: {name} is {:?}", meta.file_type());
            assert!(fs::symlink_metadata(Path::new(&dir).join(format!("{name}.aside.0"))).is_ok(), "{how}");
        }
    }
}

#[test]
fn a_copy_of_output_never_goes_where_the_session_leads_it() {
    let ground = Ground::new();
    let work = ground.home().join("work");
    let away = ground.home().join("away");
    fs::create_dir(&work).unwrap();
    fs::create_dir(&away).unwrap();
    let victim = ground.home().join("victim");
    fs::write(&victim, "precious\n").unwrap();
    let copy = work.join("copy");
    let copy = copy.to_str().unwrap();
    ground.start("one", &["--log", copy], &["cat"]);
    ground.ok(&["write", "one", "first\r"]);
    let text = || fs::read_to_string(copy).unwrap_or_default();
    assert!(until(|| text().contains("first")), "it is copied");
    ground.ok(&["daemon", "stop"]);
    // What a session can do that writes there.
    fs::remove_file(copy).unwrap();
    symlink(&victim, copy).unwrap();
    ground.ok(&["ls"]);
    ground.ok(&["write", "one", "evil\r"]);
    let log = || fs::read_to_string(ground.state().join("daemon.log")).unwrap();
    assert!(until(|| log().contains("output could not be copied")), "{}", log());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious\n");
    ground.ok(&["daemon", "stop"]);
    fs::remove_file(copy).unwrap();
    fs::remove_dir(&work).unwrap();
    symlink(&away, &work).unwrap();
    ground.ok(&["ls"]);
    assert!(until(|| log().contains("its directory is another one")), "{}", log());
    assert_eq!(fs::read_dir(&away).unwrap().count(), 0, "something was made there");
    // A pipe is not waited for.
    let pipe = ground.home().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let ran = ground.run(&["pipe", "one", pipe.to_str().unwrap()]);
    assert!(ran.code != 0 && ran.err.contains("not a file"), "{ran:#?}");
}

#[test]
fn what_stands_in_the_place_of_a_ticket_is_never_opened() {
    for (how, way) in WAYS {
        let ground = Ground::new();
        for name in ["spoilt", "well"] {
            ground.start(name, &[], &["cat"]);
        }
        let (pid, ticket) =
            (ground.pid("spoilt"), ground.show("spoilt")["path"].as_str().unwrap().to_owned());
        let ticket = Path::new(&ticket).join("ticket.json");
        ground.ok(&["daemon", "stop"]);
        let (saved, victim) = (fs::read(&ticket).unwrap(), ground.home().join("victim"));
        plant(way, &ticket, &victim);
        // The session next to it is found and answers; nothing waits for what was planted, and nothing follows it.
        ground.ok(&["write", "well", "hello\r"]);
        assert!(ground.ok(&["ls"]).contains("well"), "{how}");
        assert!(lives(pid), "{how}: the session was ended");
        untouched(how, &victim);
        let log = fs::read_to_string(ground.state().join("daemon.log")).unwrap();
        assert!(log.contains("ticket cannot be read"), "{how}: {log}");
        // With its ticket back the session is there again.
        ground.ok(&["daemon", "stop"]);
        let put_aside = fs::remove_file(&ticket).or_else(|_| fs::remove_dir(&ticket));
        put_aside.unwrap();
        fs::write(&ticket, &saved).unwrap();
        assert_eq!(ground.pid("spoilt"), pid, "{how}");
    }
}
