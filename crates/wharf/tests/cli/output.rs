//! Tests error output, help, completions, manuals and faults of the configuration.

use serde_json::Value;

use crate::support::{Pty, Wharf};

#[test]
fn failures_are_for_people_or_for_programs() {
    let wharf = Wharf::new();
    let people = wharf.run(&["show", "missing"]);
    assert_eq!(people.code, 3);
    assert!(people.err.starts_with("wharf: ") && people.out.is_empty(), "{people:#?}");
    let program = wharf.run(&["show", "missing", "--json"]);
    assert_eq!(program.code, 3);
    let failure: Value = serde_json::from_str(&program.err).unwrap();
    assert_eq!(failure["code"], "not_found");
    assert!(program.out.is_empty(), "{program:#?}");
}

#[test]
fn help_versions_completions_and_manuals_need_no_daemon() {
    let wharf = Wharf::new();
    assert!(wharf.ok(&[]).contains("wharf run --name demo"));
    assert!(wharf.ok(&["help", "run"]).contains("--restart"));
    assert!(wharf.ok(&["help", "exit-codes"]).contains("124"));
    assert!(wharf.ok(&["version"]).starts_with("wharf "));
    assert!(wharf.ok(&["completions", "bash"]).contains("_wharf"));
    let pages = wharf.home().join("man");
    wharf.ok(&["man", "-o", pages.to_str().unwrap()]);
    assert!(std::fs::read_to_string(pages.join("wharf-run.1")).unwrap().contains("EXIT STATUS"));
    assert_eq!(wharf.run(&["nonsense"]).code, 2);
    assert_eq!(wharf.daemon_pid(), None);
}

#[test]
fn a_wrong_configuration_names_its_line() {
    // A backend that is named goes before the configuration's.
    let wharf = Wharf::on_this_host();
    let file = wharf.home().join(".config/wharf/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "detach_keys = \"ctrl-a\"\nbackend = 5\n").unwrap();
    let ran = wharf.run(&["run", "-d", "--", "true"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.err.contains("config.toml:2:11: "), "{ran:#?}");
}

#[test]
fn the_manual_is_readable_on_a_terminal() {
    let wharf = Wharf::on_this_host();
    // Where nothing sets pages, it is the help.
    let mut command = wharf.command(&["man"]);
    command.env("PATH", wharf.home());
    let mut pty = Pty::spawn(command, (100, 30));
    assert_eq!(pty.end(), 0);
    let shown = pty.shown();
    assert!(shown.contains("Usage:") && !shown.contains(".SH"), "{shown}");
    // For a file it is the page.
    assert!(wharf.ok(&["man"]).contains(".SH"));
}
