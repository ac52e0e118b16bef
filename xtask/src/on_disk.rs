//! Checks the files on disk that ARCHITECTURE.md lists against `crates/model/src/home.rs`, which names them.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use wharf_tool_support::step::root;

/// The source that names the files.
const SOURCE: &str = "crates/model/src/home.rs";

/// The head of the list.
const HEAD: &str = "## On disk";

/// What is wrong with the list: files that it leaves out, and files that nothing has.
pub(crate) fn faults(page: &str) -> Result<Vec<String>> {
    let source = std::fs::read_to_string(root().join(SOURCE)).context(SOURCE)?;
    Ok(differences(page, &source))
}

fn differences(page: &str, source: &str) -> Vec<String> {
    let (said, truth) = (listed(page), named(source));
    let absent = truth.difference(&said).map(|name| format!("{HEAD:?} does not list {name}"));
    let strange =
        said.difference(&truth).map(|name| format!("{HEAD:?} lists {name}, which {SOURCE} has not"));
    absent.chain(strange).collect()
}

/// The names in the first block of the list: what begins a line, or stands below `sessions/<id>/` or `names/`.
fn listed(page: &str) -> BTreeSet<&str> {
    let lines = page.lines().skip_while(|line| *line != HEAD).skip_while(|line| *line != "```").skip(1);
    let mut names = BTreeSet::new();
    for line in lines.take_while(|line| *line != "```") {
        let column = line.len() - line.trim_start().len();
        // What stands further to the right goes on with what a file is for.
        if column > DESCRIPTION_COLUMN {
            continue;
        }
        let words = line.split_whitespace();
        if column == 0 && !line.contains('<') {
            names.extend(words);
        } else if let Some(path) = words.map(|word| word.trim_end_matches('/')).next() {
            names.extend(path.split('/').filter(|part| !part.contains('<')));
        }
    }
    names
}

/// Where a line that names another file of the session begins, at the most.
const DESCRIPTION_COLUMN: usize = 20;

/// The names that the source joins to a directory or has as a constant.
fn named(source: &str) -> BTreeSet<&str> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let joined = source.split("self.state.join(\"").skip(1);
    let constants = source.split("&'static str = \"").skip(1);
    joined.chain(constants).filter_map(|rest| rest.split('"').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn socket() { self.state.join(\"daemon.sock\") }\nself.state.join(\"sessions\")\n\
                          pub const LOG: &'static str = \"log\";\n#[cfg(test)] x.join(\"no\")";

    #[test]
    fn a_list_that_says_what_the_source_says_has_no_fault() {
        let page = "## On disk\ntext\n```\ndaemon.sock\nsessions/<id>/log   what it\n                        is for\n```\n";
        assert_eq!(differences(page, SOURCE), Vec::<String>::new());
    }

    #[test]
    fn what_is_left_out_or_made_up_is_a_fault() {
        let page = "## On disk\n```\ndaemon.sock  events.sock\nsessions/<id>/exit.json  the end\n```\n";
        assert_eq!(differences(page, SOURCE).len(), 3);
    }
}
