//! Drives dtach as a contestant, by its command and its socket.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::contestant::{Contestant, Line, Paste, Reader};
use crate::place::Place;

/// dtach: one process a session, no record, no list.
pub(crate) struct Dtach {
    place: Rc<Place>,
}

impl Dtach {
    pub(crate) fn new(place: &Rc<Place>) -> Self {
        Self { place: Rc::clone(place) }
    }

    fn socket(&self, session: &str) -> PathBuf {
        self.place.path().join("dtach").join(session)
    }

    fn dtach(&self, flag: &str, session: &str) -> Command {
        let mut command = self.place.command("dtach");
        command.arg(flag).arg(self.socket(session));
        command
    }

    fn connect(&self, session: &str) -> Result<DtachLine> {
        let mut socket = UnixStream::connect(self.socket(session))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.write_all(&packet(1, b""))?;
        Ok(DtachLine { socket })
    }
}

/// What dtach's own client sends: a type, a length, and at most eight bytes.
fn packet(kind: u8, bytes: &[u8]) -> [u8; 10] {
    let mut packet = [0; 10];
    packet[0] = kind;
    packet[1] = bytes.len() as u8;
    packet[2..2 + bytes.len()].copy_from_slice(bytes);
    packet
}

impl Contestant for Dtach {
    fn name(&self) -> &'static str {
        "dtach"
    }

    fn detaches(&self) -> bool {
        true
    }

    fn create(&self, session: &str, argv: &[String]) -> Command {
        let mut command = self.dtach("-n", session);
        command.arg("-Ez").args(argv);
        command
    }

    fn line(&self, session: &str) -> Result<Option<Box<dyn Line>>> {
        Ok(Some(Box::new(self.connect(session)?)))
    }

    fn attach(&self, session: &str) -> Option<Command> {
        let mut command = self.dtach("-a", session);
        command.args(["-Ez", "-r", "none"]);
        Some(command)
    }

    fn send(&self, session: &str, text: &str) -> Option<Command> {
        let file = self.place.path().join("dtach/.text");
        std::fs::write(&file, text).ok()?;
        let mut command = self.dtach("-p", session);
        command.stdin(File::open(&file).ok()?);
        Some(command)
    }

    fn paste(&self, session: &str, file: &Path) -> Result<Option<Vec<Command>>> {
        let mut command = self.dtach("-p", session);
        command.stdin(File::open(file)?);
        Ok(Some(vec![command]))
    }

    fn paste_line(&self, session: &str) -> Result<Option<Box<dyn Paste>>> {
        Ok(Some(Box::new(self.connect(session)?)))
    }

    fn reader(&self, session: &str) -> Result<Option<Reader>> {
        Ok(Some(Reader { from: OwnedFd::from(self.connect(session)?.socket), process: None }))
    }

    fn servers(&self) -> Vec<i32> {
        self.place.running("dtach")
    }
}

struct DtachLine {
    socket: UnixStream,
}

impl Line for DtachLine {
    fn round_trip(&mut self, byte: u8) -> Result<Duration> {
        let began = Instant::now();
        self.socket.write_all(&packet(0, &[byte]))?;
        self.socket.read_exact(&mut [0])?;
        Ok(began.elapsed())
    }
}

impl Paste for DtachLine {
    fn paste(&mut self, bytes: &[u8]) -> Result<()> {
        let packets: Vec<u8> = bytes.chunks(8).flat_map(|piece| packet(0, piece)).collect();
        Ok(self.socket.write_all(&packets)?)
    }
}
