//! The arguments that describe a session, for the verbs that start one.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use wharf_model::{
    After, AgentLaunch, Backoff, Container, Conversation, Environment, EnvironmentBase, Failure, Geometry,
    GivenSecret, Group, Home, Limits, Millis, Name, Port, Restart, Secret, Size, Spec, Text,
};

use crate::container::{self, ContainerArgs};
use crate::surroundings::SurroundingsArgs;
use crate::trouble::invalid;
use crate::{config, duration, ports, quantity, secrets, selection, terminal, variables};

/// What to run, where, and how to look after it.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Default, clap::Args)]
pub(crate) struct StartArgs {
    /// The session's name; one is made up when absent. GROUP/NAME where names are unique in their group
    #[arg(short = 'n', long, value_name = "NAME", value_parser = selection::name)]
    pub(crate) name: Option<Name>,
    /// The group that it belongs to
    #[arg(short = 'g', long, value_name = "GROUP", value_parser = selection::group)]
    pub(crate) group: Option<Group>,
    /// A label, to select by; may be repeated
    #[arg(short = 'l', long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// The place to run it in; else WHARF_BACKEND, the configuration, or the instance's default
    #[arg(short = 'b', long, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,
    /// The directory to run in
    #[arg(short = 'w', long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// A variable: NAME=VALUE, NAME+=VALUE to append, NAME to pass on; may be repeated
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE")]
    pub(crate) env: Vec<OsString>,
    /// What stands between the old value and what += appends
    #[arg(long, value_name = "SEPARATOR", default_value = ":")]
    pub(crate) env_sep: String,
    /// A file of variables, `-` for standard input; may be repeated. -e wins over it
    #[arg(long, value_name = "FILE")]
    env_file: Vec<PathBuf>,
    /// A variable to take away; may be repeated
    #[arg(long = "unset", value_name = "NAME")]
    unset: Vec<OsString>,
    /// Pass on nothing of the environment here
    #[arg(long, conflicts_with = "login")]
    clean_env: bool,
    /// Begin with what the login shell exports, and not with the environment here
    #[arg(long)]
    login: bool,
    /// Three pipes and no terminal: standard output and error are kept apart
    #[arg(long, overrides_with = "tty")]
    pub(crate) no_tty: bool,
    /// A terminal, which is the default
    #[arg(long, overrides_with = "no_tty")]
    tty: bool,
    /// The terminal's first size
    #[arg(long, value_name = "COLUMNSxROWS", value_parser = quantity::parse_size)]
    size: Option<Size>,
    /// The most memory for all of its processes: 512m, 2g
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    memory: Option<u64>,
    /// The most processors: 0.5, 2
    #[arg(long, value_name = "NUMBER", value_parser = quantity::parse_cpus)]
    cpus: Option<f64>,
    /// The most processes
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pids: Option<u64>,
    /// When to start it again: no, on-failure, always
    #[arg(long, value_name = "WHEN", default_value = "no", value_parser = restart)]
    restart: Restart,
    /// The most restarts in a row
    #[arg(long, value_name = "NUMBER")]
    restart_max: Option<u32>,
    /// Stop it when it has run this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_millis)]
    run_timeout: Option<Millis>,
    /// Stop it when it has neither printed nor been typed at for this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_millis)]
    idle_timeout: Option<Millis>,
    /// How long its stop waits between TERM and KILL
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_millis)]
    grace: Option<Millis>,
    /// Start only after another session: NAME, NAME:exit, NAME:success, NAME:port, NAME:idle; may be
    /// repeated
    #[arg(long, value_name = "NAME[:WHAT]")]
    after: Vec<After>,
    /// Reserve a port and tell the command: auto, auto:VARIABLE, NUMBER[:VARIABLE]; may be repeated
    #[arg(short = 'p', long = "port", value_name = "PORT", value_parser = ports::parse)]
    ports: Vec<Port>,
    /// A program that must be there before it starts; may be repeated
    #[arg(long, value_name = "PROGRAM")]
    require: Vec<OsString>,
    /// Text that stands before its output; @FILE reads it from a file
    #[arg(long, value_name = "TEXT")]
    motd: Option<OsString>,
    /// A prompt to keep beside it, `-` for standard input; it finds it by WHARF_PROMPT_FILE
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// A secret: NAME=FILE, NAME=file:FILE, NAME=env:VARIABLE, NAME=command:LINE; it is a file in the directory that
    /// WHARF_SECRETS names, in a container /run/secrets; may be repeated
    #[arg(long = "secret", value_name = "NAME=REFERENCE")]
    secrets: Vec<String>,
    /// A file to which all output is copied as well
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// How much of its output is kept: 64m
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    log_size: Option<u64>,
    /// One line for /bin/sh, in place of a command
    #[arg(long, value_name = "LINE", conflicts_with = "argv")]
    shell: Option<OsString>,
    /// The agent to launch, by its profile; what follows are arguments for it. `wharf agents` lists them
    #[arg(long, value_name = "AGENT", conflicts_with = "shell")]
    agent: Option<String>,
    /// With --agent: go on with this conversation
    #[arg(long, value_name = "ID", requires = "agent", conflicts_with_all = ["continue_latest", "fork"])]
    resume: Option<String>,
    /// With --agent: go on with the latest conversation of the directory
    #[arg(long = "continue", requires = "agent", conflicts_with = "fork")]
    continue_latest: bool,
    /// With --agent: go on with a copy of this conversation
    #[arg(long, value_name = "ID", requires = "agent")]
    fork: Option<String>,
    /// With --agent: have it tell turns, tools and questions by its own hooks, where it takes them as arguments
    #[arg(long, requires = "agent")]
    hooks: bool,
    /// Answer an agent's start-up dialogs as its profile declares; never those about trust, logins or permissions
    #[arg(long)]
    answer_startup: bool,
    /// Whose terminal decides the size: fixed (nobody's), owner (the first attached), latest (who typed last)
    #[arg(long, value_name = "fixed|owner|latest", default_value = "latest", value_parser = geometry)]
    geometry: Geometry,
    /// Let commands from inside it end or change other sessions
    #[arg(long)]
    allow_control: bool,
    #[command(flatten)]
    container: ContainerArgs,
    #[command(flatten)]
    surroundings: SurroundingsArgs,
    /// Print the session as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The command and its arguments; when absent your shell, or what the image runs
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) argv: Vec<OsString>,
}

