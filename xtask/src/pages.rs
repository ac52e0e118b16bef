//! `cargo xtask pages`: checks the tests that the docs name, and the first line of every source file.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wharf_tool_support::flags::Flags;
use wharf_tool_support::step::root;

use crate::words;

/// Pages whose tables name tests.
const PAGES: &[&str] = &["docs/parity.md", "docs/reliability.md"];

/// How many capabilities docs/parity.md has a row for.
const CAPABILITIES: usize = 119;

/// Checks that a row names tests that exist, or says that it is open; that the numbered rows are all there; and that every
/// source file says in its first line what it is for.
pub(crate) fn task(flags: Flags) -> Result<()> {
    flags.finish()?;
    let mut sources: Vec<(PathBuf, String)> = Vec::new();
    for dir in ["crates", "tools", "xtask"] {
        sources.extend(crate::sources::below(&root().join(dir))?);
    }
    let tests: HashSet<String> =
        sources.iter().flat_map(|(path, text)| names(of_tests(path, text))).collect();
    let mut faults = unexplained(&sources);
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).context("docs/glossary.md")?;
    faults.extend(words::faults(&sources, &glossary)?);
    let mut rows = 0;
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).with_context(|| (*page).to_owned())?;
        let checked = check(&text, &tests);
        rows += checked.rows;
        faults.extend(checked.faults.iter().map(|fault| format!("{page}: {fault}")));
        if !checked.states.is_empty() {
            let numbered = numbered(&checked.states, &text);
            faults.extend(numbered.into_iter().map(|fault| format!("{page}: {fault}")));
        }
    }
    if !faults.is_empty() {
        bail!("pages or source files are not as they should be:\n  {}", faults.join("\n  "));
    }
    println!("{rows} rows of {} pages, every test that they name exists", PAGES.len());
    println!("{} source files, each says what it is for", sources.len());
    Ok(())
}

/// The files whose first line is no `//!` with a sentence.
fn unexplained(sources: &[(PathBuf, String)]) -> Vec<String> {
    let explains = |text: &str| {
        let first = text.lines().next().and_then(|line| line.strip_prefix("//! "));
        first.is_some_and(|sentence| !sentence.trim().is_empty())
    };
    let files = sources.iter().filter(|(_, text)| !explains(text));
    let mut faults: Vec<String> = files
        .map(|(path, _)| {
            let path = path.strip_prefix(root()).unwrap_or(path);
            format!("{}: its first line is no `//!` that says what the file is for", path.display())
        })
        .collect();
    faults.sort_unstable();
    faults
}

/// The part of a source file that holds tests: all of it below `tests` and among the cases of the conformance suite, else
/// what follows `#[cfg(test)]`.
fn of_tests<'a>(path: &Path, text: &'a str) -> &'a str {
    let path = path.strip_prefix(root()).unwrap_or(path);
    let whole =
        path.components().any(|part| ["tests", "conformance"].iter().any(|dir| part.as_os_str() == *dir));
    if whole { text } else { text.split_once("#[cfg(test)]").map_or("", |(_, tests)| tests) }
}

fn names(source: &str) -> impl Iterator<Item = String> {
    source.split("fn ").skip(1).filter_map(|rest| {
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        (!name.is_empty()).then_some(name)
    })
}

/// What a page's tables say.
#[derive(Default)]
struct Checked {
    rows: usize,
    faults: Vec<String>,
    /// Number and state of each numbered row, in order.
    states: Vec<(usize, String)>,
}

/// Reads those tables of a page that have a column `test`. What is open is said there or in a column `state`; a column `#`
/// numbers the rows.
fn check(page: &str, tests: &HashSet<String>) -> Checked {
    let mut checked = Checked::default();
    let mut head: Vec<String> = Vec::new();
    let mut in_table = false;
    for line in page.lines() {
        // A bar inside a cell is written with a backslash.
        let line = line.replace("\\|", "¦");
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if line.starts_with("|---") {
            in_table = true;
            continue;
        }
        if !in_table || !line.starts_with('|') {
            in_table = false;
            head = cells.iter().map(|&cell| cell.to_owned()).collect();
            continue;
        }
        let cell =
            |name: &str| head.iter().position(|cell| cell == name).and_then(|at| cells.get(at)).copied();
        let (Some(first), Some(named)) = (cells.first(), cell("test")) else { continue };
        let state = cell("state").unwrap_or(named);
        checked.rows += 1;
        if let Some(number) = cell("#") {
            match number.parse() {
                Ok(number) => checked.states.push((number, state.to_owned())),
                Err(_) => checked.faults.push(format!("{first}: is no number")),
            }
        }
        let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        if named.is_empty() && !state.starts_with("open") && !state.starts_with("by hand") {
            checked.faults.push(format!("{first}: names no test and is not open"));
        }
        for test in named.iter().filter(|test| !test.contains(' ') && !tests.contains(**test)) {
            checked.faults.push(format!("{first}: there is no test {test}"));
        }
    }
    checked
}

