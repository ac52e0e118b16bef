//! Counts processes, files, descriptors and containers, and names what is new.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;
use wharf_tool_support::container_engine::ContainerEngine;
use wharf_tool_support::instance::Instance;
use wharf_tool_support::process;

/// Everything in which something could be left.
pub(super) struct Ground<'a> {
    pub(super) instance: &'a Instance,
    pub(super) engine: Option<&'a ContainerEngine>,
}

/// What there is of each kind.
#[derive(PartialEq, Eq)]
pub(super) struct Inventory {
    kinds: BTreeMap<&'static str, Vec<String>>,
    /// Private memory of the daemon, in kilobytes; to be seen, and not to be compared.
    memory: u64,
}

impl Ground<'_> {
    /// Looks at everything.
    pub(super) fn look(&self) -> Result<Inventory> {
        let mut kinds = BTreeMap::new();
        let mut files = Vec::new();
        walk(self.instance.home(), &mut files);
        kinds.insert("files", files);
        let ours = self.instance.processes().into_iter().filter(|pid| process::lives(*pid));
        kinds.insert("processes", ours.map(process::command_line).collect());
        let status: Value =
            serde_json::from_slice(&self.instance.try_run(&["daemon", "status", "--json"])?.stdout)
                .unwrap_or_default();
        let daemon = status["pid"].as_i64().unwrap_or(0) as i32;
        kinds.insert("descriptors", descriptors(daemon));
        kinds.insert("panes", self.panes());
        if let Some(engine) = self.engine {
            kinds.insert("containers", engine.list(&["ps", "-a", "-q"])?);
            kinds.insert("volumes", engine.list(&["volume", "ls", "-q"])?);
            kinds.insert("networks", engine.list(&["network", "ls", "-q"])?);
            let programs = engine.processes().into_iter().map(process::command_line);
            kinds.insert("the engine's processes", programs.collect());
        }
        Ok(Inventory { kinds, memory: process::private_memory(daemon).unwrap_or(0) / 1024 })
    }

    /// Looks until nothing changes any more.
    pub(super) fn settled(&self, within: Duration) -> Result<Inventory> {
        let deadline = Instant::now() + within;
        let mut last = self.look()?;
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let now = self.look()?;
            if now.counts() == last.counts() {
                return Ok(now);
            }
            if Instant::now() > deadline {
                bail!("it does not come to rest: {last}, then {now}");
            }
            last = now;
        }
    }

    /// Waits until there is no more than before, and says what there is nevertheless.
    pub(super) fn wait_for(&self, before: &Inventory, within: Duration) -> Result<Vec<String>> {
        self.wait(within, |now| now.beyond(before))
    }

    /// Waits until no session, container, volume or pane is there, and says what there is nevertheless.
    pub(super) fn wait_for_none(&self, within: Duration) -> Result<Vec<String>> {
        self.wait(within, Inventory::of_sessions)
    }

    fn wait(&self, within: Duration, left: impl Fn(&Inventory) -> Vec<String>) -> Result<Vec<String>> {
        let deadline = Instant::now() + within;
        loop {
            let found = left(&self.look()?);
            if found.is_empty() || Instant::now() > deadline {
                return Ok(found);
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    /// Panes of the private tmux server, where there is one.
    fn panes(&self) -> Vec<String> {
        let dir = self.instance.home().join(".local/state/wharf/tmux");
        if !dir.join("sock").exists() {
            return Vec::new();
        }
        let mut list = std::process::Command::new("tmux");
        list.args(["-S", "sock", "list-panes", "-a", "-F", "#{session_name}"])
            .current_dir(dir)
            .env_remove("TMUX");
        let listed = list.output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect()
    }
}

impl Inventory {
    fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.kinds.iter().map(|(kind, things)| (*kind, things.len())).collect()
    }

    /// Of every kind of which there is more now: what is new.
    fn beyond(&self, before: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (kind, things) in &self.kinds {
            let old = before.kinds.get(kind).map(Vec::as_slice).unwrap_or_default();
            if things.len() > old.len() {
                let new = things.iter().filter(|thing| !old.contains(thing)).take(5);
                let new: Vec<&str> = new.map(String::as_str).collect();
                found.push(format!("{} {kind} more, such as {}", things.len() - old.len(), new.join(", ")));
            }
        }
        found
    }

    fn of_sessions(&self) -> Vec<String> {
        let mut found = Vec::new();
        for kind in ["panes", "containers", "volumes"] {
            found.extend(self.kinds.get(kind).into_iter().flatten().map(|thing| format!("{kind}: {thing}")));
        }
        let files = self.kinds.get("files").into_iter().flatten();
        found.extend(files.filter(|path| path.contains("/sessions/") || path.contains("/names/")).cloned());
        found
    }
}

impl fmt::Display for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in self.counts() {
            write!(f, "{count} {kind}, ")?;
        }
        write!(f, "{} KB of the daemon's own", self.memory)
    }
}

/// Every path below a directory, without the files whose number the store and the journal decide.
fn walk(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("store.db") || name.starts_with("daemon.log") {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, found);
        }
        found.push(path.display().to_string());
    }
}

/// What a process has open.
fn descriptors(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.display().to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &'static str, things: &[&str]) -> Inventory {
        let things = things.iter().map(|thing| (*thing).to_owned()).collect();
        Inventory { kinds: BTreeMap::from([(kind, things)]), memory: 0 }
    }

    #[test]
    fn what_is_more_than_before_is_named() {
        let before = of("containers", &["a"]);
        assert_eq!(of("containers", &["b"]).beyond(&before), [""; 0], "another in its place is none more");
        assert_eq!(of("containers", &["a", "b"]).beyond(&before), ["1 containers more, such as b"]);
        assert_eq!(of("files", &["/x/sessions/a", "/x/y"]).of_sessions(), ["/x/sessions/a"]);
        assert_eq!(of("panes", &["a"]).of_sessions(), ["panes: a"]);
    }
}