fn restart(text: &str) -> Result<Restart, String> {
    match text {
        "no" | "never" => Ok(Restart::No),
        "on-failure" => Ok(Restart::OnFailure),
        "always" => Ok(Restart::Always),
        _ => Err(format!("{text:?} is none of no, on-failure, always")),
    }
}

fn geometry(text: &str) -> Result<Geometry, String> {
    match text {
        "fixed" => Ok(Geometry::Fixed),
        "owner" => Ok(Geometry::Owner),
        "latest" => Ok(Geometry::Latest),
        _ => Err(format!("{text:?} is none of fixed, owner, latest")),
    }
}

impl StartArgs {
    /// Whether it gets a terminal.
    pub(crate) fn terminal(&self) -> bool {
        !self.no_tty
    }

    /// The spec, with everything that only this process knows filled in.
    pub(crate) fn spec(self, home: &Home) -> Result<Spec, Failure> {
        let mut input = StandardInput::default();
        let mut env = self.environment(&mut input)?;
        // What is a secret is no variable as well, unless -e says so.
        env.caller.retain(|(name, _)| !secrets::is_source(&self.secrets, name));
        let motd = match self.motd {
            None => None,
            Some(text) => Some(match text.as_encoded_bytes().strip_prefix(b"@") {
                Some(file) => input.file(Path::new(Text::from(file).as_os_str()))?.into(),
                None => text.into(),
            }),
        };
        let prompt = self.prompt_file.map(|file| input.file(&file)).transpose()?.map(Text::from);
        let mut argv: Vec<Text> = match self.shell {
            Some(line) => vec!["/bin/sh".into(), "-c".into(), line.into()],
            None => self.argv.into_iter().map(Text::from).collect(),
        };
        let agent = self.agent.map(|name| {
            let conversation = match (self.resume, self.continue_latest, self.fork) {
                (Some(id), ..) => Conversation::Resume(id),
                (_, true, _) => Conversation::Continue,
                (.., Some(id)) => Conversation::Fork(id),
                _ => Conversation::New,
            };
            // The profile makes the command of them.
            AgentLaunch {
                name,
                conversation,
                arguments: std::mem::take(&mut argv),
                hooks: self.hooks,
                id: None,
            }
        });
        let backend = match self.backend {
            None => config::backend(home)?,
            named => named,
        };
        let dir = absolute(self.dir.as_deref().unwrap_or(Path::new(".")))?;
        let unmapped = self.container.unmapped(dir.as_path())?;
        let mut container = self.container.container(dir.as_path(), self.dir.is_some())?;
        let secrets = look_up(&self.secrets, dir.as_path(), &mut container)?;
        // A container has a mask of its own.
        let umask = container.is_none().then(own_umask);
        let (nix, sandbox) = (self.surroundings.nix(dir.as_path())?, self.surroundings.sandbox()?);
        let env = if container.is_some() { container::environment(env, !self.no_tty) } else { env };
        let size =
            self.size.or_else(|| io::stdout().is_terminal().then(|| terminal::size(io::stdout())).flatten());
        Ok(Spec {
            name: self.name,
            group: self.group,
            labels: labels(&self.labels)?,
            backend,
            env,
            tty: !self.no_tty,
            size: size.unwrap_or_default().sane(),
            umask,
            limits: Limits { memory: self.memory, cpus: self.cpus, pids: self.pids },
            restart: self.restart,
            backoff: Backoff { most: self.restart_max, ..Backoff::default() },
            run_timeout: self.run_timeout,
            idle_timeout: self.idle_timeout,
            grace: self.grace,
            after: self.after,
            ports: self.ports,
            require: self.require.into_iter().map(Text::from).collect(),
            motd,
            prompt,
            secrets,
            copy_to: self.log.map(|file| absolute(&file)).transpose()?,
            log_size: self.log_size,
            control_others: self.allow_control,
            answer_startup: self.answer_startup,
            agent,
            geometry: self.geometry,
            container,
            unmapped,
            nix,
            sandbox,
            ..Spec::new(argv, dir)
        })
    }

