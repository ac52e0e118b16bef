//! Keeps the state of one fake session: input, output, log, exit record and connections.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::watch;
use tokio::time::Instant;
use wharf_model::{Code, ExitRecord, Home, Millis, Offset, Reason, Size, Ticket};

use super::Program;
use crate::{Failure, Launch, Result, Status, Stream};

/// How much input waits in the fake terminal of a program that does not read.
pub(super) const BUFFER_LEN: usize = 64 * 1024;

/// A session of the fake: what its holder would be.
pub(super) struct Session {
    pub(super) ticket: Ticket,
    pub(super) program: Program,
    /// Whose turn it is to write: one write goes in whole before the next.
    pub(super) writer: tokio::sync::Mutex<()>,
    /// Changes with everything that somebody may wait for.
    tick: watch::Sender<u64>,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    file: File,
    pub(super) log: Vec<u8>,
    /// Where each run of bytes of one stream begins.
    streams: BTreeMap<usize, Stream>,
    /// All that was ever typed.
    pub(super) input: Vec<u8>,
    pub(super) unread: usize,
    line: Vec<u8>,
    pub(super) closed: bool,
    pub(super) exit: Option<ExitRecord>,
    pub(super) lost: bool,
    pub(super) last_output: Option<Millis>,
    pub(super) wire: Arc<Wire>,
}

/// What the connections of one moment share; breaking them replaces it.
pub(super) struct Wire {
    pub(super) status: watch::Sender<Status>,
}

/// The wall clock, moved by tokio's clock so that paused tests see it move.
pub(super) fn now() -> Millis {
    static START: std::sync::OnceLock<(SystemTime, Instant)> = std::sync::OnceLock::new();
    let (wall, start) = START.get_or_init(|| (SystemTime::now(), Instant::now()));
    Millis::from(*wall + start.elapsed())
}

impl Session {
    /// Makes directory, log and ticket, in the order of a real backend. Nothing runs yet.
    pub(super) fn create(launch: &Launch, ticket: Ticket, program: Program) -> Result<Self> {
        let (file, log) = prepare(&launch.home, &ticket)
            .map_err(|error| Failure::system(format!("cannot prepare {}", launch.home.display()), &error))?;
        let status = Status {
            pid: ticket.command.as_ref().map(|command| command.pid),
            size: launch.spec.size.sane(),
            ..Status::default()
        };
        let inner = Inner {
            file,
            log,
            streams: BTreeMap::new(),
            input: Vec::new(),
            unread: 0,
            line: Vec::new(),
            closed: false,
            exit: None,
            lost: false,
            last_output: None,
            wire: Arc::new(Wire { status: watch::Sender::new(status) }),
        };
        Ok(Self {
            ticket,
            program,
            writer: tokio::sync::Mutex::new(()),
            tick: watch::Sender::new(0),
            inner: Mutex::new(inner),
        })
    }

