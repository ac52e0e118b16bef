//! Starts and ends sessions in tmux or a container, by Wharf or by the place's own tool.

use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use wharf_tool_support::container_engine::{ContainerEngine, Kind};
use wharf_tool_support::instance::Instance;

use crate::place::Place;

/// One of two ways to have a session in the same place.
pub(crate) trait Rival {
    /// The command that starts one, in words.
    fn name(&self) -> String;

    /// The command that starts one.
    fn start(&self, session: &str, argv: &[String]) -> Command;

    /// Ends a session, and waits until nothing is left of it.
    fn end(&self, session: &str) -> Result<()>;

    /// Every process that is needed for its sessions, and theirs.
    fn processes(&self) -> Vec<i32>;
}

/// What the place brings along itself.
pub(crate) struct OwnTool {
    place: Rc<Place>,
    engine: Option<Rc<ContainerEngine>>,
}

impl OwnTool {
    pub(crate) fn new(place: &Rc<Place>, engine: Option<&Rc<ContainerEngine>>) -> Result<Self> {
        let tool = Self { place: Rc::clone(place), engine: engine.cloned() };
        if tool.engine.is_none() {
            let options =
                ["start-server", ";", "set", "-g", "exit-empty", "off", ";", "set", "-g", "status", "off"];
            run(&mut tool.tmux(&options))?;
        }
        Ok(tool)
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = self.place.command("tmux");
        command.args(["-L", "own", "-f", "/dev/null"]).args(args);
        command
    }
}

impl Rival for OwnTool {
    fn name(&self) -> String {
        match &self.engine {
            Some(engine) => format!("`{} run -d`", engine.kind().name()),
            None => "`tmux new-session -d`".to_owned(),
        }
    }

    fn start(&self, session: &str, argv: &[String]) -> Command {
        let Some(engine) = &self.engine else {
            let mut command = self.tmux(&["new-session", "-d", "-s", session, "-x", "80", "-y", "24"]);
            command.args(argv);
            return command;
        };
        let seen = format!("{0}:{0}", self.place.path().display());
        let words = ["run", "-d", "-t", "--name", session, "--network", "none", "-v", &seen];
        let mut command = engine.command(&words);
        command.arg(ContainerEngine::IMAGE).args(argv);
        command
    }

    fn end(&self, session: &str) -> Result<()> {
        match &self.engine {
            // Podman would wait for ten seconds before it kills.
            Some(engine) if engine.kind() == Kind::Podman => {
                run(&mut engine.command(&["rm", "-f", "-t", "0", session]))
            }
            Some(engine) => run(&mut engine.command(&["rm", "-f", session])),
            None => run(&mut self.tmux(&["kill-session", "-t", &format!("={session}")])),
        }
    }

    fn processes(&self) -> Vec<i32> {
        match &self.engine {
            Some(engine) => engine.processes(),
            None => self.place.running("tmux"),
        }
    }
}

/// Wharf in the same place.
pub(crate) struct Wharf {
    instance: Instance,
    place: Rc<Place>,
    backend: &'static str,
    engine: Option<Rc<ContainerEngine>>,
}

impl Wharf {
    pub(crate) fn new(
        place: &Rc<Place>,
        wharf: &Path,
        backend: &'static str,
        engine: Option<&Rc<ContainerEngine>>,
    ) -> Result<Self> {
        let mut instance = Instance::new(wharf)?;
        if let Some((name, value)) = engine.map(|engine| engine.variable()) {
            instance = instance.with_variable(name, value);
        }
        // The daemon runs from here on, as the engine does.
        instance.run(&["ls"])?;
        Ok(Self { instance, place: Rc::clone(place), backend, engine: engine.cloned() })
    }
}

impl Rival for Wharf {
    fn name(&self) -> String {
        format!("`wharf run -d -b {}`", self.backend)
    }

    fn start(&self, session: &str, argv: &[String]) -> Command {
        let mut command = self.instance.command(["run", "-d", "--backend", self.backend, "--name", session]);
        if self.engine.is_some() {
            command
                .args(["--image", ContainerEngine::IMAGE, "--network", "none", "-v"])
                .arg(self.place.path());
        }
        command.arg("--").args(argv);
        command
    }

    fn end(&self, session: &str) -> Result<()> {
        self.instance.run(&["rm", "--force", session]).map(drop)
    }

    fn processes(&self) -> Vec<i32> {
        let mut all = self.instance.processes();
        all.extend(self.engine.iter().flat_map(|engine| engine.processes()));
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn run(command: &mut Command) -> Result<()> {
    let ran = command.stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let ran = ran.with_context(|| format!("cannot run {command:?}"))?;
    if !ran.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&ran.stderr).trim_end());
    }
    Ok(())
}
