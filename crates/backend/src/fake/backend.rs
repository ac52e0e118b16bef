//! Implements the fake backend: sessions in memory that a test ends, breaks or loses at will.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use wharf_model::{Capabilities, Code, ExitRecord, Home, ProcessIdentity, Reason, SessionId, Ticket};

use super::Program;
use super::connection::FakeConnection;
use super::session::{Session, now};
use crate::{Adoption, Backend, Connection, Failure, Launch, Probe, Result, Stream};

/// A backend in memory. Clones are handles of the same one.
#[derive(Clone)]
pub struct FakeBackend(Arc<Shared>);

struct Shared {
    name: &'static str,
    capabilities: Capabilities,
    sessions: Mutex<BTreeMap<SessionId, Arc<Session>>>,
    starts: AtomicU32,
}

/// Above every pid that Linux gives out: a test that signals one by mistake hits nobody.
const FIRST_PID: u32 = 1 << 23;

impl FakeBackend {
    /// A fake with the name `fake` that can do all that a fake can do.
    pub fn new() -> Self {
        Self::with("fake", Self::all())
    }

    /// A fake with this name that claims these capabilities alone; the others answer *unsupported*.
    pub fn with(name: &'static str, capabilities: Capabilities) -> Self {
        Self(Arc::new(Shared { name, capabilities, sessions: Mutex::default(), starts: AtomicU32::new(0) }))
    }

    /// All that a fake can do.
    pub fn all() -> Capabilities {
        Capabilities {
            tty: true,
            pipes: true,
            input_ack: true,
            pending_input: true,
            resize: true,
            signal: true,
            tree_kill: true,
            adopt: true,
            list: true,
            offsets: true,
            exec: true,
            stats: true,
            limits: false,
            copy: false,
            pause: false,
            images: false,
            guests: false,
            answers: false,
            isolation: false,
        }
    }

    /// Ends a session as if its command had ended so. The end of the log is filled in.
    ///
    /// # Panics
    /// Where there is no such session.
    pub fn end(&self, id: &SessionId, record: ExitRecord) {
        self.session(id).end(record);
    }

    /// Ends a session with a code.
    pub fn exit(&self, id: &SessionId, code: i32) {
        let session = self.session(id);
        session.end(session.exited(code));
    }

    /// Takes a session away without an exit record, as when holder and command were killed at once.
    pub fn lose(&self, id: &SessionId) {
        self.session(id).cut(true);
    }

    /// Breaks the connections to a session, which goes on.
    pub fn break_connection(&self, id: &SessionId) {
        self.session(id).cut(false);
    }

    /// Prints something in a session.
    pub fn print(&self, id: &SessionId, bytes: &[u8]) {
        self.session(id).print(Stream::Out, bytes);
    }

    /// Prints something on a session's standard error.
    pub fn print_error(&self, id: &SessionId, bytes: &[u8]) {
        self.session(id).print(Stream::Err, bytes);
    }

    /// All that was ever typed in a session.
    pub fn input(&self, id: &SessionId) -> Vec<u8> {
        self.session(id).lock().input.clone()
    }

    /// Lets a program that does not read take in what waits.
    pub fn read(&self, id: &SessionId) {
        let session = self.session(id);
        session.lock().unread = 0;
        session.tick();
    }

    /// The sessions that live.
    pub fn live(&self) -> Vec<SessionId> {
        self.sessions().values().filter(|session| session.lives()).map(|s| s.ticket.id.clone()).collect()
    }

    /// How many commands were ever run.
    pub fn starts(&self) -> u32 {
        self.0.starts.load(Ordering::SeqCst)
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Session>>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, id: &SessionId) -> Arc<Session> {
        Arc::clone(self.sessions().get(id).unwrap_or_else(|| panic!("the fake has no session {id}")))
    }

    fn connect(&self, session: &Arc<Session>) -> Arc<dyn Connection> {
        Arc::new(FakeConnection::new(Arc::clone(session), self.0.name, self.0.capabilities))
    }

