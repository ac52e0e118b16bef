use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::flags::Flags;
use crate::step::root;

/// Pages whose tables name tests in their last column.
const PAGES: &[&str] = &["docs/parity.md", "docs/reliability.md"];

/// `cargo xtask pages`: a row names a test that exists, or says that it is open.
pub(crate) fn task(flags: Flags) -> Result<()> {
    flags.finish()?;
    let mut functions = HashSet::new();
    for dir in ["crates", "xtask"] {
        collect(&root().join(dir), &mut functions)?;
    }
    let mut faults = Vec::new();
    let mut rows = 0;
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).with_context(|| (*page).to_owned())?;
        let (count, wrong) = check(&text, &functions);
        rows += count;
        faults.extend(wrong.into_iter().map(|fault| format!("{page}: {fault}")));
    }
    if !faults.is_empty() {
        bail!("pages and tests do not agree:\n  {}", faults.join("\n  "));
    }
    println!("{rows} rows of {} pages, every test that they name exists", PAGES.len());
    Ok(())
}

/// Every function in every source file below a directory.
fn collect(dir: &Path, functions: &mut HashSet<String>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, functions)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            functions.extend(names(&text));
        }
    }
    Ok(())
}

fn names(source: &str) -> impl Iterator<Item = String> {
    source.split("fn ").skip(1).filter_map(|rest| {
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        (!name.is_empty()).then_some(name)
    })
}

/// How many rows a page's tables have, and which of them are wrong.
fn check(page: &str, functions: &HashSet<String>) -> (usize, Vec<String>) {
    let mut faults = Vec::new();
    let mut rows = 0;
    let mut in_table = false;
    for line in page.lines() {
        if line.starts_with("|---") {
            in_table = true;
            continue;
        }
        in_table &= line.starts_with('|');
        // A bar inside a cell is written with a backslash.
        let line = line.replace("\\|", "¦");
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (Some(first), Some(last), true) = (cells.first(), cells.last(), in_table) else { continue };
        rows += 1;
        let tests: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() && !last.starts_with("open") && !last.starts_with("by hand") {
            faults.push(format!("{first}: names no test and is not open"));
        }
        for test in tests.iter().filter(|test| !test.contains(' ') && !functions.contains(**test)) {
            faults.push(format!("{first}: there is no test {test}"));
        }
    }
    (rows, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_tests_that_exist() {
        let functions: HashSet<String> = names("fn it_works() {}\n    async fn and_this<T>() {}").collect();
        let page =
            "| row | test |\n|---|---|\n| a | `it_works`, `and_this` |\n| b\\|c | open: later |\n\ntext\n";
        assert_eq!(check(page, &functions), (2, Vec::new()));
        let page =
            "| row | test |\n|---|---|\n| a | `gone` |\n| b | |\n| c | by hand: `cargo xtask chaos` |\n";
        assert_eq!(check(page, &functions).1.len(), 2);
    }
}
