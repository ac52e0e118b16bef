//! A few cycles on every place: the same code as the thousands that are run by hand.

mod support;

fn cycles(args: &[&str]) {
    support::run("cycles", &[&["--count", "6"], args].concat(), "nothing left");
}

#[test]
fn a_terminal_leaves_nothing() {
    cycles(&[]);
}

#[test]
fn pipes_leave_nothing() {
    cycles(&["--pipes"]);
}

#[test]
fn a_sandbox_leaves_nothing() {
    cycles(&["--sandbox"]);
}

#[test]
fn a_dev_shell_leaves_nothing() {
    cycles(&["--nix"]);
}

#[test]
fn tmux_leaves_nothing() {
    cycles(&["--backend", "tmux"]);
}

#[test]
fn docker_leaves_nothing() {
    cycles(&["--backend", "docker"]);
}

#[test]
fn podman_leaves_nothing() {
    cycles(&["--backend", "podman"]);
}
