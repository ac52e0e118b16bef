//! Starts short sessions during the kills, and checks that each ran at most once.

use anyhow::Result;
use wharf_tool_support::instance::Instance;

/// Short sessions that are started all through the kills. Each says its name once and exits with 3.
#[derive(Default)]
pub(super) struct Visitors {
    list: Vec<Visitor>,
}

struct Visitor {
    name: String,
    acknowledged: bool,
}

impl Visitors {
    /// The command line of the next one.
    pub(super) fn next(&self, place: &[String]) -> Vec<String> {
        let name = format!("visitor-{}", self.list.len());
        let line = format!("echo {name}; exit 3");
        let mut words = ["run", "-d", "--name", &name].map(str::to_owned).to_vec();
        words.extend(place.iter().cloned());
        words.extend(["--", "/bin/sh", "-c", &line].map(str::to_owned));
        words
    }

    /// Notes whether its start was reported.
    pub(super) fn came(&mut self, acknowledged: bool) {
        self.list.push(Visitor { name: format!("visitor-{}", self.list.len()), acknowledged });
    }

    /// How many there were.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Whoever was reported ran once, to the end. Whoever was not never ran, or ran once: to the end, or until its
    /// holder saw that nobody was there any more to report it to. One whose container was made and never told what to
    /// run is lost, and has said nothing.
    pub(super) fn faults(&self, instance: &Instance) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        for visitor in &self.list {
            let name = visitor.name.as_str();
            // Not by `ls`: of those that are over it shows the newest.
            if !instance.try_run(&["show", name])?.status.success() {
                if visitor.acknowledged {
                    faults.push(format!("{name} was started, and is not known"));
                }
                continue;
            }
            let ended = instance.try_run(&["wait", "--timeout", "20s", name])?;
            let log = instance.try_run(&["logs", name])?;
            let said = String::from_utf8_lossy(&log.stdout).replace('\r', "");
            let whole = ended.status.code() == Some(3) && said == format!("{name}\n");
            let abandoned = match ended.status.code() {
                Some(137) => said.is_empty() || said == format!("{name}\n"),
                Some(125) => said.is_empty(),
                _ => false,
            };
            if !(whole || abandoned && !visitor.acknowledged) {
                faults.push(format!("{name}: `wait` says {}, the log says {said:?}", ended.status));
            }
        }
        Ok(faults)
    }
}
