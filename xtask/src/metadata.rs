//! Reads packages and their dependencies from `cargo metadata`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;
use wharf_tool_support::step::{cargo, output};

/// A package as `cargo metadata` knows it.
#[derive(Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) ours: bool,
    /// The registry or repository that it comes from; none for a directory of this machine.
    pub(crate) source: Option<String>,
    pub(crate) manifest: PathBuf,
    /// Whether it may go to a registry.
    pub(crate) published: bool,
    pub(crate) listing: Listing,
}

/// What a registry shows of a package.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) description: Option<String>,
    pub(crate) readme: Option<String>,
    pub(crate) repository: Option<String>,
    pub(crate) keywords: Vec<String>,
    pub(crate) categories: Vec<String>,
}

/// One line of a manifest's dependencies.
#[derive(Default)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) dev: bool,
    /// The versions that will do.
    pub(crate) versions: String,
    /// A directory of this machine, where it is one.
    pub(crate) path: Option<String>,
}

/// Every package of the build: ours and foreign ones.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let text = output(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    let members: Vec<&Value> =
        metadata["workspace_members"].as_array().map(|members| members.iter().collect()).unwrap_or_default();
    let list = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    list.iter().map(|package| read(package, members.contains(&&package["id"]))).collect()
}

fn read(package: &Value, ours: bool) -> Result<Package> {
    let text = |field: &str| package[field].as_str().map(str::to_owned);
    let texts = |field: &str| {
        let list = package[field].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(Package {
        name: text("name").context("a package without a name")?,
        version: text("version").unwrap_or_default(),
        licence: text("license"),
        dependencies: dependencies
            .iter()
            .filter_map(|line| {
                Some(Dependency {
                    name: line["name"].as_str()?.to_owned(),
                    dev: line["kind"] == "dev",
                    versions: line["req"].as_str().unwrap_or("*").to_owned(),
                    path: line["path"].as_str().map(str::to_owned),
                })
            })
            .collect(),
        ours,
        source: text("source"),
        manifest: text("manifest_path").map(PathBuf::from).unwrap_or_default(),
        published: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        listing: Listing {
            description: text("description"),
            readme: text("readme"),
            repository: text("repository"),
            keywords: texts("keywords"),
            categories: texts("categories"),
        },
    })
}
