//! A small run of the suite over real agents: the two that install and start fastest, every case once.

use std::path::Path;
use std::process::Command;

use wharf_backend::conformance::left_out;
use wharf_tool_support::instance;

const SUITE: &str = env!("CARGO_BIN_EXE_wharf-agent-suite");

fn suite(args: &[&str]) -> (bool, String) {
    let mut command = Command::new(SUITE);
    command.args(["--only", "claude,codex"]).args(args);
    let output = command.output().expect("the suite runs");
    let shown =
        [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
    (output.status.success(), shown)
}

#[test]
fn claude_and_codex_get_every_message_exactly_once() {
    let (installed, shown) = suite(&["--install", "--rounds", "0", "--wharf", "/bin/true"]);
    if !installed {
        eprintln!("{shown}");
        left_out("the agents cannot be installed here");
    }
    let wharf = instance::build_beside(Path::new(SUITE)).expect("wharf builds");
    let wharf = wharf.to_str().expect("a path that is UTF-8");
    let (passed, shown) = suite(&["--jobs", "2", "--wharf", wharf]);
    assert!(passed, "{shown}");
}
