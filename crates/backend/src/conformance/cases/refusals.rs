//! What cannot be run is refused at once, with the cause, and leaves nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use wharf_model::{Code, Home, Text};

use crate::conformance::Place;

/// A command that is not there.
pub async fn a_missing_command(place: Arc<Place>) {
    let failure = place.refuse(place.launch(vec![place.tools().missing.clone()])).await;
    assert_eq!(failure.code, Code::CommandNotFound, "{failure:?}");
    let name = place.tools().missing.lossy().into_owned();
    assert!(failure.message.contains(&name), "{:?} does not name {name}", failure.message);
}

/// A bare word that is nowhere in the session's own PATH.
pub async fn a_command_that_is_not_in_its_path(place: Arc<Place>) {
    place.need_host();
    let mut launch = place.launch(vec!["sleep".into(), "600".into()]);
    launch.env[0].1 = place.make_dir("empty").into();
    let failure = place.refuse(launch).await;
    assert_eq!(failure.code, Code::CommandNotFound, "{failure:?}");
}

/// A bare word is looked for in the session's own PATH.
pub async fn a_command_is_found_by_its_path(place: Arc<Place>) {
    place.need_host();
    let dir = place.make_dir("programs");
    file(&place, "programs/a-program-of-this-case", b"#!/bin/sh\necho found \"$0\"\n", 0o755);
    let mut launch = place.launch(vec!["a-program-of-this-case".into()]);
    launch.env[0].1 = format!("/no/such/dir:{}", dir.display()).into();
    let session = place.start(launch).await;
    assert_eq!(session.ended().await.code, Some(0));
    assert_eq!(session.lines().await, format!("found {}/a-program-of-this-case\n", dir.display()));
}

/// Files that are not programs: not executable, with a missing interpreter, of no format, a directory.
pub async fn a_command_that_is_none(place: Arc<Place>) {
    place.need_host();
    let none: [(&str, PathBuf); 4] = [
        ("not executable", file(&place, "plain", b"#!/bin/sh\nexit 0\n", 0o644)),
        ("a missing interpreter", file(&place, "interpreter", b"#!/no/such/interpreter\n", 0o755)),
        ("no format", file(&place, "garbage", &[0x7f, b'E', b'L', b'F', 1, 2, 3], 0o755)),
        ("a directory", place.make_dir("a-directory")),
    ];
    for (what, path) in none {
        let failure = place.refuse(place.launch(vec![path.as_path().into()])).await;
        assert_eq!(failure.code, Code::NotExecutable, "{what}: {failure:?}");
        let name = path.display().to_string();
        assert!(failure.message.contains(&name), "{:?} does not name {name}", failure.message);
    }
}

/// More than the system takes: one argument, one variable, and all together.
pub async fn arguments_that_are_too_long(place: Arc<Place>) {
    let long = Text::from(vec![b'x'; 3 << 20]);
    let failure = place.refuse(place.script("exit 0", [long.clone()])).await;
    assert_eq!(failure.code, Code::TooLong, "{failure:?}");
    assert!(failure.message.len() < 1000, "a message of {} bytes", failure.message.len());

    let mut launch = place.shell("exit 0");
    launch.env.push(("LONG".into(), long));
    assert_eq!(place.refuse(launch).await.code, Code::TooLong);

    let many = vec![Text::from(vec![b'x'; 1000]); 10_000];
    assert_eq!(place.refuse(place.script("exit 0", many)).await.code, Code::TooLong);
}

/// A directory that is not there, or is none.
pub async fn a_directory_that_is_none(place: Arc<Place>) {
    let missing: Text = place.dir().join("no-such-directory").into();
    let mut dirs = vec![missing];
    if place.tools().host {
        dirs.push(file(&place, "a-file", b"", 0o644).into());
    }
    for dir in dirs {
        let Some(argv) = place.tools().exit(0) else { return place.need(false, "a shell") };
        let mut launch = place.launch(argv);
        launch.spec.dir = dir.clone();
        let failure = place.refuse(launch).await;
        assert_eq!(failure.code, Code::NoDirectory, "{failure:?}");
        let name = dir.lossy();
        assert!(failure.message.contains(&*name), "{:?} does not name {name}", failure.message);
    }
}

/// A second run that cannot start takes nothing of the first with it.
pub async fn a_refused_second_run_keeps_the_log(place: Arc<Place>) {
    let Some(argv) = place.tools().print("precious") else { return place.need(false, "a shell") };
    let first = place.launch(argv);
    let mut second = first.clone();
    let first = place.start(first).await;
    let log_end = first.ended().await.log_end;
    second.run = 2;
    second.argv = vec![place.tools().missing.clone()];
    let home = second.home.clone();
    let refused = place.backend().start(second).await;
    assert_eq!(refused.err().map(|failure| failure.code), Some(Code::CommandNotFound));
    let log = home.join(Home::LOG);
    let logs = std::fs::read_dir(log).expect("the log is kept").map(|file| file.expect("a file").path());
    let logs = logs.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    let kept: Vec<u8> = logs.flat_map(|path| std::fs::read(path).expect("it can be read")).collect();
    assert!(kept.starts_with(b"precious"), "{}", kept.escape_ascii());
    assert_eq!(kept.len() as u64, log_end.0);
}

fn file(place: &Place, name: &str, content: &[u8], mode: u32) -> PathBuf {
    let path = place.dir().join(name);
    std::fs::write(&path, content).expect("a file can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode can be set");
    path
}
