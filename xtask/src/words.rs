//! Checks the words of the code: the glossary's length, type names used twice, and names of agents in the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wharf_tool_support::step::root;

use crate::sources;

/// How many words the glossary may explain.
const MAX_WORDS: usize = 40;

/// The names that several public types have today. The list only shrinks: a name that is public once is taken off it.
const USED_TWICE: &[&str] = &[
    "BackendStatus",
    "Change",
    "Changes",
    "Client",
    "Environment",
    "Event",
    "Kind",
    "Launch",
    "Manner",
    "Met",
    "Options",
    "Outcome",
    "Progress",
    "Result",
    "Stream",
    "Timeouts",
];

/// What is wrong with the words.
pub(crate) fn faults(files: &[(PathBuf, String)], glossary: &str) -> Result<Vec<String>> {
    let words = glossary.lines().filter(|line| line.starts_with("| ")).count().saturating_sub(1);
    let mut faults = Vec::new();
    if words > MAX_WORDS {
        faults.push(format!("docs/glossary.md explains {words} words, and {MAX_WORDS} are enough"));
    }
    faults.extend(twice(files, USED_TWICE));
    faults.extend(agents(files, &profiles()?));
    Ok(faults)
}

/// The public types that share a name, those of the list apart, and what is on the list in vain.
fn twice(files: &[(PathBuf, String)], known: &[&str]) -> Vec<String> {
    let mut places: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in files {
        let path = path.strip_prefix(root()).unwrap_or(path);
        if !path.starts_with("crates") || !path.components().any(|part| part.as_os_str() == "src") {
            continue;
        }
        for (_, line) in sources::code_lines(text) {
            if let Some(name) = public_type(line) {
                places.entry(name).or_default().insert(path.display().to_string());
            }
        }
    }
    places.retain(|_, files| files.len() > 1);
    let mut faults: Vec<String> = known
        .iter()
        .filter(|name| !places.contains_key(**name))
        .map(|name| format!("{name} is the name of one public type alone: take it off the list in words.rs"))
        .collect();
    places.retain(|name, _| !known.contains(name));
    faults.extend(places.into_iter().map(|(name, files)| {
        let files: Vec<String> = files.into_iter().collect();
        format!("several public types are called {name}: {}", files.join(", "))
    }));
    faults
}

/// The name of the public type that a line begins.
fn public_type(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ")?;
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_ascii_alphanumeric()).next().filter(|name| !name.is_empty())
}

/// The agents that there are profiles for: those whose screen somebody attends. The others are shells and debuggers.
fn profiles() -> Result<Vec<String>> {
    let dir = root().join("crates/agents/profiles");
    let entries = std::fs::read_dir(&dir).with_context(|| dir.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let profile = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        if profile.lines().any(|line| line == "attend = true") {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    Ok(names)
}

/// The lines of the engine's code that name an agent: what is special about one stands in its profile.
fn agents(files: &[(PathBuf, String)], agents: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files {
        let path = path.strip_prefix(root()).unwrap_or(path);
        if !path.starts_with(Path::new("crates/engine/src")) {
            continue;
        }
        for (number, line) in sources::code_lines(text) {
            let line = line.to_ascii_lowercase();
            let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
            if let Some(agent) = words.find(|word| agents.iter().any(|agent| agent == word)) {
                faults.push(format!("{}:{number}: the engine names the agent {agent}", path.display()));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> (PathBuf, String) {
        (root().join(path), text.to_owned())
    }

    #[test]
    fn a_public_name_is_used_once() {
        let files = [
            file("crates/a/src/x.rs", "pub struct Place {\n}\nstruct Own;\n"),
            file(
                "crates/b/src/y.rs",
                "pub enum Place {\n}\npub(crate) struct Own;\npub type Other<T> = Vec<T>;\n",
            ),
            file("crates/b/tests/y.rs", "pub struct Other;\n"),
            file("tools/b/src/y.rs", "pub struct Other;\n"),
        ];
        assert_eq!(
            twice(&files, &[]),
            ["several public types are called Place: crates/a/src/x.rs, crates/b/src/y.rs"]
        );
        assert_eq!(twice(&files, &["Place"]), Vec::<String>::new());
        assert_eq!(twice(&files, &["Place", "Other"]).len(), 1, "it may go from the list");
    }

    #[test]
    fn the_engine_names_no_agent() {
        let known = ["claude".to_owned()];
        let code =
            "//! As Claude does.\nif name == \"claude\" {}\nlet claude_code = 1;\nlet claudette = 2;\n";
        assert_eq!(agents(&[file("crates/engine/src/a.rs", code)], &known).len(), 2);
        assert_eq!(agents(&[file("crates/agents/src/a.rs", code)], &known).len(), 0);
    }

    #[test]
    fn the_glossary_is_short() {
        let page = |words: usize| format!("| word | means |\n|---|---|\n{}", "| a | b |\n".repeat(words));
        assert_eq!(faults(&[], &page(MAX_WORDS)).unwrap().len(), USED_TWICE.len());
        assert_eq!(faults(&[], &page(MAX_WORDS + 1)).unwrap().len(), USED_TWICE.len() + 1);
    }
}
