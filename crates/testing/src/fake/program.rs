//! Finds or builds the fake agent's program, and installs its profile.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The profile of the agents that misbehave: `profiles/fake.toml` in a configuration directory.
pub const PROFILE: &str = include_str!("profile.toml");

/// The name that the profile gives them.
pub const NAME: &str = "fake";

/// Puts the profile where a Wharf with this HOME finds it.
pub fn install_profile(home: &Path) -> std::io::Result<()> {
    let dir = home.join(".config/wharf/profiles");
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join(format!("{NAME}.toml")), PROFILE)
}

/// Where `wharf-fake-agent` is: beside the tests of a whole build, else it is built now.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    // Tests are built into `deps`, programs beside it.
    let dir = test.parent().map(|dir| if dir.ends_with("deps") { dir.parent().unwrap_or(dir) } else { dir });
    let program = dir.expect("a test is in a directory").join("wharf-fake-agent");
    if !program.is_file() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--package", "wharf-testing", "--bins"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().is_ok_and(|status| status.success()), "wharf-fake-agent does not build");
    }
    program
}