    /// Lets the program do what it does without being asked.
    pub(super) fn run(self: &Arc<Self>) {
        self.print(Stream::Out, &self.program.prints());
        let Some((code, after)) = self.program.ends() else { return };
        if after.is_zero() {
            self.end(self.exited(code));
            return;
        }
        let session = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            session.end(session.exited(code));
        });
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ticks(&self) -> watch::Receiver<u64> {
        self.tick.subscribe()
    }

    pub(super) fn tick(&self) {
        self.tick.send_modify(|tick| *tick += 1);
    }

    pub(super) fn lives(&self) -> bool {
        let inner = self.lock();
        inner.exit.is_none() && !inner.lost
    }

    pub(super) fn print(&self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut inner = self.lock();
        if inner.exit.is_some() || inner.lost {
            return;
        }
        inner.file.write_all(bytes).expect("the log of a fake session takes bytes");
        let at = inner.log.len();
        if inner.streams.values().next_back() != Some(&stream) {
            inner.streams.insert(at, stream);
        }
        inner.log.extend_from_slice(bytes);
        inner.last_output = Some(now());
        drop(inner);
        self.tick();
    }

    /// Takes as much input as there is room for, and says how much that was.
    pub(super) fn take(&self, bytes: &[u8]) -> usize {
        if self.program.reads() {
            self.read(bytes);
            return bytes.len();
        }
        let mut inner = self.lock();
        let taken = bytes.len().min(BUFFER_LEN - inner.unread);
        inner.unread += taken;
        inner.input.extend_from_slice(&bytes[..taken]);
        taken
    }

    fn read(&self, bytes: &[u8]) {
        self.print(Stream::Out, bytes);
        let mut exit = None;
        let mut inner = self.lock();
        inner.input.extend_from_slice(bytes);
        for &byte in bytes {
            match byte {
                0x04 if self.ticket.spec.tty => exit = exit.or(Some(0)),
                b'\r' | b'\n' => {
                    exit = exit.or(Program::told_to_exit(&inner.line));
                    inner.line.clear();
                }
                _ => inner.line.push(byte),
            }
        }
        drop(inner);
        if let Some(code) = exit {
            self.end(self.exited(code));
        }
    }

    pub(super) fn exited(&self, code: i32) -> ExitRecord {
        ExitRecord { code: Some(code), ..self.record(Reason::Exited, None) }
    }

    pub(super) fn signalled(&self, signal: i32, reason: Reason, by: Option<String>) -> ExitRecord {
        ExitRecord { signal: Some(signal), ..self.record(reason, by) }
    }

    fn record(&self, reason: Reason, by: Option<String>) -> ExitRecord {
        ExitRecord {
            limit: None,
            code: None,
            signal: None,
            oom: false,
            reason,
            by,
            started: self.ticket.started,
            ended: now(),
            log_end: Offset(0),
            leftovers: 0,
            survivors: 0,
            unsure: false,
        }
    }

    /// Ends it, once: record on disk first, then the news. Returns the record that counts.
    pub(super) fn end(&self, record: ExitRecord) -> ExitRecord {
        let mut inner = self.lock();
        if let Some(known) = &inner.exit {
            return known.clone();
        }
        let record = ExitRecord { log_end: Offset(inner.log.len() as u64), ..record };
        if !inner.lost {
            let json = serde_json::to_vec(&record).expect("an exit record is plain data");
            // A test may have taken the directory away, as a user may: the news is what is left then.
            drop(replace(&self.ticket.dir.as_path().join(Home::EXIT), &json));
        }
        inner.exit = Some(record.clone());
        inner.wire.status.send_modify(|status| status.exit = Some(record.clone()));
        drop(inner);
        self.tick();
        record
    }

    /// Breaks every connection; `lost` takes the session with it.
    pub(super) fn cut(&self, lost: bool) {
        let mut inner = self.lock();
        inner.lost |= lost;
        let broken = inner.wire.status.borrow().clone();
        inner.wire.status.send_modify(|status| status.broken = true);
        inner.wire = Arc::new(Wire { status: watch::Sender::new(broken) });
        drop(inner);
        self.tick();
    }

    pub(super) fn resize(&self, size: Size) {
        self.lock().wire.status.send_modify(|status| status.size = size.sane());
    }

    pub(super) fn signal(&self, signal: i32) -> Result<()> {
        if !(1..=64).contains(&signal) {
            return Err(Failure::new(Code::Invalid, format!("{signal} is not a signal")));
        }
        if self.program.dies_of(signal) {
            self.end(self.signalled(signal, Reason::Exited, None));
        }
        Ok(())
    }
}

impl Inner {
    /// The bytes from `at` on that one stream printed, at most a page of them.
    pub(super) fn piece(&self, at: usize) -> Option<(Stream, Vec<u8>)> {
        let stream = self.streams.range(..=at).next_back().map_or(Stream::Out, |(_, stream)| *stream);
        let next =
            self.streams.range(at.saturating_add(1)..).next().map_or(self.log.len(), |(next, _)| *next);
        let end = next.min(at.saturating_add(BUFFER_LEN));
        (at < end).then(|| (stream, self.log[at..end].to_vec()))
    }
}

/// Directory, log, ticket: a log that is there is continued, an exit record that is there is of an earlier run.
fn prepare(home: &Path, ticket: &Ticket) -> io::Result<(File, Vec<u8>)> {
    let log = home.join(Home::LOG);
    DirBuilder::new().recursive(true).mode(0o700).create(&log)?;
    let path = log.join("00000000000000000000.log");
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path.with_extension("idx"))?;
    let earlier = fs::read(&path)?;
    match fs::remove_file(home.join(Home::EXIT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let json = serde_json::to_vec(ticket).map_err(io::Error::other)?;
    replace(&home.join(Home::TICKET), &json)?;
    Ok((file, earlier))
}

/// Writes a file so that a reader sees the old one or the new one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    fs::rename(new, path)
}
