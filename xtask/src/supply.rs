//! `cargo xtask supply`: where dependencies come from, the part of `cargo deny check` that needs no further program.
//!
//! Bans and sources are read from `cargo metadata`. Whether a version was yanked stands in the registry's index, of which cargo keeps
//! what it has read; it is asked to read it afresh, and where there is no network what it has will do.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::{cargo, root};

use crate::metadata::{self, Package};

/// What `cargo metadata` calls the registry, whichever way it is reached.
const REGISTRY: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

pub(crate) fn task(flags: Flags) -> Result<()> {
    flags.finish()?;
    let packages = metadata::packages()?;
    let mut faults = sources(&packages, &root());
    faults.extend(bans(&packages, &banned()?));
    let fresh = refresh();
    faults.extend(yanked(&packages, &indexes()?));
    if !faults.is_empty() {
        bail!("supply:\n  {}", faults.join("\n  "));
    }
    let index = if fresh { "read just now" } else { "as it was last read: there is no network" };
    println!("{} packages: none banned, none from elsewhere, none yanked (index {index})", packages.len());
    Ok(())
}

/// The crates that deny.toml bans.
fn banned() -> Result<BTreeSet<String>> {
    let path = root().join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let table: toml::Table = text.parse().with_context(|| path.display().to_string())?;
    let list = table.get("bans").and_then(|bans| bans.get("deny")).and_then(toml::Value::as_array);
    let name = |item: &toml::Value| {
        let name = item.get("crate").or_else(|| item.get("name")).or(Some(item));
        Some(name?.as_str()?.to_owned())
    };
    let list = list.context("deny.toml has no bans.deny")?;
    list.iter().map(|item| name(item).context("a ban in deny.toml that names no crate")).collect()
}

/// What is banned, and what we ask for without saying which version.
fn bans(packages: &[Package], banned: &BTreeSet<String>) -> Vec<String> {
    let mut faults: Vec<String> = packages
        .iter()
        .filter(|package| banned.contains(&package.name))
        .map(|package| format!("{} {} is banned by deny.toml", package.name, package.version))
        .collect();
    for package in packages.iter().filter(|package| package.ours) {
        let any = package.dependencies.iter().filter(|line| line.versions == "*" && line.path.is_none());
        faults.extend(any.map(|line| format!("{} takes any version of {}", package.name, line.name)));
    }
    faults
}

/// What comes neither from the registry nor from this repository.
fn sources(packages: &[Package], root: &Path) -> Vec<String> {
    let fault = |package: &Package| {
        let from = match &package.source {
            Some(source) if REGISTRY.contains(&source.as_str()) => return None,
            Some(source) => source.clone(),
            None if package.manifest.starts_with(root) => return None,
            None => package.manifest.display().to_string(),
        };
        Some(format!("{} {} comes from {from}", package.name, package.version))
    };
    packages.iter().filter_map(fault).collect()
}

/// Has cargo read the index again; whether it could.
fn refresh() -> bool {
    let mut update = cargo();
    update.args(["update", "--dry-run", "--quiet"]).stdin(Stdio::null()).stdout(Stdio::null());
    update.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// What cargo keeps of registries' indexes.
fn indexes() -> Result<Vec<PathBuf>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let dir = home.context("neither CARGO_HOME nor HOME is set")?.join("registry/index");
    let entries = fs::read_dir(&dir).with_context(|| dir.display().to_string())?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path().join(".cache")))
        .filter(|dir| dir.is_dir())
        .collect())
}

fn yanked(packages: &[Package], indexes: &[PathBuf]) -> Vec<String> {
    let fault = |package: &Package| {
        package.source.as_ref()?;
        let states: Vec<bool> = indexes
            .iter()
            .filter_map(|index| fs::read(index.join(place(&package.name))).ok())
            .filter_map(|entry| is_yanked(&entry, &package.version))
            .collect();
        match states.as_slice() {
            [] => Some(format!(
                "{} {} is not in the index that cargo keeps: cargo update --dry-run",
                package.name, package.version
            )),
            states if states.contains(&true) => {
                Some(format!("{} {} was yanked", package.name, package.version))
            }
            _ => None,
        }
    };
    packages.iter().filter_map(fault).collect()
}

/// Where an index has a crate: by the first letters of its name.
fn place(name: &str) -> PathBuf {
    let name = name.to_lowercase();
    match name.len() {
        1 => Path::new("1").join(&name),
        2 => Path::new("2").join(&name),
        3 => Path::new("3").join(&name[..1]).join(&name),
        _ => Path::new(&name[..2]).join(&name[2..4]).join(&name),
    }
}

/// What an entry says of a version. It is a head, then a version and its line of JSON in turns, each with a NUL after it.
fn is_yanked(entry: &[u8], version: &str) -> Option<bool> {
    let lines = entry.split(|byte| *byte == 0).filter(|line| line.first() == Some(&b'{'));
    let mut lines = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.find(|line| line["vers"] == version).map(|line| line["yanked"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, source: Option<&str>, manifest: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            ours: source.is_none(),
            source: source.map(str::to_owned),
            manifest: PathBuf::from(manifest),
            ..Package::default()
        }
    }

    #[test]
    fn only_the_registry_and_this_repository_are_sources() {
        let packages = [
            package("good", Some(REGISTRY[0]), "/cargo/good"),
            package("own", None, "/here/crates/own"),
            package("forked", Some("git+https://example.org/forked"), "/cargo/forked"),
            package("mirrored", Some("registry+https://example.org/index"), "/cargo/mirrored"),
            package("beside", None, "/elsewhere"),
        ];
        let faults = sources(&packages, Path::new("/here")).join("\n");
        assert_eq!(faults.lines().count(), 3, "{faults}");
        for name in ["forked", "mirrored", "beside"] {
            assert!(faults.contains(&format!("{name} 1.0.0 comes from")), "{faults}");
        }
    }

    #[test]
    fn a_banned_crate_and_any_version_are_named() {
        let mut own = package("own", None, "/here");
        let line = |name: &str, versions: &str, path: Option<&str>| metadata::Dependency {
            name: name.to_owned(),
            versions: versions.to_owned(),
            path: path.map(str::to_owned),
            ..metadata::Dependency::default()
        };
        own.dependencies =
            vec![line("loose", "*", None), line("tight", "^1", None), line("sibling", "*", Some("/here"))];
        let packages = [own, package("openssl-sys", Some(REGISTRY[0]), "/cargo/openssl-sys")];
        let faults = bans(&packages, &BTreeSet::from(["openssl-sys".to_owned()]));
        assert_eq!(faults, ["openssl-sys 1.0.0 is banned by deny.toml", "own takes any version of loose"]);
    }

    #[test]
    fn an_entry_of_the_index_says_what_was_yanked() {
        let entry = b"\x03\x02\0\0\0etag\x001.0.0\0{\"vers\":\"1.0.0\",\"yanked\":true}\x001.0.1\0{\"vers\":\"1.0.1\",\"yanked\":false}\0";
        assert_eq!(is_yanked(entry, "1.0.0"), Some(true));
        assert_eq!(is_yanked(entry, "1.0.1"), Some(false));
        assert_eq!(is_yanked(entry, "2.0.0"), None);
        for (name, at) in [("a", "1/a"), ("ab", "2/ab"), ("abc", "3/a/abc"), ("Serde", "se/rd/serde")] {
            assert_eq!(place(name), Path::new(at));
        }
    }
}
