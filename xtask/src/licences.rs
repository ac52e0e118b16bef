//! Checks every dependency's SPDX expression against `deny.toml`.

use anyhow::{Context, Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::root;

use crate::metadata;

/// `cargo xtask licences`: the part of `cargo deny check` that needs no further program.
pub(crate) fn task(flags: Flags) -> Result<()> {
    flags.finish()?;
    let allowed = allowed()?;
    let packages = metadata::packages()?;
    let mut faults = Vec::new();
    for package in &packages {
        let fault = match &package.licence {
            None => "names no licence".to_owned(),
            Some(text) => match satisfied(text, &allowed) {
                Ok(true) => continue,
                Ok(false) => format!("is under {text}, which deny.toml does not allow"),
                Err(error) => format!("has a licence that cannot be read, {text:?}: {error}"),
            },
        };
        faults.push(format!("{} {} {fault}", package.name, package.version));
    }
    if !faults.is_empty() {
        bail!("licences:\n  {}", faults.join("\n  "));
    }
    println!("{} packages, every licence is allowed by deny.toml", packages.len());
    Ok(())
}

fn allowed() -> Result<Vec<String>> {
    let path = root().join("deny.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let table: toml::Table = text.parse().with_context(|| path.display().to_string())?;
    let list =
        table.get("licenses").and_then(|licences| licences.get("allow")).and_then(toml::Value::as_array);
    let list = list.context("deny.toml has no licenses.allow")?;
    Ok(list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
}

/// Whether an SPDX expression can be satisfied with the licences that are allowed.
fn satisfied(expression: &str, allowed: &[String]) -> Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    let answer = any(&mut words, allowed)?;
    match words.last() {
        Some(word) => bail!("{word:?} is unexpected"),
        None => Ok(answer),
    }
}

fn any(words: &mut Vec<&str>, allowed: &[String]) -> Result<bool> {
    let mut answer = all(words, allowed)?;
    while words.pop_if(|word| *word == "OR").is_some() {
        answer |= all(words, allowed)?;
    }
    Ok(answer)
}

fn all(words: &mut Vec<&str>, allowed: &[String]) -> Result<bool> {
    let mut answer = one(words, allowed)?;
    while words.pop_if(|word| *word == "AND").is_some() {
        answer &= one(words, allowed)?;
    }
    Ok(answer)
}

fn one(words: &mut Vec<&str>, allowed: &[String]) -> Result<bool> {
    match words.pop() {
        None => bail!("it ends too soon"),
        Some("(") => {
            let answer = any(words, allowed)?;
            match words.pop() {
                Some(")") => Ok(answer),
                _ => bail!("a bracket is not closed"),
            }
        }
        Some(word @ (")" | "AND" | "OR" | "WITH")) => bail!("{word:?} is unexpected"),
        Some(licence) => {
            let mut name = licence.to_owned();
            if words.pop_if(|word| *word == "WITH").is_some() {
                let exception = words.pop().context("WITH is followed by nothing")?;
                name = format!("{name} WITH {exception}");
            }
            Ok(allowed.contains(&name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(expression: &str) -> Option<bool> {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(String::from);
        satisfied(expression, &allowed).ok()
    }

    #[test]
    fn expressions() {
        assert_eq!(ask("MIT"), Some(true));
        assert_eq!(ask("GPL-3.0"), Some(false));
        assert_eq!(ask("GPL-3.0 OR MIT"), Some(true));
        assert_eq!(ask("MIT/Apache-2.0"), Some(true));
        assert_eq!(ask("MIT AND GPL-3.0"), Some(false));
        assert_eq!(ask("(MIT OR GPL-3.0) AND (Apache-2.0 WITH LLVM-exception)"), Some(true));
        assert_eq!(ask("GPL-3.0 AND MIT OR MIT"), Some(true), "AND binds tighter");
        assert_eq!(ask("Apache-2.0 WITH Other"), Some(false));
        for broken in ["", "MIT OR", "(MIT", "MIT MIT", "OR", "MIT WITH"] {
            assert_eq!(ask(broken), None, "{broken:?}");
        }
    }
}
