//! Keeps every session's name, id and order in memory, and decides who gets a name.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wharf_model::{Code, Failure, Name, SessionId};

use crate::Result;
use crate::session::handle::Handle;

/// How many ended sessions are kept in memory; older ones are found through the store.
pub(crate) const MAX_ENDED_IN_MEMORY: usize = 1_000;

/// The one place that decides names, ids and their order. Its lock is held for a few steps, never across an await.
#[derive(Default)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Live sessions and the newest ended ones. Ids sort by the time of creation.
    entries: BTreeMap<SessionId, Arc<Handle>>,
    /// Who has a name now. An ended session keeps its name until another takes it.
    names: HashMap<Name, SessionId>,
    /// Ended sessions in the order of their end.
    ended: VecDeque<SessionId>,
    /// Which session a process belongs to: its holder or its command.
    processes: HashMap<i32, SessionId>,
    /// The last number given to each made-up name.
    numbers: HashMap<String, u32>,
}

/// What a claim found.
pub(crate) enum Claimed {
    /// The name is this session's; an ended one had it before.
    New { displaced: Option<SessionId> },
    /// A live session fits already.
    Existing(Arc<Handle>),
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes up a name that no session in memory has. A stem may begin with `GROUP/`.
    pub(crate) fn make_up(&self, stem: &str) -> Result<Name> {
        let mut inner = self.lock();
        let mut number = inner.numbers.get(stem).copied().unwrap_or(0);
        loop {
            number = number.wrapping_add(1);
            let name: Name = format!("{stem}-{number}").parse()?;
            if !inner.names.contains_key(&name) {
                // Stems come from commands; a caller that makes up thousands of them is not remembered.
                if inner.numbers.len() > 4_096 {
                    inner.numbers.clear();
                }
                inner.numbers.insert(stem.to_owned(), number);
                return Ok(name);
            }
        }
    }

    /// Enters a new session under its name. With `ensure`, a live session of that name (`named`) or else of
    /// that group is the answer.
    pub(crate) fn claim(&self, handle: &Arc<Handle>, ensure: bool, named: bool) -> Result<Claimed> {
        let session = handle.session();
        let mut inner = self.lock();
        if ensure && !named && session.group.is_some() {
            let fits = |entry: &&Arc<Handle>| !entry.is_over() && entry.session().group == session.group;
            if let Some(existing) = inner.entries.values().find(fits) {
                return Ok(Claimed::Existing(Arc::clone(existing)));
            }
        }
        let owner = inner.names.get(&session.name).cloned();
        if let Some(owner) =
            owner.as_ref().and_then(|owner| inner.entries.get(owner)).filter(|o| !o.is_over())
        {
            if ensure && named {
                return Ok(Claimed::Existing(Arc::clone(owner)));
            }
            return Err(taken(&session.name));
        }
        inner.names.insert(session.name.clone(), handle.id.clone());
        inner.entries.insert(handle.id.clone(), Arc::clone(handle));
        Ok(Claimed::New { displaced: owner })
    }

    /// Takes a claim back; the name goes to the session that had it before.
    pub(crate) fn unclaim(&self, id: &SessionId, name: &Name, displaced: Option<&SessionId>) {
        let mut inner = self.lock();
        if inner.names.get(name) == Some(id) {
            match displaced.filter(|old| inner.entries.contains_key(old)) {
                Some(old) => inner.names.insert(name.clone(), old.clone()),
                None => inner.names.remove(name),
            };
        }
        inner.forget(id);
    }

    /// Enters a session that was found: its name is its own unless a live session has it.
    pub(crate) fn enter(&self, handle: &Arc<Handle>) {
        let session = handle.session();
        let mut inner = self.lock();
        let owner = inner.names.get(&session.name).and_then(|owner| inner.entries.get(owner));
        let keeps =
            owner.is_some_and(|owner| !owner.is_over() || (session.state.is_over() && owner.id > handle.id));
        if !keeps {
            inner.names.insert(session.name.clone(), handle.id.clone());
        }
        inner.entries.insert(handle.id.clone(), Arc::clone(handle));
        drop(inner);
        if session.state.is_over() {
            self.ended(&handle.id);
        }
    }

    /// The entry of this id, which is `handle` if there was none: a session has one handle that can run it.
    pub(crate) fn canonical(&self, handle: &Arc<Handle>) -> Arc<Handle> {
        if let Some(known) = self.by_id(&handle.id) {
            return known;
        }
        self.enter(handle);
        self.by_id(&handle.id).unwrap_or_else(|| Arc::clone(handle))
    }

