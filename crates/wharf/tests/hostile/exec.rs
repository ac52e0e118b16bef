//! `exec` and `cp` beside somebody who waits for it.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::place::{COMMAND_TIMEOUT, Place, SECRET, at};
use crate::support::{Pty, until};

at! { a_command_in_a_container_never_has_the_callers_terminal:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    sandbox = Place::new(Sandbox),
    shared = Place::new(Shared(Docker)),
}

fn a_command_in_a_container_never_has_the_callers_terminal(place: &Place) {
    place.start("evil", &[], &["terminal", "questions"]);
    place.report("evil", 1);
    // A child stays with the terminal when the command has ended, and reads what comes next.
    let thief = "exec 3<&0; (trap '' HUP TTIN; while read -r line <&3; do echo \"$line\" >> $HOSTILE_REPORTS/stolen; done) & sleep 0.2; echo over";
    let reports = match place.program().as_str() {
        "/hostile" => "/reports".to_owned(),
        _ => place.text("reports"),
    };
    let script = format!("export HOSTILE_REPORTS={reports}; {thief}");
    for terminal in ["-t", "-T"] {
        let args = ["exec", terminal, "evil", "--", "sh", "-c", &script];
        let mut pty = Pty::spawn(in_a_shell(place, &args), (80, 24));
        pty.until("back");
        pty.type_in(b"my password\r");
        let shell_has_it = until(|| {
            pty.take_in();
            pty.shown().contains("shell has <my password>")
        });
        let stolen = std::fs::read_to_string(place.path("reports/stolen")).unwrap_or_default();
        assert!(shell_has_it && !stolen.contains("password"), "{:?} {terminal}: {stolen}", place.kind);
    }
    place.clear();
}

at! { keys_that_are_pushed_inside_reach_no_terminal_of_the_caller:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    far = Place::new(Far(Docker)),
    sandbox = Place::new(Sandbox),
}

fn keys_that_are_pushed_inside_reach_no_terminal_of_the_caller(place: &Place) {
    // The session itself pushes keys into its own terminal for as long as somebody is attached, too.
    place.start("evil", &[], &["type", "forever"]);
    place.report("evil", 1);
    let program = place.program();
    let exec = ["exec", "-t", "evil", "--", &program, "--once", "type", "now"];
    let pipes = ["exec", "-T", "evil", "--", &program, "--once", "type", "now"];
    for (args, ends) in [(&exec[..], false), (&pipes, false), (&["attach", "evil"], true)] {
        let mut pty = Pty::spawn(in_a_shell(place, args), (80, 24));
        if ends {
            pty.until("detach with ctrl-\\");
            pty.type_in(b"\x1c");
        }
        pty.until("back");
        pty.type_in(b"mine\r");
        let read = until(|| {
            pty.take_in();
            pty.shown().contains("shell has <")
        });
        assert!(
            read && pty.shown().contains("shell has <mine>"),
            "{:?} {args:?}: {}",
            place.kind,
            pty.shown()
        );
    }
    place.clear();
}

/// A command in a shell that stands for the user's: it has the same terminal before and after, and reads a line of it then.
fn in_a_shell(place: &Place, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    let wharf = place.command(args);
    shell.args(["-c", "\"$@\"; echo back; read -r line; echo \"shell has <$line>\"", "sh"]);
    shell.arg(wharf.get_program()).args(wharf.get_args()).env_clear();
    shell.envs(wharf.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

at! { a_copy_is_not_led_out_by_a_directory_that_changes:
    local = Place::new(Local),
    sandbox = Place::new(Sandbox),
}

fn a_copy_is_not_led_out_by_a_directory_that_changes(place: &Place) {
    let private = place.text("private");
    for number in 0..40 {
        place.make_dir(&format!("work/tree-{number}"));
        place.write(&format!("work/tree-{number}/file"), "mine");
    }
    place.make_dir("work/swapped");
    place.write("work/swapped/secret", "mine");
    let room = format!("HOSTILE_ROOM={}", place.text("work"));
    place.attack("evil", &["-e", &room], &["race", "swapped", &private]);
    let began = Instant::now();
    let mut copies = 0;
    while began.elapsed() < Duration::from_secs(4) {
        let to = place.make_dir(&format!("copy-{copies}"));
        place.within(COMMAND_TIMEOUT, &["cp", "-q", "evil:.", &to.display().to_string()]);
        let copied = find(&to);
        assert!(!copied.contains(SECRET), "{:?}: copy {copies} has the secret", place.kind);
        std::fs::remove_dir_all(&to).expect("ours");
        copies += 1;
    }
    assert!(until(|| copies > 2), "{copies} copies are no race");
    place.must_be_untouched();
    place.clear();
}

/// All that stands in the files of a tree.
fn find(dir: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => text += &find(&entry.path()),
            Ok(kind) if kind.is_file() => text += &std::fs::read_to_string(entry.path()).unwrap_or_default(),
            _ => {}
        }
    }
    text
}
