//! Starts fresh servers of every contestant for one stage, and numbers their sessions.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use fastrand::Rng;
use rustix::thread::{CpuSet, sched_setaffinity};
use wharf_tool_support::step::has;

use crate::contestant::Contestant;
use crate::dtach::Dtach;
use crate::floor::Floor;
use crate::kept::Kept;
use crate::notes::{Note, Notes};
use crate::place::Place;
use crate::screen::Screen;
use crate::table::BEFORE;
use crate::tmux::Tmux;
use crate::wharf::Wharf;
use crate::workers::Workers;

/// How long anything may take before a contestant is said to be stuck.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// One stage's ground: fresh servers of every contestant, and a number for every session.
pub(crate) struct Course {
    pub(crate) floor: Rc<Floor>,
    pub(crate) all: Vec<Rc<dyn Contestant>>,
    pub(crate) notes: Notes,
    pub(crate) place: Rc<Place>,
    random: Rng,
    next: i32,
    workers: Option<Workers>,
}

/// What takes part.
pub(crate) struct Entry {
    pub(crate) wharf: Option<PathBuf>,
    /// An earlier build, to be compared with in the same rounds.
    pub(crate) before: Option<PathBuf>,
    pub(crate) quick: bool,
    /// The processors that we may use.
    pub(crate) processors: CpuSet,
}

/// A session that runs.
pub(crate) struct Running {
    pub(crate) name: String,
    pub(crate) id: i32,
    pub(crate) pid: i32,
    _kept: Option<Kept>,
}

impl Course {
    /// Starts every contestant that is here. On one processor where latencies are measured: what is compared is
    /// work, and not which core something happened to wake up on.
    pub(crate) fn new(entry: &Entry, pinned: bool) -> Result<Self> {
        if !pinned {
            sched_setaffinity(None, &entry.processors)?;
            return Self::start(entry);
        }
        let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| entry.processors.is_set(*cpu)).unwrap_or(0);
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one)?;
        let mut course = Self::start(entry)?;
        course.workers = Workers::keep_on(last);
        Ok(course)
    }

    fn start(entry: &Entry) -> Result<Self> {
        let place = Rc::new(Place::new()?);
        let notes = Notes::new(place.path())?;
        let floor = Rc::new(Floor::new(&place)?);
        let mut all: Vec<Rc<dyn Contestant>> = vec![Rc::clone(&floor) as Rc<dyn Contestant>];
        if let Some(wharf) = &entry.wharf {
            all.push(Rc::new(Wharf::new(&place, wharf, "wharf")?));
        }
        if let Some(before) = &entry.before {
            all.push(Rc::new(Wharf::new(&place, before, BEFORE)?));
        }
        if has("dtach") {
            all.push(Rc::new(Dtach::new(&place)));
        }
        if has("screen") {
            all.push(Rc::new(Screen::new(&place)));
        }
        if has("tmux") {
            all.push(Rc::new(Tmux::new(&place)?));
        }
        Ok(Self { floor, all, notes, place, random: Rng::with_seed(11), next: 1, workers: None })
    }

    /// The contestants in another order each time.
    pub(crate) fn shuffled(&mut self) -> Vec<Rc<dyn Contestant>> {
        let mut list = self.all.clone();
        self.random.shuffle(&mut list);
        list
    }

    /// A number for a session that is to come.
    pub(crate) fn number(&mut self) -> i32 {
        self.next += 1;
        self.next
    }

    /// The command line of `bench/command.c`.
    pub(crate) fn argv(&self, what: &str, id: i32, more: Option<u64>) -> Vec<String> {
        let mut argv = vec![
            self.place.program("command").display().to_string(),
            what.to_owned(),
            self.notes.path().display().to_string(),
            id.to_string(),
        ];
        argv.extend(more.map(|number| number.to_string()));
        argv
    }

    /// Starts a session and waits until its command runs.
    pub(crate) fn run(&mut self, who: &dyn Contestant, what: &str, more: Option<u64>) -> Result<Running> {
        let id = self.number();
        let name = format!("s{id}");
        let mut child = who
            .create(&name, &self.argv(what, id, more))
            .spawn()
            .with_context(|| format!("cannot start a session in {}", who.name()))?;
        let note = self.notes.from(id, STEP_TIMEOUT).with_context(|| format!("{} {what}", who.name()))?;
        let kept = if who.detaches() {
            child.wait()?;
            None
        } else {
            Some(Kept(child))
        };
        Ok(Running { name, id, pid: note.pid, _kept: kept })
    }

    /// What a session says next.
    pub(crate) fn hear(&mut self, from: &Running) -> Result<Note> {
        self.notes.from(from.id, STEP_TIMEOUT)
    }
}

/// What was left over of a measurement gets its processor time before the next one begins.
pub(crate) fn settle() {
    std::thread::sleep(Duration::from_millis(5));
}
