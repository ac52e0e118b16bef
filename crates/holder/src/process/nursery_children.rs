//! What the nursery knows of its children: holders that it forked, and the orphans of those that were killed.
//!
//! The kernel gives what a dead holder was the parent of to the nursery. A process may have left its cgroup, its variables and
//! its terminal; where it came from it does not leave.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use crate::linux::orphans::{self, Answer, QUESTION_LEN, Who};
use crate::linux::{self, children, proc};

/// The most families that are remembered: the oldest without orphans goes first.
const MAX_FAMILIES: usize = 1024;
/// The number of every family that is remembered no more.
const FORGOTTEN_FAMILY: u64 = 0;
/// The most questions that are answered before something else is looked at.
const MAX_QUESTIONS: usize = 64;

/// The children of the nursery.
#[derive(Default)]
pub(super) struct NurseryChildren {
    holders: HashSet<i32>,
    families: Vec<Family>,
    orphans: Vec<Orphan>,
    next: u64,
    /// Our own programs: what runs one of them is no orphan beyond doubt.
    programs: Vec<PathBuf>,
}

/// The holders of one session, one after the other.
struct Family {
    number: u64,
    holders: Vec<Who>,
}

struct Orphan {
    who: Who,
    /// The families that it may come from: beyond doubt where that is one.
    of: Vec<u64>,
    /// Whether it runs a program of ours, as a daemon does that a holder has just let go.
    program: bool,
}

impl NurseryChildren {
    pub(super) fn new() -> Self {
        let own = std::fs::read_link("/proc/self/exe").ok();
        let programs = own.into_iter().flat_map(|own| [own.with_file_name("wharf"), own]).collect();
        Self { programs, ..Self::default() }
    }

    /// A holder was forked.
    pub(super) fn note_forked(&mut self, pid: i32) {
        self.holders.insert(pid);
    }

    /// Takes note of children that have ended, and takes in what holders left that were killed.
    pub(super) fn look(&mut self) {
        let mut bereaved = Vec::new();
        while let Some((pid, start, status)) = ended() {
            self.orphans.retain(|orphan| orphan.who.0 != pid);
            if !self.holders.remove(&pid) {
                continue;
            }
            // One that leaves by itself has ended all that it had.
            if children::decode(status) == (Some(0), None) {
                self.dissolve((pid, start));
            } else {
                bereaved.push(self.family_of((pid, start)));
            }
        }
        if !bereaved.is_empty() {
            self.take_in(&bereaved);
        }
    }

    /// The family of a holder that was killed.
    fn family_of(&mut self, holder: Who) -> u64 {
        if let Some(family) = self.families.iter().find(|family| family.holders.contains(&holder)) {
            return family.number;
        }
        if self.families.len() >= MAX_FAMILIES {
            let empty =
                |family: &Family| !self.orphans.iter().any(|orphan| orphan.of.contains(&family.number));
            let at = self.families.iter().position(empty).unwrap_or_default();
            let gone = self.families.remove(at).number;
            // Its session may live: whoever else may have left them must not be taken for the only one.
            let of = self.orphans.iter_mut().flat_map(|orphan| &mut orphan.of);
            of.filter(|number| **number == gone).for_each(|number| *number = FORGOTTEN_FAMILY);
        }
        self.next += 1;
        self.families.push(Family { number: self.next, holders: vec![holder] });
        self.next
    }

    /// The session of a holder is over.
    fn dissolve(&mut self, holder: Who) {
        let Some(at) = self.families.iter().position(|family| family.holders.contains(&holder)) else {
            return;
        };
        let gone = self.families.remove(at).number;
        // What then is nobody's stays known: it is no news when it is seen again.
        self.orphans.iter_mut().for_each(|orphan| orphan.of.retain(|number| *number != gone));
    }

    /// Children that nobody has seen yet come from a holder that was killed just now, or from orphans that are here already:
    /// nobody is told when those leave theirs behind.
    fn take_in(&mut self, bereaved: &[u64]) {
        let mut of: Vec<u64> = bereaved.to_vec();
        of.extend(self.orphans.iter().flat_map(|orphan| &orphan.of).copied());
        of.sort_unstable();
        of.dedup();
        let known: HashSet<i32> = self.orphans.iter().map(|orphan| orphan.who.0).collect();
        for pid in proc::children_of(std::process::id() as i32) {
            if self.holders.contains(&pid) || known.contains(&pid) {
                continue;
            }
            let Ok(stat) = proc::stat(pid) else { continue };
            let runs = std::fs::read_link(format!("/proc/{pid}/exe"));
            let program = runs.is_ok_and(|runs| self.programs.contains(&runs));
            self.orphans.push(Orphan { who: (pid, stat.start), of: of.clone(), program });
        }
    }

    /// Answers those who ask for orphans.
    pub(super) fn answer(&mut self, desk: &OwnedFd) {
        for _ in 0..MAX_QUESTIONS {
            let (mut question, mut passed) = ([0; QUESTION_LEN], Vec::new());
            match linux::receive(desk, &mut question, &mut passed) {
                Ok(QUESTION_LEN) => {}
                Ok(_) => continue,
                Err(_) => return,
            }
            let (heir, of) = orphans::asked(&question);
            self.take_in(&[]);
            let answer = self.orphans_of(heir, of).encode();
            if let Some(to) = passed.first() {
                // It fits into an empty socket. Whoever is gone need not hear it.
                let _ = tell(to, &answer);
            }
        }
    }

    /// The orphans of a holder, which are its heir's from now on.
    fn orphans_of(&mut self, heir: Who, of: Who) -> Answer {
        let family = self.families.iter_mut().find(|family| family.holders.contains(&of));
        let Some(family) = family else { return Answer::default() };
        if !family.holders.contains(&heir) {
            family.holders.push(heir);
        }
        let number = family.number;
        let theirs = self.orphans.iter().filter(|orphan| orphan.of.contains(&number));
        let told = |orphan: &Orphan| (orphan.of.len() == 1 && !orphan.program, orphan.who);
        Answer { known: true, orphans: theirs.map(told).collect() }
    }
}

fn tell(to: &OwnedFd, answer: &[u8]) -> io::Result<()> {
    rustix::io::ioctl_fionbio(to, true)?;
    linux::send_bytes(to.as_fd(), answer).map(drop)
}

/// The next child that has ended: its pid, its start time, and its wait status.
fn ended() -> Option<(i32, u64, i32)> {
    let pid = children::next_ended()?;
    // Looked at before it is reaped: its number is its own until then.
    let start = proc::stat(pid).map(|stat| stat.start).unwrap_or_default();
    Some((pid, start, children::status_of(pid)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orphan_of_one_or_another_is_nobodys_beyond_doubt_when_one_of_them_is_forgotten() {
        let mut nursery_children = NurseryChildren::default();
        let holder = |number: usize| (number as i32 + 10, 1);
        let families: Vec<u64> =
            (0..MAX_FAMILIES).map(|number| nursery_children.family_of(holder(number))).collect();
        let orphan = |pid: i32, of: Vec<u64>| Orphan { who: (pid, 1), of, program: false };
        nursery_children.orphans = families.iter().map(|number| orphan(1, vec![*number])).collect();
        nursery_children.orphans.push(orphan(2, vec![families[0], families[1]]));
        // One more than are remembered: the oldest goes, and each of them has orphans.
        nursery_children.family_of((1, 1));
        assert!(!nursery_children.orphans_of(holder(0), holder(0)).known);
        let answer = nursery_children.orphans_of(holder(1), holder(1));
        assert_eq!(answer.orphans, [(true, (1, 1)), (false, (2, 1))]);
    }
}
