//! A small run of the suite over real agents: the two that install and start fastest, every case once.

mod support;

use std::process::Command;

use wharf_backend::conformance::left_out;

fn xtask(args: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = command.args(args).output().expect("xtask runs");
    let shown =
        [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
    (output.status.success(), shown)
}

#[test]
fn claude_and_codex_get_every_message_exactly_once() {
    let agents = ["agents", "--only", "claude,codex"];
    let (installed, shown) =
        xtask(&[&agents[..], &["--install", "--rounds", "0", "--wharf", "/bin/true"]].concat());
    if !installed {
        eprintln!("{shown}");
        left_out("the agents cannot be installed here");
    }
    let wharf = support::wharf();
    let wharf = wharf.to_str().expect("a path that is UTF-8");
    let (passed, shown) = xtask(&[&agents[..], &["--jobs", "2", "--wharf", wharf]].concat());
    assert!(passed, "{shown}");
}
