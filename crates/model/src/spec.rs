//! Defines `Spec`: all that a caller may ask for when starting a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    After, AgentLaunch, Backoff, Container, Environment, Geometry, GivenSecret, Group, Limits, MadeContainer,
    Millis, Mounted, Name, Nix, Pin, Project, Restart, Sandbox, Size, Text,
};

/// What to run, where, and how to look after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The session's name; one is made up when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The group that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Labels, to select by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The backend; the instance's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The container to run in, where the backend has containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<Container>>,
    /// What runs there already and is taken in as it is, in the backend's own words; no command is started then, and
    /// none is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Text>,
    /// The command and its arguments; the user's shell when empty.
    #[serde(default)]
    pub argv: Vec<Text>,
    /// The agent whose profile says how it is launched; its arguments stand there, and `argv` is made from both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentLaunch>,
    /// Whose terminal decides the size.
    #[serde(default)]
    pub geometry: Geometry,
    /// The directory to run in.
    pub dir: Text,
    /// The variables of the command.
    #[serde(default)]
    pub env: Environment,
    /// A terminal, or three pipes.
    #[serde(default = "yes")]
    pub tty: bool,
    /// The terminal's first size.
    #[serde(default)]
    pub size: Size,
    /// The file creation mask, the caller's as the command line sets it; an ordinary one (022) when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// What it may use.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// When to start it again.
    #[serde(default)]
    pub restart: Restart,
    /// How long to wait before that.
    #[serde(default)]
    pub backoff: Backoff,
    /// Stop it when it has run this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<Millis>,
    /// Stop it when it has neither printed nor been typed at for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Millis>,
    /// The grace of a stop that names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Millis>,
    /// Start only after these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// Ports to reserve; each becomes a variable of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Programs that must be found in the session's PATH before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Text>,
    /// Text that stands in the log before the command's own output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub motd: Option<Text>,
    /// A prompt that is kept beside the session; the command finds it by `WHARF_PROMPT_FILE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text>,
    /// Secrets that were looked up by whoever asks; the command finds their files by `WHARF_SECRETS`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<GivenSecret>,
    /// A file to which all output is copied as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_to: Option<Text>,
    /// Whether dialogs at an agent's start are answered as its profile declares; never those about trust, logins or permissions.
    #[serde(default, skip_serializing_if = "is_false")]
    pub answer_startup: bool,
    /// How many bytes of output are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_size: Option<u64>,
    /// Whether commands from inside the session may end or change other sessions.
    #[serde(default)]
    pub control_others: bool,
    /// The session that started this one, where one did. Whoever takes the request fills it in: nobody's word counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starter: Option<crate::SessionId>,
    /// The Nix dev shell that the command runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nix: Option<Box<Nix>>,
    /// What the command may touch of this host; all that the user may when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Box<Sandbox>>,
    /// What environments made of it, in words; filled in at each start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_force: Vec<String>,
    /// What a further command in it begins with, so that it is kept to the same; filled in at each start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enter: Vec<Text>,
    /// Why it runs in this backend, where that was left open; filled in at the first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// The directory that the command runs in, where its place decides that; filled in at each start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Text>,
    /// What the paths of the host that it is given meant at the first start; filled in there. Tickets of older versions
    /// have none, and get them at the next start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<Pin>,
    /// Everything that its place mounts; filled in at each start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mounted>,
    /// The container that it has; filled in at each start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Box<MadeContainer>>,
    /// What was asked to be the same inside as outside, in the caller's words, where there is no inside: nothing is mapped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmapped: Vec<String>,
    /// What weakens its isolation beyond what was asked for, in words; filled in at each start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weakened: Vec<String>,
    /// What the project's own file changes; decided at each start, whatever the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Box<Project>>,
}

/// A TCP port of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The variable that tells the command, `PORT` by default.
    #[serde(default = "port_variable")]
    pub variable: String,
    /// The number; zero until one has been reserved.
    #[serde(default)]
    pub number: u16,
}

fn port_variable() -> String {
    "PORT".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !*value
}

fn yes() -> bool {
    true
}

impl Spec {
    /// Forgets what starts fill in: a caller does not decide that.
    pub fn forget_filled_in(&mut self) {
        self.in_force.clear();
        self.pins.clear();
        self.mounts.clear();
        self.weakened.clear();
        self.made = None;
    }

    /// The directory that the command runs in, as its place has it.
    pub fn runs_in(&self) -> &Text {
        self.inside.as_ref().unwrap_or(&self.dir)
    }

    /// A terminal session of this command in this directory, with everything else at its default.
    pub fn new<T: Into<Text>>(argv: impl IntoIterator<Item = T>, dir: impl Into<Text>) -> Self {
        Self {
            name: None,
            group: None,
            labels: BTreeMap::new(),
            backend: None,
            container: None,
            adopt: None,
            argv: argv.into_iter().map(Into::into).collect(),
            agent: None,
            geometry: Geometry::default(),
            dir: dir.into(),
            env: Environment::default(),
            tty: true,
            size: Size::default(),
            umask: None,
            limits: Limits::default(),
            restart: Restart::default(),
            backoff: Backoff::default(),
            run_timeout: None,
            idle_timeout: None,
            grace: None,
            after: Vec::new(),
            ports: Vec::new(),
            require: Vec::new(),
            motd: None,
            prompt: None,
            secrets: Vec::new(),
            copy_to: None,
            answer_startup: false,
            log_size: None,
            control_others: false,
            starter: None,
            nix: None,
            sandbox: None,
            in_force: Vec::new(),
            enter: Vec::new(),
            chosen: None,
            project: None,
            inside: None,
            pins: Vec::new(),
            mounts: Vec::new(),
            made: None,
            unmapped: Vec::new(),
            weakened: Vec::new(),
        }
    }
}
