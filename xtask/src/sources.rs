//! Reads source files: all below a directory, and the part of one that holds tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Every source file below a directory, with its text; what builds left there is none.
pub(crate) fn below(dir: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut sources = Vec::new();
    collect(dir, &mut sources)?;
    Ok(sources)
}

fn collect(dir: &Path, sources: &mut Vec<(PathBuf, String)>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, sources)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            sources.push((path, text));
        }
    }
    Ok(())
}

/// The part of a file that is shipped: what stands before its tests.
pub(crate) fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

/// The lines of code that are no comments, with their numbers.
pub(crate) fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = shipped(text).lines().enumerate();
    lines.filter(|(_, line)| !line.trim_start().starts_with("//")).map(|(at, line)| (at + 1, line))
}
