//! Drives GNU screen as a contestant.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use anyhow::Result;
use wharf_tool_support::process;

use crate::contestant::{Contestant, Reader};
use crate::place::Place;
use crate::terminal::Terminal;

/// GNU screen: one process a session, with its own terminal model.
pub(crate) struct Screen {
    place: Rc<Place>,
}

impl Screen {
    pub(crate) fn new(place: &Rc<Place>) -> Self {
        Self { place: Rc::clone(place) }
    }

    fn screen(&self, args: &[&str]) -> Command {
        let mut command = self.place.command("screen");
        command.args(["-c", "/dev/null"]).args(args);
        command
    }
}

impl Contestant for Screen {
    fn name(&self) -> &'static str {
        "screen"
    }

    fn detaches(&self) -> bool {
        true
    }

    fn create(&self, session: &str, argv: &[String]) -> Command {
        let mut command = self.screen(&["-dmS", session]);
        command.args(argv);
        command
    }

    fn attach(&self, session: &str) -> Option<Command> {
        Some(self.screen(&["-x", session]))
    }

    fn send(&self, session: &str, text: &str) -> Option<Command> {
        Some(self.screen(&["-S", session, "-p", "0", "-X", "stuff", text]))
    }

    fn list(&self) -> Option<Command> {
        Some(self.screen(&["-ls"]))
    }

    fn tail(&self, session: &str) -> Option<Command> {
        let file = self.place.path().join("screen-tail").display().to_string();
        Some(self.screen(&["-S", session, "-p", "0", "-X", "hardcopy", "-h", &file]))
    }

    fn paste(&self, session: &str, file: &Path) -> Result<Option<Vec<Command>>> {
        let file = file.display().to_string();
        Ok(Some(vec![
            self.screen(&["-S", session, "-p", "0", "-X", "readreg", "p", &file]),
            self.screen(&["-S", session, "-p", "0", "-X", "paste", "p"]),
        ]))
    }

    fn reader(&self, session: &str) -> Result<Option<Reader>> {
        Ok(Some(Terminal::start(&self.screen(&["-x", session]))?.into_reader()))
    }

    fn servers(&self) -> Vec<i32> {
        // The servers call themselves SCREEN; the clients do not.
        let is_server = |pid: &i32| process::command_line(*pid).starts_with("SCREEN");
        self.place.running("screen").into_iter().filter(is_server).collect()
    }
}