    fn environment(&self, input: &mut StandardInput) -> Result<Environment, Failure> {
        let base = match (self.clean_env, self.login) {
            (true, _) => EnvironmentBase::Empty,
            (_, true) => EnvironmentBase::Login,
            _ => EnvironmentBase::Caller,
        };
        let caller = match base {
            EnvironmentBase::Caller => {
                std::env::vars_os().map(|(name, value)| (name.into(), value.into())).collect()
            }
            _ => Vec::new(),
        };
        let mut changes = Vec::new();
        changes.extend(self.unset.iter().map(|name| wharf_model::Change::Unset(name.as_os_str().into())));
        for file in &self.env_file {
            changes.extend(variables::file(&input.file(file)?, file.as_os_str())?);
        }
        for text in &self.env {
            changes.push(variables::change(text, &self.env_sep, |name| std::env::var_os(name))?);
        }
        Ok(Environment { base, caller, changes })
    }
}

/// The file creation mask of this process, which has one thread.
fn own_umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

fn labels(texts: &[String]) -> Result<std::collections::BTreeMap<String, String>, Failure> {
    let split = |text: &String| {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        if key.is_empty() {
            return Err(invalid(format!("{text:?} is no label")).hint("write --label KEY=VALUE"));
        }
        Ok((key.to_owned(), value.to_owned()))
    };
    texts.iter().map(split).collect()
}

/// Looks secrets up. A container has files of the host as they are; all else is handed over by its value.
fn look_up(
    texts: &[String],
    here: &Path,
    container: &mut Option<Box<Container>>,
) -> Result<Vec<GivenSecret>, Failure> {
    let mut given = Vec::new();
    for text in texts {
        let (name, reference) = secrets::parse(text, here)?;
        match (&reference, container.as_mut()) {
            (secrets::Reference::File(file), Some(container)) => {
                container.secrets.push(Secret { name, source: container::plain(file).into() });
            }
            _ => given.push(reference.look_up(&name)?),
        }
    }
    Ok(given)
}

/// The path from the root on: the daemon has another directory than the caller.
pub(crate) fn absolute(path: &Path) -> Result<Text, Failure> {
    let here = || {
        std::env::current_dir().map_err(|error| {
            Failure::new(
                wharf_model::Code::NoDirectory,
                format!("the directory here cannot be found: {error}"),
            )
            .hint("-w DIR names another")
        })
    };
    if path == Path::new(".") {
        return Ok(here()?.into());
    }
    let whole = if path.is_absolute() { path.to_owned() } else { here()?.join(path) };
    Ok(whole.components().collect::<PathBuf>().into())
}

/// Standard input, which can be read for one thing only.
#[derive(Default)]
struct StandardInput {
    taken: bool,
}

/// More than this is no variable file, prompt or greeting.
const MAX_FILE_LEN: u64 = 16 << 20;

impl StandardInput {
    /// The content of a file; `-` is standard input.
    fn file(&mut self, path: &Path) -> Result<Vec<u8>, Failure> {
        let cannot = |error: &io::Error| {
            let code = if error.kind() == io::ErrorKind::NotFound {
                wharf_model::Code::Invalid
            } else {
                wharf_model::Code::Internal
            };
            Failure::new(code, format!("cannot read {}: {error}", path.display()))
        };
        let mut bytes = Vec::new();
        let read = if path.as_os_str() == OsStr::new("-") {
            if std::mem::replace(&mut self.taken, true) {
                return Err(invalid("standard input can be read for one option only"));
            }
            io::stdin().lock().take(MAX_FILE_LEN + 1).read_to_end(&mut bytes)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(MAX_FILE_LEN + 1).read_to_end(&mut bytes))
        };
        read.map_err(|error| cannot(&error))?;
        if bytes.len() as u64 > MAX_FILE_LEN {
            return Err(invalid(format!("{} is larger than 16 MiB", path.display())));
        }
        Ok(bytes)
    }
}
