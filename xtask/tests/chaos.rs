//! A small chaos run: the same code as the large ones that are run by hand.

mod support;

fn chaos(args: &[&str]) {
    support::task("chaos", &[&["--seed", "7"], args].concat(), "nothing lost");
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