    /// Refuses what cannot be run, before anything is made.
    fn check(&self, launch: &Launch) -> Result<Program> {
        let Capabilities { tty, pipes, .. } = self.0.capabilities;
        if launch.spec.tty && !tty {
            return Err(Failure::unsupported("sessions with a terminal", self.0.name));
        }
        if !launch.spec.tty && !pipes {
            return Err(Failure::unsupported("sessions without a terminal", self.0.name));
        }
        if !launch.spec.limits.is_none() {
            return Err(Failure::new(Code::LimitRefused, "a fake session has no limits")
                .hint("leave --memory, --cpus and --pids away"));
        }
        let dir = launch.spec.dir.as_path();
        if !dir.is_dir() {
            return Err(Failure::new(Code::NoDirectory, format!("no directory {}", dir.display())));
        }
        if self.sessions().get(&launch.id).is_some_and(|session| session.lives()) {
            return Err(Failure::new(Code::Running, format!("session {} runs already", launch.id)));
        }
        Program::parse(&launch.argv, &launch.env)
    }
}

impl Default for FakeBackend {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Backend for FakeBackend {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities
    }

    async fn probe(&self) -> Probe {
        Probe {
            available: true,
            version: None,
            detail: "sessions in memory, for tests".to_owned(),
            hint: None,
        }
    }

    async fn start(&self, launch: Launch) -> Result<(Ticket, Arc<dyn Connection>)> {
        let program = self.check(&launch)?;
        let count = self.0.starts.fetch_add(1, Ordering::SeqCst);
        let started = now();
        let ticket = Ticket {
            started,
            command: Some(ProcessIdentity {
                pid: (FIRST_PID + count) as i32,
                start: started.0,
                boot: "fake".to_owned(),
                namespace: None,
            }),
            ..launch.ticket(self.0.name)
        };
        let session = Arc::new(Session::create(&launch, ticket.clone(), program)?);
        self.sessions().insert(launch.id.clone(), Arc::clone(&session));
        session.run();
        Ok((ticket, self.connect(&session)))
    }

    async fn adopt(&self, ticket: &Ticket) -> Result<Adoption> {
        if !self.0.capabilities.adopt {
            return Err(Failure::unsupported("finding sessions again", self.0.name));
        }
        let session = self.sessions().get(&ticket.id).cloned();
        if let Some(session) = session {
            let known = &session.ticket;
            if (known.run, &known.token, &known.command) == (ticket.run, &ticket.token, &ticket.command) {
                let inner = session.lock();
                if let Some(record) = &inner.exit {
                    return Ok(Adoption::Ended(record.clone()));
                }
                if inner.lost {
                    return Ok(Adoption::Lost);
                }
                drop(inner);
                return Ok(Adoption::Alive(self.connect(&session)));
            }
        }
        let record = fs::read(ticket.dir.as_path().join(Home::EXIT)).ok();
        let record = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(record.map_or(Adoption::Lost, Adoption::Ended))
    }

    async fn list(&self) -> Result<Vec<Ticket>> {
        if !self.0.capabilities.list {
            return Err(Failure::unsupported("listing", self.0.name));
        }
        let there = |s: &Session| s.lives() || s.ticket.dir.as_path().join(Home::TICKET).exists();
        Ok(self.sessions().values().filter(|s| there(s)).map(|s| s.ticket.clone()).collect())
    }

    async fn sweep(&self, ticket: &Ticket) -> Result<u32> {
        let mut sessions = self.sessions();
        let known = sessions.get(&ticket.id).filter(|session| session.ticket.token == ticket.token);
        match known.map(|session| session.lives()) {
            Some(true) => Err(Failure::new(Code::Running, format!("session {} still runs", ticket.id))),
            Some(false) => {
                sessions.remove(&ticket.id);
                Ok(0)
            }
            None => Ok(0),
        }
    }

    async fn kill(&self, ticket: &Ticket) -> Result<()> {
        let session = self.sessions().get(&ticket.id).cloned();
        if let Some(session) = session.filter(|session| session.ticket.token == ticket.token) {
            session.end(session.signalled(9, Reason::Killed, None));
        }
        Ok(())
    }

    /// Ends nothing: the only tasks of the fake are the commands of its sessions, which run on.
    async fn close(&self) {}
}
