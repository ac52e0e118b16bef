//! Drives the plain C program whose figures are the floor of every comparison.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::contestant::{Contestant, Creator, Line, Reader};
use crate::kept::Kept;
use crate::place::Place;

/// Plain C (`bench/floor.c`): what everything is a multiple of.
pub(crate) struct Floor {
    place: Rc<Place>,
    _answers: Kept,
}

impl Floor {
    pub(crate) fn new(place: &Rc<Place>) -> Result<Self> {
        let mut answers = place.command(place.program("floor"));
        answers.arg("answer").arg(place.path().join("floor/answers")).arg("4096");
        Ok(Self { place: Rc::clone(place), _answers: Kept(answers.spawn().context("the floor")?) })
    }

    fn floor(&self, verb: &str) -> Command {
        let mut command = self.place.command(self.place.program("floor"));
        command.arg(verb);
        command
    }

    fn socket(&self, session: &str) -> PathBuf {
        self.place.path().join("floor").join(session)
    }

    /// A terminal whose master is in the floor's own hand.
    pub(crate) fn hand(&self, argv: &[String]) -> Result<Hand> {
        let mut child = self
            .floor("line")
            .args(argv)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the floor")?;
        let to = child.stdin.take().context("a pipe")?;
        let from = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Hand { to, from, _child: Kept(child) })
    }
}

impl Contestant for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn detaches(&self) -> bool {
        false
    }

    fn create(&self, session: &str, argv: &[String]) -> Command {
        let short = argv.get(1).is_some_and(|what| what == "ready" || what == "fds");
        let mut command = self.floor(if short { "create" } else { "hold" });
        if !short {
            command.arg(self.socket(session));
        }
        command.args(argv);
        command
    }

    fn creator(&self, ready: &[String]) -> Result<Option<Box<dyn Creator>>> {
        let mut child =
            self.floor("creator").args(ready).stdin(Stdio::piped()).spawn().context("the floor")?;
        let to = child.stdin.take().context("a pipe")?;
        Ok(Some(Box::new(FloorCreator { to, _child: Kept(child) })))
    }

    fn send(&self, session: &str, text: &str) -> Option<Command> {
        let mut command = self.floor("send");
        command.arg(self.socket(session)).arg(text);
        Some(command)
    }

    fn list(&self) -> Option<Command> {
        let mut command = self.floor("ask");
        command.arg(self.place.path().join("floor/answers"));
        Some(command)
    }

    fn tail(&self, _session: &str) -> Option<Command> {
        self.list()
    }

    fn reader(&self, session: &str) -> Result<Option<Reader>> {
        let socket = UnixStream::connect(self.socket(session))?;
        Ok(Some(Reader { from: OwnedFd::from(socket), process: None }))
    }

    fn servers(&self) -> Vec<i32> {
        self.place.running("floor.bin")
    }
}

struct FloorCreator {
    to: ChildStdin,
    _child: Kept,
}

impl Creator for FloorCreator {
    fn ask(&mut self, session: &str, _argv: &[String]) -> Result<()> {
        Ok(self.to.write_all(format!("{}\n", session.trim_start_matches('s')).as_bytes())?)
    }

    fn answer(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The floor with a terminal in its hand; it measures itself.
pub(crate) struct Hand {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    _child: Kept,
}

impl Hand {
    /// Types that many bytes, `a` to `z` over and over, and says when it began.
    pub(crate) fn paste(&mut self, bytes: usize) -> Result<i64> {
        self.to.write_all(format!("p {bytes}\n").as_bytes())?;
        self.number()
    }

    fn number(&mut self) -> Result<i64> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        line.trim_end().parse().context("the floor's answer")
    }
}

impl Line for Hand {
    fn round_trip(&mut self, _byte: u8) -> Result<Duration> {
        self.to.write_all(b"e\n")?;
        Ok(Duration::from_nanos(self.number()? as u64))
    }
}
