//! Tests `wharf cp` in both directions, through pipes, and against sandboxes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{Wharf, until};

/// A tree to copy, below the user's home.
fn tree(wharf: &Wharf) {
    let root = wharf.home().join("src");
    fs::create_dir_all(root.join("sub")).expect("files of the test");
    fs::write(root.join("f"), "text\n").expect("files of the test");
    fs::set_permissions(root.join("f"), fs::Permissions::from_mode(0o640)).expect("files of the test");
    fs::write(root.join("sub/g"), vec![7; 200_000]).expect("files of the test");
    symlink("f", root.join("l")).expect("files of the test");
    fs::create_dir(wharf.home().join("there")).expect("files of the test");
}

#[test]
fn files_go_in_and_out_by_the_rules_that_people_know() {
    // A container that is gone has no directory any more; the rules there are tried with the containers.
    let wharf = Wharf::on_this_host();
    tree(&wharf);
    wharf.start("one", &["-w", "there"], &["sleep", "600"]);
    let there = wharf.home().join("there");
    // A directory that is there gets the copy in it, a name that is not there is the copy's.
    wharf.ok(&["cp", "src", "one:"]);
    assert_eq!(fs::read(there.join("src/sub/g")).unwrap(), vec![7; 200_000]);
    assert_eq!(fs::read_link(there.join("src/l")).unwrap().to_str(), Some("f"));
    wharf.ok(&["cp", "src", "one:new"]);
    wharf.ok(&["cp", "src/.", "one:new/sub/"]);
    assert!(there.join("new/f").is_file() && there.join("new/sub/sub/g").is_file());
    wharf.ok(&["cp", "src/f", "one:new/g"]);
    assert_eq!(fs::metadata(there.join("new/g")).unwrap().permissions().mode() & 0o777, 0o640);
    // And back.
    let told = wharf.json(&["cp", "one:src", "back", "--json"]);
    assert_eq!(
        (&told["bytes"], &told["entries"], &told["left_out"]),
        (&200_005.into(), &5.into(), &0.into())
    );
    assert_eq!(fs::read_to_string(wharf.home().join("back/f")).unwrap(), "text\n");
    wharf.ok(&["cp", "one:src/l", "link"]);
    assert!(fs::symlink_metadata(wharf.home().join("link")).unwrap().is_symlink());
    wharf.ok(&["cp", "-L", "one:src/l", "followed"]);
    assert_eq!(fs::read_to_string(wharf.home().join("followed")).unwrap(), "text\n");
    let absolute = format!("one:{}", there.join("src/f").display());
    wharf.ok(&["cp", &absolute, "./with:colon"]);
    assert!(wharf.home().join("with:colon").is_file());
    // One that has ended still has its directory.
    wharf.ok(&["kill", "one"]);
    wharf.ok(&["cp", "one:src/f", "after"]);
}

#[test]
fn an_archive_comes_and_goes_by_pipes() {
    // In a container the engine reads the archive, and it is the engine that complains of it.
    let wharf = Wharf::on_this_host();
    tree(&wharf);
    wharf.start("one", &["-w", "there"], &["sleep", "600"]);
    wharf.ok(&["cp", "src", "one:"]);
    let archive = wharf.run(&["cp", "one:src", "-"]);
    assert_eq!(archive.code, 0, "{archive:#?}");
    fs::create_dir(wharf.home().join("there/other")).unwrap();
    let ran = wharf.run_with(&["cp", "-", "one:other"], &archive.bytes);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read(wharf.home().join("there/other/src/sub/g")).unwrap(), vec![7; 200_000]);
    // One that breaks off, or is none, is no success.
    let ran = wharf.run_with(&["cp", "-", "one:other"], &archive.bytes[..archive.bytes.len() / 2]);
    assert!(ran.code == 2 && ran.err.contains("breaks off"), "{ran:#?}");
    assert_eq!(wharf.run_with(&["cp", "-", "one:other"], &vec![b'x'; 4096]).code, 2);
    assert_eq!(wharf.run_with(&["cp", "-", "one:none"], &archive.bytes).code, 3);
}

#[test]
fn what_cannot_be_copied_says_why() {
    let wharf = Wharf::new();
    tree(&wharf);
    wharf.start("one", &["-w", "there"], &["sleep", "600"]);
    for (args, code, words) in [
        (["cp", "one:none", "x"], 3, "there is no none in session one"),
        (["cp", "none", "one:x"], 3, "cannot read none"),
        (["cp", "src/f", "one:no/such/"], 3, "there is no directory"),
        (["cp", "src/f", "nobody:x"], 3, "there is no session \"nobody\""),
        (["cp", "src", "there"], 2, "neither side is a session"),
        (["cp", "one:a", "one:b"], 2, "both sides are sessions"),
        (["cp", "src/f/", "one:x"], 2, "is no directory"),
        (["cp", "/dev/null", "one:x"], 2, "is a device"),
    ] {
        let ran = wharf.run(&args);
        assert_eq!(ran.code, code, "{args:?}: {ran:#?}");
        assert!(ran.err.contains(words), "{args:?}: {ran:#?}");
    }
    wharf.ok(&["cp", "src/f", "one:f"]);
    let ran = wharf.run(&["cp", "src", "one:f"]);
    assert!(ran.code == 2 && ran.err.contains("a directory cannot take its place"), "{ran:#?}");
}

#[test]
fn a_sandbox_does_not_lead_a_copy_out_of_its_directory() {
    // A container is one already.
    let wharf = Wharf::on_this_host();
    tree(&wharf);
    fs::create_dir(wharf.home().join("private")).unwrap();
    fs::write(wharf.home().join("private/secret"), "secret").unwrap();
    let script = "ln -s ../private out; ln -s ../private/secret s; mkdir in; echo inner > in/f; echo ready; exec sleep 600";
    wharf.start("box", &["--sandbox", "-w", "there"], &["sh", "-c", script]);
    wharf.until_log("box", "ready");
    for args in [
        ["cp", "src/f", "box:out/f"],
        ["cp", "src/f", "box:../private/f"],
        ["cp", "box:out/secret", "got"],
        ["cp", "box:../private/secret", "got"],
        ["cp", "box:/etc/passwd", "got"],
    ] {
        let ran = wharf.run(&args);
        assert_eq!(ran.code, 5, "{args:?}: {ran:#?}");
    }
    // A link is a link, whoever follows it later.
    wharf.ok(&["cp", "-L", "box:s", "got"]);
    assert!(fs::symlink_metadata(wharf.home().join("got")).unwrap().is_symlink());
    assert_eq!(fs::read_dir(wharf.home().join("private")).unwrap().count(), 1);
    wharf.ok(&["cp", "box:in/f", "fine"]);
    wharf.ok(&["cp", "src/f", "box:in/"]);
    assert_eq!(fs::read_to_string(wharf.home().join("fine")).unwrap(), "inner\n");
    assert_eq!(fs::read_to_string(wharf.home().join("there/in/f")).unwrap(), "text\n");
}

#[test]
fn one_session_does_not_copy_from_another() {
    // From inside a container no daemon is reached at all.
    let wharf = Wharf::on_this_host();
    tree(&wharf);
    wharf.start("one", &["-w", "there"], &["sleep", "600"]);
    let program = env!("CARGO_BIN_EXE_wharf");
    let script = format!("{program} cp one:. stolen; echo code $?");
    wharf.start("two", &[], &["sh", "-c", &script]);
    wharf.until_log("two", "code 5");
    assert!(until(|| !wharf.home().join("stolen").exists()));
}
