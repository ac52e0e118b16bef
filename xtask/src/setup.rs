//! Installs the programs that tests and benchmarks need, or names those that are missing.

use std::process::Command;

use anyhow::{Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::{has, in_ci, step};

/// A program that some tests or tasks need.
struct Need {
    program: &'static str,
    /// The package that has it, and others that it is of no use without.
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
    Need { program: "zsh", package: "zsh", by: "the tests of messages at its prompt" },
    Need { program: "fish", package: "fish", by: "the tests of messages at its prompt" },
    Need { program: "node", package: "nodejs", by: "the suite over real agents" },
    Need { program: "sshd", package: "openssh-server", by: "the tests of engines on another host" },
    Need { program: "ssh", package: "openssh-client", by: "the tests of engines on another host" },
    Need { program: "dockerd", package: "docker.io iptables", by: "the tests of sessions in containers" },
    Need {
        program: "podman",
        package: "podman runc netavark aardvark-dns",
        by: "the tests of sessions in containers",
    },
    Need { program: "busybox", package: "busybox-static", by: "the images of the tests' engines" },
    Need { program: "ip", package: "iproute2", by: "the networks of the tests' engines" },
];

/// What nothing but the benchmark needs.
const BENCH_NEEDS: &[Need] = &[
    Need { program: "dtach", package: "dtach", by: "the benchmark's row of it" },
    Need { program: "screen", package: "screen", by: "the benchmark's row of it" },
];

/// `cargo xtask setup`; `--bench` for what the benchmark measures besides.
pub(crate) fn task(mut flags: Flags) -> Result<()> {
    let needs: Vec<&Need> =
        NEEDS.iter().chain(if flags.switch("bench") { BENCH_NEEDS } else { &[] }).collect();
    flags.finish()?;
    let missing = || -> Vec<&Need> { needs.iter().copied().filter(|need| !has(need.program)).collect() };
    let needed = missing();
    if needed.is_empty() {
        println!("everything that the tests need is here");
        return Ok(());
    }
    let failed = if may_install() { install(&needed).err() } else { None };
    let missing = missing();
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

/// Root on a Debian may install; everybody else is told what to install.
fn may_install() -> bool {
    rustix::process::geteuid().is_root() && has("apt-get")
}

fn install(missing: &[&Need]) -> Result<()> {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        // What was fetched is not kept: it is installed once.
        command.args(["-qq", "-o", "APT::Keep-Downloaded-Packages=false"]).args(args);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let mut install = apt(&["install", "-y", "--no-install-recommends"]);
    install.args(missing.iter().flat_map(|need| need.package.split(' ')));
    // A package list may be missing or too old; most often it is neither, and an update takes a while.
    if step("install packages", &mut install).is_err() {
        step("update the package list", &mut apt(&["update"]))?;
        step("install packages", &mut install)?;
    }
    Ok(())
}
