//! Checks the table of crates in ARCHITECTURE.md against the manifests.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::Package;

/// The head of the table.
const HEAD: &str = "| crate | holds | depends on |";

/// The crates that a row names as dependencies, by the row's own crate.
type Rows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// What is wrong with the table: crates without a row, rows without a crate, and dependencies that differ.
pub(crate) fn faults(page: &str, packages: &[Package]) -> Vec<String> {
    let rows = rows(page);
    let mut faults = Vec::new();
    let mut known = BTreeSet::new();
    for package in packages.iter().filter(|package| is_product(package)) {
        let name = short(&package.name);
        known.insert(name);
        let Some(said) = rows.get(name) else {
            faults.push(format!("ARCHITECTURE.md has no row for the crate {name}"));
            continue;
        };
        let shipped = package.dependencies.iter().filter(|dependency| !dependency.dev);
        let ours = shipped.filter_map(|dependency| dependency.name.strip_prefix("wharf-"));
        let truth: BTreeSet<&str> = ours.collect();
        if *said != truth {
            let listed = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
            faults.push(format!(
                "ARCHITECTURE.md says that {name} depends on {}; its manifest says {}",
                listed(said),
                listed(&truth)
            ));
        }
    }
    let strange = rows.keys().filter(|name| !known.contains(**name));
    faults.extend(strange.map(|name| format!("ARCHITECTURE.md has a row for {name}, which is no crate")));
    faults
}

/// Whether a package is one of the product's crates, and no tool of the repository.
fn is_product(package: &Package) -> bool {
    package.ours && package.manifest.components().any(|part| part.as_os_str() == "crates")
}

fn short(name: &str) -> &str {
    name.strip_prefix("wharf-").unwrap_or(name)
}

fn rows(page: &str) -> Rows<'_> {
    let table = page.lines().skip_while(|line| *line != HEAD).skip(2);
    let lines = table.take_while(|line| line.starts_with('|'));
    lines.filter_map(row).collect()
}

fn row(line: &str) -> Option<(&str, BTreeSet<&str>)> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [name, _, depends] = cells.as_slice() else { return None };
    let name = name.trim_matches('`').rsplit('/').next()?;
    // What stands in brackets is said of tests, and "by feature:" of what comes after it.
    let depends = depends.split('(').next()?;
    let words = depends.split([',', ';']).map(|word| word.rsplit(':').next().unwrap_or(word).trim());
    Some((name, words.filter(|word| !word.is_empty() && *word != "–").collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    const PAGE: &str = "\
# Crates
| crate | holds | depends on |
|---|---|---|
| `model` | data | – |
| `backends/tmux` | panes | model; by feature: log |
| `testing` | agents | – (its tests use others) |

| `other` | a table of its own | – |
";

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependency = |(name, dev): &(&str, bool)| Dependency {
            name: (*name).into(),
            dev: *dev,
            ..Dependency::default()
        };
        Package {
            name: name.into(),
            dependencies: dependencies.iter().map(dependency).collect(),
            ours: true,
            manifest: format!("crates/{name}/Cargo.toml").into(),
            ..Package::default()
        }
    }

    #[test]
    fn a_table_that_says_what_the_manifests_say_has_no_fault() {
        let packages = [
            package("wharf-model", &[("serde", false)]),
            package("wharf-tmux", &[("wharf-model", false), ("wharf-log", false), ("wharf-agents", true)]),
            package("wharf-testing", &[("wharf-model", true)]),
        ];
        assert_eq!(faults(PAGE, &packages), Vec::<String>::new());
    }

    #[test]
    fn what_differs_is_missing_or_strange_is_a_fault() {
        let packages = [
            package("wharf-model", &[("wharf-log", false)]),
            package("wharf-tmux", &[("wharf-model", false), ("wharf-log", false)]),
            package("wharf-log", &[]),
        ];
        assert_eq!(
            faults(PAGE, &packages),
            [
                "ARCHITECTURE.md says that model depends on ; its manifest says log",
                "ARCHITECTURE.md has no row for the crate log",
                "ARCHITECTURE.md has a row for testing, which is no crate",
            ]
        );
    }
}
