//! A small chaos run: the same code as the large ones that are run by hand.

mod support;

fn chaos(args: &[&str]) {
    support::run("chaos", &[&["--seed", "7"], args].concat(), "nothing lost");
}

#[test]
fn ten_kills_of_the_daemon_lose_nothing() {
    chaos(&["--agents", "5", "--kills", "10"]);
}

#[test]
fn ten_kills_of_holders_lose_nothing() {
    chaos(&["--agents", "5", "--kills", "10", "--holders"]);
}

#[test]
fn ten_kills_of_the_daemon_lose_nothing_on_tmux() {
    chaos(&["--agents", "4", "--kills", "10", "--backend", "tmux"]);
}

#[test]
fn ten_kills_of_the_daemon_lose_nothing_on_docker() {
    chaos(&["--agents", "3", "--kills", "10", "--backend", "docker"]);
}

#[test]
fn ten_kills_of_the_daemon_lose_nothing_on_podman() {
    chaos(&["--agents", "3", "--kills", "10", "--backend", "podman"]);
}

#[test]
fn kills_of_everything_on_a_full_disk_lose_nothing_in_silence() {
    let root = rustix::process::geteuid().is_root();
    let can = root
        && std::process::Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|it| it.success());
    if !can {
        wharf_backend::conformance::left_out("a disk cannot be mounted here");
    }
    chaos(&["--agents", "4", "--kills", "30", "--rate", "30000", "--everything"]);
}
