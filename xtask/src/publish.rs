//! `cargo xtask publish`: whether every crate that is for others could go to a registry. Nothing is sent.
//!
//! `cargo publish --dry-run` asks the registry's index once a crate and takes half a minute, so the test run does without it: it looks
//! at the manifests and at what the sources include, which is where such a thing breaks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::{cargo, step};

use crate::metadata::{self, Package};

/// What a registry takes.
const MAX_KEYWORDS: usize = 5;
const MAX_KEYWORD_LEN: usize = 20;

/// The categories that we use, of those that the registry knows. It refuses others, and only when it is too late.
const CATEGORIES: &[&str] = &[
    "api-bindings",
    "asynchronous",
    "command-line-interface",
    "command-line-utilities",
    "data-structures",
    "database",
    "development-tools",
    "development-tools::testing",
    "emulators",
    "encoding",
    "filesystem",
    "os",
    "os::linux-apis",
    "os::unix-apis",
    "parser-implementations",
    "text-processing",
    "virtualization",
    "web-programming::http-server",
];

/// What takes in another file, by its path in quotation marks.
const INCLUDES: &[&str] = &["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];

/// `cargo xtask publish [--verify] [--dirty]`
pub(crate) fn task(mut flags: Flags) -> Result<()> {
    let (verify, dirty) = (flags.switch("verify"), flags.switch("dirty"));
    flags.finish()?;
    check()?;
    let mut publish = cargo();
    publish.args(["publish", "--workspace", "--dry-run", "--locked"]);
    if !verify {
        publish.arg("--no-verify");
    }
    if dirty {
        publish.arg("--allow-dirty");
    }
    step("packing", &mut publish)
}

/// What can be known without packing anything.
pub(crate) fn check() -> Result<()> {
    let ours: Vec<Package> = metadata::packages()?.into_iter().filter(|package| package.ours).collect();
    let mut faults = listings(&ours);
    for package in ours.iter().filter(|package| package.published) {
        faults.extend(strays(package)?);
    }
    if !faults.is_empty() {
        bail!("not fit for a registry:\n  {}", faults.join("\n  "));
    }
    let count = ours.iter().filter(|package| package.published).count();
    println!("{count} crates are fit for a registry, and {} are not for others", ours.len() - count);
    Ok(())
}

/// What is missing or wrong in manifests.
fn listings(ours: &[Package]) -> Vec<String> {
    let published: BTreeSet<&str> =
        ours.iter().filter(|package| package.published).map(|package| package.name.as_str()).collect();
    let addresses: BTreeSet<&str> =
        ours.iter().filter_map(|package| package.listing.repository.as_deref()).collect();
    let mut faults = Vec::new();
    if addresses.len() > 1 {
        faults.push(format!("there are {} repositories: take the workspace's everywhere", addresses.len()));
    }
    for package in ours.iter().filter(|package| package.published) {
        let (name, listing) = (&package.name, &package.listing);
        for (what, there) in [
            ("description", listing.description.is_some()),
            ("readme", listing.readme.is_some()),
            ("repository", listing.repository.is_some()),
            ("license", package.licence.is_some()),
            ("keywords", !listing.keywords.is_empty()),
            ("categories", !listing.categories.is_empty()),
        ] {
            if !there {
                faults.push(format!("{name} has no {what}"));
            }
        }
        if listing.keywords.len() > MAX_KEYWORDS {
            faults.push(format!("{name} has more than {MAX_KEYWORDS} keywords"));
        }
        let long = listing.keywords.iter().filter(|word| word.len() > MAX_KEYWORD_LEN);
        faults.extend(long.map(|word| format!("{name}: the keyword {word:?} is too long")));
        let unknown = listing.categories.iter().filter(|slug| !CATEGORIES.contains(&slug.as_str()));
        faults.extend(unknown.map(|slug| {
            format!("{name}: category {slug:?} is not in xtask/src/publish.rs: is it one of the registry's?")
        }));
        for line in package.dependencies.iter().filter(|line| line.path.is_some()) {
            let versioned = line.versions != "*";
            // A dependency of tests alone that has no version is left out of the package.
            if !versioned && !line.dev {
                faults.push(format!("{name} depends on {} by its path alone: add the version", line.name));
            } else if versioned && !published.contains(line.name.as_str()) {
                faults.push(format!("{name} depends on {}, which is not published", line.name));
            }
        }
    }
    faults
}

/// Files outside of a crate that its sources include: they are not in its package.
fn strays(package: &Package) -> Result<Vec<String>> {
    let root = package.manifest.parent().context("a manifest is in a directory")?;
    let manifest: toml::Table = fs::read_to_string(&package.manifest)?.parse()?;
    let excluded = manifest.get("package").and_then(|table| table.get("exclude")?.as_array());
    let excluded: Vec<PathBuf> = excluded
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.as_str())
        .map(|entry| root.join(entry.trim_matches('/')))
        .collect();
    let mut faults = Vec::new();
    for file in sources(root, &excluded)? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for path in included(&text) {
            let target = resolved(&file.with_file_name(&path));
            if !target.starts_with(root) || excluded.iter().any(|dir| target.starts_with(dir)) {
                let shown = file.strip_prefix(root).unwrap_or(&file).display();
                faults
                    .push(format!("{}: {shown} includes {path}, which is not in the package", package.name));
            }
        }
    }
    Ok(faults)
}

