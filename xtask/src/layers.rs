//! `cargo xtask layers`: checks that crate dependencies point downwards only, and that ARCHITECTURE.md says the same.

use anyhow::{Context, Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::root;

use crate::metadata::{self, Package};
use crate::{crate_table, on_disk};

/// The height of each crate. A dependency must stand lower than what depends on it.
const RANKS: &[(&str, u32)] = &[
    ("wharf-model", 0),
    // Below all that touches a session's files.
    ("wharf-boundary", 0),
    // What the screen model and the command line make of the same bytes. The model itself is too heavy for a client.
    ("wharf-sequences", 0),
    ("wharf-log", 1),
    ("wharf-backend", 1),
    // Small and alone: it is part of a program that runs in any image.
    ("wharf-errand", 1),
    ("wharf-screen", 1),
    ("wharf-archive", 1),
    ("wharf-holder", 2),
    ("wharf-holder-client", 3),
    ("wharf-store", 2),
    ("wharf-agents", 2),
    ("wharf-local", 4),
    ("wharf-container", 5),
    // What is above a holder's socket is the same wherever the holder sits.
    ("wharf-tmux", 5),
    // They rewrite what any place is told; only their tests know one.
    ("wharf-nix", 5),
    ("wharf-sandbox", 5),
    ("wharf-api", 4),
    ("wharf-engine", 5),
    // Ships nowhere: what tests talk to. Its own tests drive the engine.
    ("wharf-testing", 6),
    ("wharf-server", 6),
    ("wharf-cli", 6),
    ("wharf", 7),
    // Programs of this repository alone, and what they share: it starts `wharf` and links to nothing of ours.
    ("wharf-tool-support", 0),
    ("wharf-bench", 8),
    ("wharf-stress", 8),
    ("wharf-agent-suite", 8),
    ("xtask", 8),
];

/// Crates that may use only some of what stands below them.
const NARROW: &[(&str, &[&str])] = &[
    // The wire is a contract of its own: it knows plain data, and the holder that starts a daemon from inside a session.
    ("wharf-api", &["wharf-model", "wharf-boundary", "wharf-holder-client"]),
    // The command line is a client. `logs` and `attach` read files and holders; nothing reaches the engine.
    (
        "wharf-cli",
        &[
            "wharf-model",
            "wharf-boundary",
            "wharf-sequences",
            "wharf-log",
            "wharf-holder",
            "wharf-holder-client",
            "wharf-api",
            "wharf-archive",
        ],
    ),
    // What everything else runs on top of must not know any backend. It hands one on, by a feature, to those who embed it.
    (
        "wharf-engine",
        &[
            "wharf-model",
            "wharf-boundary",
            "wharf-sequences",
            "wharf-log",
            "wharf-backend",
            "wharf-store",
            "wharf-screen",
            "wharf-agents",
            "wharf-local",
        ],
    ),
];

/// Heavy foreign crates and the only ones of ours that may use them.
const OWNERS: &[(&str, &[&str])] = &[
    ("rusqlite", &["wharf-store"]),
    ("bollard", &["wharf-container"]),
    ("landlock", &["wharf-sandbox"]),
    ("seccompiler", &["wharf-sandbox"]),
    ("axum", &["wharf-server"]),
    ("alacritty_terminal", &["wharf-screen"]),
    ("clap", &["wharf-cli"]),
    (
        "tokio",
        &[
            "wharf-archive",
            "wharf-backend",
            "wharf-holder-client",
            "wharf-local",
            "wharf-container",
            "wharf-tmux",
            "wharf-nix",
            "wharf-sandbox",
            "wharf-engine",
            "wharf-api",
            "wharf-server",
            "wharf-cli",
            "wharf",
        ],
    ),
];

/// `cargo xtask layers`
pub(crate) fn task(flags: Flags) -> Result<()> {
    flags.finish()?;
    let packages: Vec<Package> = metadata::packages()?.into_iter().filter(|package| package.ours).collect();
    let faults = faults(&packages);
    if !faults.is_empty() {
        bail!("crate dependencies must point downwards:\n  {}", faults.join("\n  "));
    }
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let mut untrue = crate_table::faults(&page, &packages);
    untrue.extend(on_disk::faults(&page)?);
    if !untrue.is_empty() {
        bail!("ARCHITECTURE.md is not true:\n  {}", untrue.join("\n  "));
    }
    println!("{} crates, every dependency points downwards", packages.len());
    Ok(())
}

fn faults(packages: &[Package]) -> Vec<String> {
    let mut faults = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        let Some(height) = rank(name) else {
            faults.push(format!("{name} has no rank: give it one in xtask/src/layers.rs"));
            continue;
        };
        for dependency in &package.dependencies {
            let below = dependency.name.as_str();
            match rank(below) {
                // Its own tests may want features of it that others do without.
                Some(_) if below == name && dependency.dev => {}
                Some(depth) if depth >= height => faults.push(format!("{name} must not depend on {below}")),
                // Tests may look sideways at anything lower; what is shipped may not.
                Some(_) if !dependency.dev && !listed(NARROW, name, below) => {
                    faults.push(format!("{name} must not depend on {below}: it has a list of its own"));
                }
                None if !dependency.dev && !owned(below, name) => {
                    faults.push(format!("{name} must not depend on {below}, which has owners"));
                }
                _ => {}
            }
        }
    }
    faults
}

fn rank(name: &str) -> Option<u32> {
    RANKS.iter().find(|(crate_, _)| *crate_ == name).map(|(_, rank)| *rank)
}

fn listed(lists: &[(&str, &[&str])], name: &str, item: &str) -> bool {
    lists.iter().find(|(crate_, _)| *crate_ == name).is_none_or(|(_, list)| list.contains(&item))
}

fn owned(foreign: &str, by: &str) -> bool {
    listed(OWNERS, foreign, by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        Package {
            name: name.into(),
            version: String::new(),
            licence: None,
            dependencies: dependencies
                .iter()
                .map(|(name, dev)| Dependency { name: (*name).into(), dev: *dev, ..Dependency::default() })
                .collect(),
            ours: true,
            ..Package::default()
        }
    }

    fn check(name: &str, dependencies: &[(&str, bool)]) -> Vec<String> {
        faults(&[package(name, dependencies)])
    }

    #[test]
    fn downwards_is_fine() {
        assert!(
            check("wharf-engine", &[("wharf-model", false), ("wharf-store", false), ("serde", false)])
                .is_empty()
        );
        assert!(check("wharf-engine", &[("wharf-local", true)]).is_empty(), "tests may use a real backend");
        assert!(check("wharf-backend", &[("wharf-backend", true)]).is_empty(), "tests may want own features");
    }

    #[test]
    fn upwards_sideways_and_unknown_are_faults() {
        assert_eq!(
            check("wharf-log", &[("wharf-engine", false)]),
            ["wharf-log must not depend on wharf-engine"]
        );
        assert_eq!(check("wharf-log", &[("wharf-backend", true)]).len(), 1, "the same height");
        assert_eq!(check("wharf-cli", &[("wharf-engine", false)]).len(), 1, "a client");
        assert_eq!(check("wharf-api", &[("wharf-log", false)]).len(), 1);
        assert_eq!(check("wharf-new", &[]).len(), 1, "no rank");
    }

    #[test]
    fn heavy_crates_have_owners() {
        assert_eq!(check("wharf-holder", &[("tokio", false)]).len(), 1);
        assert!(check("wharf-holder", &[("tokio", true)]).is_empty());
        assert!(check("wharf-store", &[("rusqlite", false)]).is_empty());
    }
}
