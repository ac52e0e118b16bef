use std::process::Command;

use anyhow::{Result, bail};

use crate::flags::Flags;
use crate::step::{has, in_ci, step};

/// A program that some tests or tasks need.
struct Need {
    program: &'static str,
    package: &'static str,
    by: &'static str,
}

const NEEDS: &[Need] = &[
    Need { program: "cc", package: "gcc", by: "the build of SQLite, the benchmark's floor" },
    Need { program: "tmux", package: "tmux", by: "the tests of sessions in panes, the benchmark" },
    Need { program: "nix", package: "nix-bin", by: "the tests of dev shells" },
    Need { program: "bwrap", package: "bubblewrap", by: "the test of a sandbox that it helps" },
    Need { program: "git", package: "git", by: "the tests of dev shells and worktrees" },
    Need { program: "perl", package: "perl-base", by: "the tests of sandboxes" },
    Need { program: "asciinema", package: "asciinema", by: "the test that plays an exported recording" },
    Need { program: "ps", package: "procps", by: "scripts of the tests" },
    Need { program: "node", package: "nodejs", by: "the suite over real agents" },
    Need { program: "npm", package: "npm", by: "the suite over real agents" },
    Need { program: "sshd", package: "openssh-server", by: "the tests of engines on another host" },
    Need { program: "ssh", package: "openssh-client", by: "the tests of engines on another host" },
    Need { program: "dtach", package: "dtach", by: "the benchmark" },
    Need { program: "screen", package: "screen", by: "the benchmark" },
];

/// `cargo xtask setup`
pub(crate) fn task(flags: Flags) -> Result<()> {
    flags.finish()?;
    let missing = missing();
    if missing.is_empty() {
        println!("everything that the tests need is here");
        return Ok(());
    }
    let failed = if may_install() { install(&missing).err() } else { None };
    let missing = self::missing();
    for need in &missing {
        println!("missing: {} (package {}): left out: {}", need.program, need.package, need.by);
    }
    if let Some(error) = failed {
        println!("installing failed: {error:#}");
    }
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    println!("hint: as root on Debian: apt-get install {}", packages.join(" "));
    if in_ci() {
        bail!("CI leaves nothing out: install {}", packages.join(", "));
    }
    Ok(())
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !has(need.program)).collect()
}

/// Root on a Debian may install; everybody else is told what to install.
fn may_install() -> bool {
    rustix::process::geteuid().is_root() && has("apt-get")
}

fn install(missing: &[&Need]) -> Result<()> {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(args);
        command
    };
    let mut install = apt(&["install", "-y", "--no-install-recommends"]);
    install.args(missing.iter().map(|need| need.package));
    // A package list may be missing or too old; most often it is neither, and an update takes a while.
    if step("install packages", &mut install).is_err() {
        step("update the package list", &mut apt(&["update"]))?;
        step("install packages", &mut install)?;
    }
    Ok(())
}
