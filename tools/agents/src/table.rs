//! Counts the results of the suite and writes them into docs/delivery.md.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};

use crate::agent::Agent;
use crate::case::{CASES, Verdict};
use crate::kit::Kit;

/// How often each case went right with each agent.
pub(crate) struct Table {
    agents: Vec<(&'static str, String)>,
    counts: BTreeMap<(&'static str, &'static str), Count>,
}

#[derive(Default)]
struct Count {
    passed: usize,
    played: usize,
}

/// What stands around the table in docs/delivery.md.
const MARKS: (&str, &str) = ("<!-- table: cargo xtask agents --write -->\n", "<!-- end of table -->");

impl Table {
    pub(crate) fn new(kit: &Kit, agents: &[&'static Agent]) -> Result<Self> {
        let agents = agents.iter().map(|agent| Ok((agent.name, kit.version(agent)?)));
        Ok(Self { agents: agents.collect::<Result<_>>()?, counts: BTreeMap::new() })
    }

    pub(crate) fn add(&mut self, agent: &'static str, case: &'static str, verdict: &Result<Verdict>) {
        let count = self.counts.entry((agent, case)).or_default();
        match verdict {
            Ok(Verdict::Passed) => {
                count.passed += 1;
                count.played += 1;
            }
            Ok(Verdict::Absent(_)) => {}
            Err(_) => count.played += 1,
        }
    }

    pub(crate) fn played(&self) -> usize {
        self.counts.values().map(|count| count.played).sum()
    }

    pub(crate) fn failed(&self) -> usize {
        self.counts.values().map(|count| count.played - count.passed).sum()
    }

    /// Puts the table into docs/delivery.md.
    pub(crate) fn write(&self) -> Result<()> {
        let path = wharf_tool_support::step::root().join("docs/delivery.md");
        let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let (before, rest) =
            page.split_once(MARKS.0).context("docs/delivery.md has no place for the table")?;
        let (_, after) = rest.split_once(MARKS.1).context("the table in docs/delivery.md has no end")?;
        let page = format!("{before}{}{self}{}{after}", MARKS.0, MARKS.1);
        std::fs::write(&path, page).with_context(|| path.display().to_string())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| case |")?;
        for (agent, version) in &self.agents {
            write!(f, " {agent} {version} |")?;
        }
        write!(f, "\n|---|")?;
        for _ in &self.agents {
            write!(f, "---|")?;
        }
        writeln!(f)?;
        for case in CASES {
            let counts: Vec<Option<&Count>> =
                self.agents.iter().map(|(agent, _)| self.counts.get(&(*agent, case.name))).collect();
            if counts.iter().all(Option::is_none) {
                continue;
            }
            write!(f, "| {}: {} |", case.name, case.about)?;
            for count in counts {
                match count {
                    Some(Count { passed, played: played @ 1.. }) => write!(f, " {passed}/{played} |")?,
                    _ => write!(f, " – |")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
