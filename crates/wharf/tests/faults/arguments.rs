//! Directories, arguments and variables of every kind.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::ground::Ground;
use crate::support::Ran;

fn run(ground: &Ground, args: &[&OsStr]) -> Ran {
    let mut command = ground.command(&["run", "--attach", "--no-tty"]);
    command.args(args).output().expect("wharf runs").into()
}

#[test]
fn a_session_runs_in_any_directory() {
    let ground = Ground::new();
    for name in
        [&b"with space"[..], b"new\nline", b"\xff\xfe", b"-rf", b"$(touch x)", b"'\"", "🚢".as_bytes()]
    {
        let dir = ground.home().join(OsStr::from_bytes(name));
        fs::create_dir(&dir).unwrap();
        let ran = run(&ground, &["-w".as_ref(), dir.as_os_str(), "--".as_ref(), "pwd".as_ref()]);
        assert_eq!(ran.code, 0, "{dir:?}: {ran:#?}");
        assert_eq!(ran.bytes, [dir.as_os_str().as_bytes(), b"\n"].concat(), "{dir:?}");
    }
    // Relative to where the caller is.
    let ran = run(&ground, &["-w".as_ref(), "with space".as_ref(), "--".as_ref(), "pwd".as_ref()]);
    assert_eq!(ran.out, format!("{}\n", ground.home().join("with space").display()));
    ground.ok(&["ls"]);
    ground.ok(&["ls", "--json"]);
    ground.kill_daemon();
    assert_eq!(ground.json(&["ls", "--json"]).as_array().unwrap().len(), 8);
}

#[test]
fn arguments_arrive_as_they_are() {
    let ground = Ground::new();
    let odd: Vec<OsString> = [
        &b"-"[..],
        b"--",
        b"-rf",
        b"--help",
        b"--name=x",
        b"",
        b" ",
        b"a\nb",
        b"\xff\xfe",
        b"$(touch x)",
        b"`x`",
        b"'\"\\",
        b"*",
        b"~",
        b"\x1b[2J",
        b"--version",
        b"-h",
        b"%s",
    ]
    .iter()
    .map(|bytes| OsString::from_vec(bytes.to_vec()))
    .collect();
    let mut args: Vec<&OsStr> = ["--", "printf", "%s\\0"].map(OsStr::new).to_vec();
    args.extend(odd.iter().map(OsString::as_os_str));
    let ran = run(&ground, &args);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let expected: Vec<u8> = odd.iter().flat_map(|arg| [arg.as_bytes(), b"\0"].concat()).collect();
    assert_eq!(ran.bytes, expected);
    assert!(!ground.home().join("x").exists());
    // A command whose own name begins with a dash is a command.
    let ran = ground.run(&["run", "-d", "--", "-rf"]);
    assert_eq!(ran.code, 127, "{ran:#?}");
}

#[test]
fn variables_arrive_as_they_are_and_do_nothing_to_us() {
    let ground = Ground::new();
    let mut command = ground.command(&[
        "run",
        "-a",
        "--no-tty",
        "-e",
        "LINES2=a\nb\n",
        "-e",
        "LD_PRELOAD=/nonexistent/evil.so",
    ]);
    command.args(["-e", "EMPTY=", "-e", "EQUALS=a=b=c", "-e", "WEIRD-NAME.x=1", "-e"]);
    command.arg(OsStr::from_bytes(b"BYTES=\xff\xfe")).args(["--", "env", "-0"]);
    // Of the caller's own as well.
    command.env("FROM_CALLER", "x\ny").env(OsStr::from_bytes(b"ODD\xff"), OsStr::from_bytes(b"\xfe"));
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let vars: Vec<&[u8]> = ran.bytes.split(|byte| *byte == 0).collect();
    for expected in [
        &b"LINES2=a\nb\n"[..],
        b"LD_PRELOAD=/nonexistent/evil.so",
        b"EMPTY=",
        b"EQUALS=a=b=c",
        b"WEIRD-NAME.x=1",
        b"BYTES=\xff\xfe",
        b"FROM_CALLER=x\ny",
        b"ODD\xff=\xfe",
    ] {
        assert!(vars.contains(&expected), "{:?} is missing", OsStr::from_bytes(expected));
    }
    for bad in ["=x", "A\0B=x"] {
        if !bad.contains('\0') {
            let ran = ground.run(&["run", "-d", "-e", bad, "--", "true"]);
            assert_eq!(ran.code, 2, "{bad:?}: {ran:#?}");
        }
    }
    // What is the session's does not reach the daemon or a holder.
    ground.start(
        "one",
        &["-e", "SECRET_MARK=hunter2", "-e", "LD_PRELOAD=/nonexistent/evil.so"],
        &["sleep", "1000"],
    );
    let command = ground.pid("one");
    for pid in ground.processes().into_iter().filter(|pid| *pid != command) {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        assert!(!environ.windows(11).any(|window| window == b"SECRET_MARK"), "{pid} has it");
    }
}

#[test]
fn two_megabytes_of_variables_fit_or_are_refused() {
    let ground = Ground::new();
    let file = ground.home().join("vars");
    let write = |count: usize| {
        let lines: Vec<String> = (0..count).map(|i| format!("BIG_{i}={}\n", "x".repeat(100_000))).collect();
        fs::write(&file, lines.concat()).unwrap();
    };
    let options = ["--env-file", file.to_str().unwrap()];
    write(10);
    ground.start("fits", &[&options[..], &["--no-tty"]].concat(), &["sh", "-c", "echo ${#BIG_9}"]);
    assert_eq!(ground.run(&["wait", "fits"]).code, 0);
    assert_eq!(ground.log("fits"), b"100000\n");
    for count in [30, 150] {
        write(count);
        let ran = ground.run(&[&["run", "-d", "--name", "large"], &options[..], &["--", "true"]].concat());
        assert_eq!(ran.code, 125, "{count}: {ran:#?}");
        let json = ground.run(&[&["run", "-d", "--json"], &options[..], &["--", "true"]].concat());
        assert!(json.err.contains("\"too_long\""), "{count}: {json:#?}");
        assert_eq!(ground.run(&["show", "large"]).code, 3);
    }
    // One value that no system takes.
    fs::write(&file, format!("BIG={}\n", "x".repeat(2 << 20))).unwrap();
    let ran = ground.run(&[&["run", "-d"], &options[..], &["--", "true"]].concat());
    assert_eq!(ran.code, 125, "{ran:#?}");
    assert_eq!(ground.ok(&["ls", "-q"]), "fits\n");
    assert_eq!(fs::read_dir(ground.state().join("sessions")).unwrap().count(), 1);
}
