//! Drives tmux as a contestant, by command and in control mode.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::contestant::{Contestant, Creator, Line, Reader};
use crate::kept::Kept;
use crate::place::Place;
use crate::terminal::Terminal;

/// tmux with a server of its own and no configuration.
pub(crate) struct Tmux {
    place: Rc<Place>,
    server: i32,
}

impl Tmux {
    pub(crate) fn new(place: &Rc<Place>) -> Result<Self> {
        let mut tmux = Self { place: Rc::clone(place), server: 0 };
        let options =
            ["start-server", ";", "set", "-g", "exit-empty", "off", ";", "set", "-g", "status", "off"];
        tmux.tmux(&options).status().context("tmux")?;
        let asked = tmux.tmux(&["display-message", "-p", "#{pid}"]).stdout(Stdio::piped()).output()?;
        tmux.server = String::from_utf8_lossy(&asked.stdout).trim().parse().context("the pid of tmux")?;
        Ok(tmux)
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = self.place.command("tmux");
        command.args(["-L", "bench", "-f", "/dev/null"]).args(args);
        command
    }

    /// A client in control mode: tmux's own way to be spoken to over an open connection.
    fn control(&self, args: &[&str]) -> Result<Control> {
        let mut command = self.tmux(&["-C"]);
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = child.stdin.take().context("a pipe")?;
        let from = BufReader::new(child.stdout.take().context("a pipe")?);
        let mut control = Control { to, from, target: String::new(), _child: Kept(child) };
        control.until(|line| line.starts_with("%session-changed"))?;
        Ok(control)
    }
}

impl Contestant for Tmux {
    fn name(&self) -> &'static str {
        "tmux"
    }

    fn detaches(&self) -> bool {
        true
    }

    fn create(&self, session: &str, argv: &[String]) -> Command {
        let mut command = self.tmux(&["new-session", "-d", "-s", session, "-x", "80", "-y", "24"]);
        command.args(argv);
        command
    }

    fn creator(&self, _ready: &[String]) -> Result<Option<Box<dyn Creator>>> {
        Ok(Some(Box::new(self.control(&["new-session", "-s", "creator", "sleep 3600"])?)))
    }

    fn line(&self, session: &str) -> Result<Option<Box<dyn Line>>> {
        let mut control = self.control(&["attach-session", "-t", &format!("={session}")])?;
        session.clone_into(&mut control.target);
        Ok(Some(Box::new(control)))
    }

    fn attach(&self, session: &str) -> Option<Command> {
        Some(self.tmux(&["attach-session", "-t", &format!("={session}")]))
    }

    fn send(&self, session: &str, text: &str) -> Option<Command> {
        Some(self.tmux(&["send-keys", "-t", &format!("={session}:"), "-l", text]))
    }

    fn list(&self) -> Option<Command> {
        Some(self.tmux(&["list-sessions"]))
    }

    fn tail(&self, session: &str) -> Option<Command> {
        Some(self.tmux(&["capture-pane", "-p", "-S", "-50", "-t", &format!("={session}:")]))
    }

    fn paste(&self, session: &str, file: &Path) -> Result<Option<Vec<Command>>> {
        Ok(Some(vec![
            self.tmux(&["load-buffer", "-b", "p", &file.display().to_string()]),
            self.tmux(&["paste-buffer", "-r", "-b", "p", "-t", &format!("={session}:")]),
        ]))
    }

    fn reader(&self, session: &str) -> Result<Option<Reader>> {
        let command = self.tmux(&["attach-session", "-r", "-t", &format!("={session}")]);
        Ok(Some(Terminal::start(&command)?.into_reader()))
    }

    fn servers(&self) -> Vec<i32> {
        vec![self.server]
    }
}

struct Control {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    target: String,
    _child: Kept,
}

impl Control {
    fn until(&mut self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.from.read_line(&mut line)? == 0 {
                bail!("tmux closed its control connection");
            }
            if wanted(line.trim_end()) {
                return Ok(());
            }
        }
    }
}

impl Creator for Control {
    fn ask(&mut self, session: &str, argv: &[String]) -> Result<()> {
        Ok(self
            .to
            .write_all(format!("new-session -d -s {session} -x 80 -y 24 {}\n", argv.join(" ")).as_bytes())?)
    }

    fn answer(&mut self) -> Result<()> {
        self.until(|line| line.starts_with("%end") || line.starts_with("%error"))
    }
}

impl Line for Control {
    fn round_trip(&mut self, byte: u8) -> Result<Duration> {
        let letter = byte as char;
        let began = Instant::now();
        self.to.write_all(format!("send-keys -t ={}: -l {letter}\n", self.target).as_bytes())?;
        self.until(|line| line.starts_with("%output") && line.ends_with(letter))?;
        Ok(began.elapsed())
    }
}
