//! A nix that runs, and everything that it started.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often the tree is looked through before it is ended: what forks faster than that is ended as far as it is known.
const MAX_ROUNDS: usize = 16;

/// Ends a process and all that came of it when dropped. Builders have sessions of their own, so a group is not enough.
pub(crate) struct Builders {
    root: Option<u32>,
}

/// A process, held so that its number cannot become another's.
struct Held {
    pidfd: OwnedFd,
    session: i32,
}

struct Stat {
    parent: i32,
    session: i32,
    start: u64,
}

impl Builders {
    /// Of a child that is not reaped yet.
    pub(crate) fn of(root: Option<u32>) -> Self {
        Self { root }
    }

    /// Lets them be: the child has ended by itself.
    pub(crate) fn done(mut self) {
        self.root = None;
    }
}

impl Drop for Builders {
    fn drop(&mut self) {
        let Some(root) = self.root.take().and_then(|root| i32::try_from(root).ok()) else { return };
        let mut held: BTreeMap<i32, Held> = BTreeMap::new();
        for _ in 0..MAX_ROUNDS {
            let known = held.len();
            gather(root, &mut held);
            if held.len() == known {
                break;
            }
        }
        for process in held.values() {
            // One that has ended by itself wants no more.
            let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
        }
    }
}

/// Stops everything that descends from the root or shares a session with what does, so that it forks no more.
fn gather(root: i32, held: &mut BTreeMap<i32, Held>) {
    let Ok(entries) = fs::read_dir("/proc") else { return };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let all: BTreeMap<i32, Stat> = pids.filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let Some(own) = all.get(&(std::process::id() as i32)).map(|own| own.session) else { return };
    // The root shares our own session; only those that its descendants made say where others belong.
    let mut sessions: HashSet<i32> =
        held.values().map(|held| held.session).filter(|session| *session != own).collect();
    let mut found: HashSet<i32> = held.keys().copied().chain([root]).collect();
    loop {
        let before = found.len();
        for (pid, stat) in &all {
            if found.contains(&stat.parent) || sessions.contains(&stat.session) {
                found.insert(*pid);
            }
        }
        sessions.extend(
            found.iter().filter_map(|pid| all.get(pid)).map(|stat| stat.session).filter(|of| *of != own),
        );
        if found.len() == before {
            break;
        }
    }
    for pid in found {
        let Some(before) = all.get(&pid) else { continue };
        if let std::collections::btree_map::Entry::Vacant(place) = held.entry(pid)
            && let Some(name) = Pid::from_raw(pid)
            && let Ok(pidfd) = pidfd_open(name, PidfdFlags::empty())
            && stat(pid).is_some_and(|now| now.start == before.start)
            && pidfd_send_signal(&pidfd, Signal::STOP).is_ok()
        {
            place.insert(Held { pidfd, session: before.session });
        }
    }
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name is in brackets and may hold anything; the state, field 3, follows it.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
    Some(Stat { parent: number(4)? as i32, session: number(6)? as i32, start: number(22)? as u64 })
}