/// Every source of a crate that is packed; what has a manifest of its own is another crate.
fn sources(dir: &Path, excluded: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            if excluded.contains(&path) || path.join("Cargo.toml").exists() {
                continue;
            }
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The paths that a source includes.
fn included(text: &str) -> Vec<String> {
    let after = |mark: &&str| {
        let parts: Vec<&str> = text.split(*mark).skip(1).collect();
        parts.into_iter().filter_map(|rest| rest.split_once('"')).map(|(path, _)| path.to_owned())
    };
    INCLUDES.iter().flat_map(after).collect()
}

/// A path without `..`, by its words alone.
fn resolved(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, Listing};

    fn fit(name: &str) -> Package {
        Package {
            name: name.into(),
            licence: Some("MIT".into()),
            ours: true,
            published: true,
            listing: Listing {
                description: Some("it".into()),
                readme: Some("README.md".into()),
                repository: Some("one".into()),
                keywords: vec!["agents".into()],
                categories: vec!["os".into()],
            },
            ..Package::default()
        }
    }

    fn on(name: &str, versions: &str, dev: bool) -> Dependency {
        Dependency { name: name.into(), dev, versions: versions.into(), path: Some("/x".into()) }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(listings(&[fit("a")]).is_empty());
        let mut bare = fit("a");
        bare.listing = Listing { categories: vec!["boats".into()], ..Listing::default() };
        let faults = listings(&[bare]);
        assert_eq!(faults.len(), 5, "{faults:?}");
        assert!(faults[4].contains("boats"), "{faults:?}");
        let mut other = fit("b");
        other.listing.repository = Some("two".into());
        assert_eq!(listings(&[fit("a"), other]).len(), 1);
        let private = Package { published: false, ..Package::default() };
        assert!(listings(&[private]).is_empty());
    }

    #[test]
    fn a_dependency_has_a_version_and_is_published() {
        let faults = |dependency| {
            let private = Package { published: false, ..fit("private") };
            listings(&[Package { dependencies: vec![dependency], ..fit("a") }, fit("b"), private])
        };
        assert!(faults(on("b", "^0.1.0", false)).is_empty());
        assert!(faults(on("private", "*", true)).is_empty(), "it is left out");
        assert_eq!(faults(on("b", "*", false)), ["a depends on b by its path alone: add the version"]);
        assert_eq!(faults(on("private", "^0.1.0", true)), ["a depends on private, which is not published"]);
    }

    #[test]
    fn what_leaves_the_crate_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for sub in ["src", "tests", "other/src"] {
            fs::create_dir_all(root.join(sub)).unwrap();
        }
        fs::write(root.join("Cargo.toml"), "[package]\nname = 'a'\nexclude = ['/tests']\n").unwrap();
        fs::write(root.join("other/Cargo.toml"), "").unwrap();
        let source =
            r#"const A: &str = include_str!("../a.txt"); const B: &[u8] = include_bytes!("../../b");"#;
        for file in ["src/lib.rs", "tests/a.rs", "other/src/lib.rs"] {
            fs::write(root.join(file), source).unwrap();
        }
        fs::write(root.join("src/main.rs"), "#[path = \"../tests/x.rs\"]\nmod x;\n").unwrap();
        let faults = strays(&Package { manifest: root.join("Cargo.toml"), ..fit("a") }).unwrap();
        assert_eq!(
            faults,
            [
                "a: src/lib.rs includes ../../b, which is not in the package",
                "a: src/main.rs includes ../tests/x.rs, which is not in the package",
            ]
        );
    }
}
