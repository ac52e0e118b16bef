//! Drives Wharf as a contestant, by command, daemon and holder.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use wharf_holder_client::client::{Client, Event};
use wharf_tool_support::instance::Instance;
use wharf_tool_support::process;

use crate::contestant::{Contestant, Creator, Line, Paste, Reader};
use crate::http::Http;
use crate::kept::Kept;
use crate::place::Place;

/// Wharf as users get it, in an instance of its own.
pub(crate) struct Wharf {
    place: Rc<Place>,
    instance: Instance,
    name: &'static str,
}

impl Wharf {
    /// The program at this path, in this column.
    pub(crate) fn new(place: &Rc<Place>, wharf: &Path, name: &'static str) -> Result<Self> {
        let instance = Instance::new(wharf)?;
        // The daemon runs from here on, as the servers of the others do.
        instance.run(&["ls"])?;
        Ok(Self { place: Rc::clone(place), instance, name })
    }

    fn wharf<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.instance.command(args);
        command.env("WHARF_BENCH", self.place.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn state(&self) -> PathBuf {
        self.instance.home().join(".local/state/wharf")
    }

    fn http(&self) -> Result<Http> {
        Http::connect(&self.state().join("daemon.sock"))
    }

    fn holder(&self, session: &str) -> Result<HolderLine> {
        HolderLine::connect(&self.state().join("names").join(session))
    }
}

impl Contestant for Wharf {
    fn name(&self) -> &'static str {
        self.name
    }

    fn detaches(&self) -> bool {
        true
    }

    fn create(&self, session: &str, argv: &[String]) -> Command {
        let mut command = self.wharf(["run", "-d", "--name", session, "--"]);
        command.args(argv);
        command
    }

    fn creator(&self, _ready: &[String]) -> Result<Option<Box<dyn Creator>>> {
        Ok(Some(Box::new(DaemonCreator { http: self.http()? })))
    }

    fn line(&self, session: &str) -> Result<Option<Box<dyn Line>>> {
        Ok(Some(Box::new(self.holder(session)?)))
    }

    fn relayed_line(&self, session: &str) -> Result<Option<Box<dyn Line>>> {
        Ok(Some(Box::new(DaemonLine {
            http: self.http()?,
            path: format!("/v1/sessions/{session}/write?within_ms=5000"),
            echo: self.holder(session)?,
        })))
    }

    fn attach(&self, session: &str) -> Option<Command> {
        Some(self.instance.command(["attach", session]))
    }

    fn send(&self, session: &str, text: &str) -> Option<Command> {
        Some(self.wharf(["write", session, text]))
    }

    fn list(&self) -> Option<Command> {
        Some(self.wharf(["ls"]))
    }

    fn tail(&self, session: &str) -> Option<Command> {
        Some(self.wharf(["logs", "-n", "50", session]))
    }

    fn paste(&self, session: &str, file: &Path) -> Result<Option<Vec<Command>>> {
        let mut command = self.wharf(["write", session, "-"]);
        command.stdin(File::open(file)?);
        Ok(Some(vec![command]))
    }

    fn paste_line(&self, session: &str) -> Result<Option<Box<dyn Paste>>> {
        Ok(Some(Box::new(self.holder(session)?)))
    }

    fn reader(&self, session: &str) -> Result<Option<Reader>> {
        let mut child =
            self.wharf(["logs", "-f", session]).stdout(Stdio::piped()).spawn().context("wharf logs")?;
        let from = OwnedFd::from(child.stdout.take().context("a pipe")?);
        Ok(Some(Reader { from, process: Some(Kept(child)) }))
    }

    fn servers(&self) -> Vec<i32> {
        let ours = |pid: &i32| {
            let holder = process::program(*pid).is_some_and(|path| path.ends_with("wharf-holder"));
            holder || process::command_line(*pid).contains(" daemon")
        };
        self.instance.processes().into_iter().filter(ours).collect()
    }

    fn forget(&self, session: &str) -> Result<()> {
        // Ended and not removed: a file system that has just deleted many files is slow to make new ones.
        self.instance.run(&["kill", session]).map(drop)
    }
}

/// Starts sessions over a kept connection to the daemon.
struct DaemonCreator {
    http: Http,
}

impl Creator for DaemonCreator {
    fn ask(&mut self, session: &str, argv: &[String]) -> Result<()> {
        let request = json!({ "spec": { "name": session, "argv": argv, "dir": "/" } });
        self.http.post("/v1/sessions", "application/json", request.to_string().as_bytes())
    }

    fn answer(&mut self) -> Result<()> {
        self.http.answer().map(drop)
    }
}

/// A connection to a session's holder, which sends output as it comes.
struct HolderLine {
    client: Client,
}

impl HolderLine {
    fn connect(session: &Path) -> Result<Self> {
        let mut client =
            Client::connect(session, "program").with_context(|| session.display().to_string())?;
        client.set_timeout(Some(Duration::from_secs(5)))?;
        client.type_directly();
        client.read_from(client.welcome().log_end)?;
        Ok(Self { client })
    }

    fn echo(&mut self, byte: u8) -> Result<()> {
        loop {
            match self.client.next_event()?.context("the holder closed the connection")? {
                Event::Output { bytes, .. } if bytes.contains(&byte) => return Ok(()),
                Event::Refused { failure, .. } => return Err(failure.into()),
                Event::Exit(_) => bail!("the session ended"),
                _ => {}
            }
        }
    }
}

impl Line for HolderLine {
    fn round_trip(&mut self, byte: u8) -> Result<Duration> {
        let began = Instant::now();
        self.client.send_input(&[byte], false)?;
        self.echo(byte)?;
        Ok(began.elapsed())
    }
}

impl Paste for HolderLine {
    fn paste(&mut self, bytes: &[u8]) -> Result<()> {
        self.client.send_input(bytes, true)?;
        loop {
            match self.client.next_event()?.context("the holder closed the connection")? {
                Event::Done { .. } => return Ok(()),
                Event::Refused { failure, .. } => return Err(failure.into()),
                _ => {}
            }
        }
    }
}

/// Input through the daemon, echo as it arrives.
struct DaemonLine {
    http: Http,
    path: String,
    echo: HolderLine,
}

impl Line for DaemonLine {
    fn round_trip(&mut self, byte: u8) -> Result<Duration> {
        let began = Instant::now();
        self.http.post(&self.path, "application/octet-stream", &[byte])?;
        self.echo.echo(byte)?;
        let elapsed = began.elapsed();
        self.http.answer()?;
        Ok(elapsed)
    }
}
