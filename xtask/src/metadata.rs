use anyhow::{Context, Result};
use serde_json::Value;

use crate::step::{cargo, output};

/// A package as `cargo metadata` knows it.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) ours: bool,
}

/// One line of a manifest's dependencies.
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) dev: bool,
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
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(Package {
        name: text("name").context("a package without a name")?,
        version: text("version").unwrap_or_default(),
        licence: text("license"),
        dependencies: dependencies
            .iter()
            .filter_map(|line| {
                Some(Dependency { name: line["name"].as_str()?.to_owned(), dev: line["kind"] == "dev" })
            })
            .collect(),
        ours,
    })
}
