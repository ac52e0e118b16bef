//! How a test makes a run that must work.

use std::path::Path;
use std::process::Command;

use wharf_backend::conformance::left_out;
use wharf_tool_support::instance;

/// Makes a run on the `wharf` that was built beside the program, which must work and say this.
pub(crate) fn run(name: &str, args: &[&str], says: &str) {
    let engine = args.iter().any(|arg| ["docker", "podman"].contains(arg));
    if engine && !rustix::process::geteuid().is_root() {
        left_out("an engine of the tests' own needs root");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_wharf-stress"));
    let wharf = instance::build_beside(program).expect("wharf builds");
    let mut stress = Command::new(program);
    stress.arg(name).arg("--wharf").arg(wharf).args(args);
    let output = stress.output().expect("wharf-stress runs");
    let shown =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if engine && shown.contains("is not here: `cargo xtask setup`") {
        left_out("the engine is not here: `cargo xtask setup` installs it");
    }
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains(says), "{shown}");
}