/// What is wrong with the numbered rows, and with the sentence that counts them.
fn numbered(states: &[(usize, String)], page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let numbers = states.iter().map(|(number, _)| *number);
    if !numbers.eq(1..=CAPABILITIES) {
        faults.push(format!("the numbered rows are not 1 to {CAPABILITIES}, each once and in order"));
    }
    let count = |word: &str| {
        states.iter().filter(|(_, state)| state.split([':', ';', ' ']).next() == Some(word)).count()
    };
    let [works, different, open] = ["works", "different", "open"].map(count);
    if works + different + open != states.len() {
        let odd = states
            .iter()
            .filter(|(_, state)| !["works", "different", "open"].iter().any(|word| state.starts_with(word)));
        faults.extend(odd.map(|(number, state)| format!("{number}: {state:?} is no state")));
    }
    let sentence =
        format!("{works} of {CAPABILITIES} work, {different} are deliberately different, {open} are open");
    if !page.contains(&sentence) {
        faults.push(format!("it does not say that {sentence}"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests() -> HashSet<String> {
        names("fn it_works() {}\n    async fn and_this<T>() {}").collect()
    }

    #[test]
    fn rows_name_tests_that_exist() {
        let page =
            "| row | test |\n|---|---|\n| a | `it_works`, `and_this` |\n| b\\|c | open: later |\n\ntext\n";
        let checked = check(page, &tests());
        assert_eq!((checked.rows, checked.faults), (2, Vec::new()));
        let page =
            "| row | test |\n|---|---|\n| a | `gone` |\n| b | |\n| c | by hand: `cargo xtask chaos` |\n";
        assert_eq!(check(page, &tests()).faults.len(), 2);
    }

    #[test]
    fn a_state_stands_in_a_column_of_its_own() {
        let row = |tests: &str, state: &str| {
            format!("| # | row | test | state |\n|---|---|---|---|\n| 1 | a | {tests} | {state} |\n")
        };
        let faults = |tests_named: &str, state: &str| check(&row(tests_named, state), &tests()).faults.len();
        assert_eq!(faults("suite: `it_works`", "works"), 0);
        assert_eq!(faults("", "works"), 1);
        assert_eq!(faults("", "open: `--later`"), 0);
        assert_eq!(faults("`gone`", "open: later"), 1);
    }

    #[test]
    fn numbered_rows_are_all_there_and_counted() {
        let mut states: Vec<(usize, String)> =
            (1..=CAPABILITIES).map(|number| (number, "works".to_owned())).collect();
        states[3].1 = "open: later".to_owned();
        states[4].1 = "different: why".to_owned();
        let said = "117 of 119 work, 1 are deliberately different, 1 are open";
        assert_eq!(numbered(&states, said), Vec::<String>::new());
        assert_eq!(numbered(&states, "118 of 119 work").len(), 1);
        states[5].1 = "partly".to_owned();
        assert_eq!(numbered(&states, said).len(), 2);
        states.remove(7);
        assert_eq!(numbered(&states, said).len(), 3);
    }

    #[test]
    fn a_file_without_a_first_line_is_named() {
        let source = |path: &str, text: &str| (root().join(path), text.to_owned());
        let good = source("crates/x/src/a.rs", "//! Does a thing.\n\nfn a() {}\n");
        assert_eq!(unexplained(std::slice::from_ref(&good)), Vec::<String>::new());
        let bad = [
            "",
            "fn a() {}\n",
            "//!\n",
            "/// Does a thing.\n",
            "\n//! Too late.\n",
            "#![allow(x)]\n//! Too late.\n",
        ];
        for text in bad {
            let faults = unexplained(&[good.clone(), source("crates/x/src/b.rs", text)]);
            assert!(
                faults.len() == 1 && faults[0].starts_with("crates/x/src/b.rs: "),
                "{text:?}: {faults:?}"
            );
        }
    }

    #[test]
    fn only_functions_of_tests_count() {
        let of = |path: &str| {
            of_tests(Path::new(path), "fn product() {}\n#[cfg(test)]\nmod tests { fn test() {} }")
        };
        assert_eq!(names(of("crates/x/src/a.rs")).collect::<Vec<_>>(), ["test"]);
        assert_eq!(names(of("crates/x/tests/a.rs")).count(), 2);
    }
}