    /// A session is over: it joins the ended ones, and the oldest of those leaves memory.
    pub(crate) fn ended(&self, id: &SessionId) {
        let mut inner = self.lock();
        inner.processes.retain(|_, of| of != id);
        inner.ended.retain(|known| known != id);
        inner.ended.push_back(id.clone());
        while inner.ended.len() > MAX_ENDED_IN_MEMORY {
            let Some(oldest) = inner.ended.pop_front() else { break };
            if inner.entries.get(&oldest).is_some_and(|entry| entry.is_over()) {
                inner.forget(&oldest);
                inner.names.retain(|_, of| *of != oldest);
            }
        }
    }

    /// An ended session runs again.
    pub(crate) fn revived(&self, id: &SessionId) {
        self.lock().ended.retain(|known| known != id);
    }

    /// Notes which processes are a session's.
    pub(crate) fn processes(&self, id: &SessionId, pids: impl IntoIterator<Item = i32>) {
        // Those of an earlier run stay until the end: whoever asks compares the start time too.
        let mut inner = self.lock();
        inner.processes.extend(pids.into_iter().map(|pid| (pid, id.clone())));
    }

    /// The live session whose holder or command this process is.
    pub(crate) fn of_process(&self, pid: i32) -> Option<Arc<Handle>> {
        let inner = self.lock();
        inner.processes.get(&pid).and_then(|id| inner.entries.get(id)).cloned()
    }

    /// Removes a session and its name.
    pub(crate) fn remove(&self, id: &SessionId) {
        let mut inner = self.lock();
        inner.names.retain(|_, of| of != id);
        inner.forget(id);
    }

    /// Gives a session another name, next to its old one until [`Self::release`].
    pub(crate) fn reserve(&self, name: &Name, id: &SessionId) -> Result<Option<SessionId>> {
        let mut inner = self.lock();
        let owner = inner.names.get(name).cloned();
        if let Some(owner) = &owner
            && (owner == id || inner.entries.get(owner).is_some_and(|entry| !entry.is_over()))
        {
            return Err(taken(name));
        }
        inner.names.insert(name.clone(), id.clone());
        Ok(owner)
    }

    /// Takes a name from a session.
    pub(crate) fn release(&self, name: &Name, id: &SessionId) {
        let mut inner = self.lock();
        if inner.names.get(name) == Some(id) {
            inner.names.remove(name);
        }
    }

    pub(crate) fn by_id(&self, id: &SessionId) -> Option<Arc<Handle>> {
        self.lock().entries.get(id).cloned()
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<Arc<Handle>> {
        let name: Name = name.parse().ok()?;
        let inner = self.lock();
        inner.names.get(&name).and_then(|id| inner.entries.get(id)).cloned()
    }

    /// The names of this word in groups, in order.
    pub(crate) fn in_groups(&self, word: &str) -> Vec<Name> {
        let inner = self.lock();
        let mut names: Vec<Name> =
            inner.names.keys().filter(|name| name.word() == word && name.as_str() != word).cloned().collect();
        names.sort();
        names
    }

    /// Whether a name is somebody's.
    pub(crate) fn has_name(&self, name: &Name) -> bool {
        self.lock().names.contains_key(name)
    }

    /// Sessions in memory whose id starts so.
    pub(crate) fn by_prefix(&self, prefix: &str) -> Vec<Arc<Handle>> {
        let inner = self.lock();
        inner.entries.values().filter(|entry| entry.id.as_str().starts_with(prefix)).cloned().collect()
    }

    /// Every session in memory, in the order of creation.
    pub(crate) fn all(&self) -> Vec<Arc<Handle>> {
        self.lock().entries.values().cloned().collect()
    }

    /// How many sessions are not over.
    pub(crate) fn live(&self) -> usize {
        self.lock().entries.values().filter(|entry| !entry.is_over()).count()
    }
}

impl Inner {
    fn forget(&mut self, id: &SessionId) {
        self.entries.remove(id);
        self.ended.retain(|known| known != id);
        self.processes.retain(|_, of| of != id);
    }
}

pub(crate) fn taken(name: &Name) -> Failure {
    Failure::new(Code::NameTaken, format!("the name {name} is taken by a session that is not over"))
        .hint(format!("`wharf show {name}` shows it; choose another name, or stop it first"))
}
