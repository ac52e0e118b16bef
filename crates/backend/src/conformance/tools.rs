//! Lists the programs and files that a backend's sessions have, and builds commands from them.

use wharf_model::Text;

/// What there is in a backend's place for cases to use.
#[expect(clippy::struct_excessive_bools, reason = "each is there or is not")]
#[derive(Debug, Clone)]
pub struct Tools {
    /// A POSIX shell, with cat, head, tr, yes, tail, printf, sleep, env, kill, cksum and setsid.
    pub shell: Option<Text>,
    /// Whether there is `stty`.
    pub stty: bool,
    /// Whether commands see their own processes in `/proc`.
    pub proc: bool,
    /// Whether commands have the same files and processes as the suite itself.
    pub host: bool,
    /// The first word of a command that does not exist.
    pub missing: Text,
    /// How many starts in a row a case may ask for: fewer where each takes its time.
    pub starts: usize,
    /// Whether commands see the session's own directory.
    pub state: bool,
    /// Descriptors that commands have beside the first three.
    pub descriptors: Vec<String>,
    /// Variables that the place adds to those of the command.
    pub adds: Vec<Text>,
    fake: bool,
}

impl Tools {
    /// A place on this host: everything is there.
    pub fn host(shell: impl Into<Text>) -> Self {
        Self { host: true, state: true, ..Self::image(shell) }
    }

    /// A place of its own, such as a container, with a shell and the usual programs.
    pub fn image(shell: impl Into<Text>) -> Self {
        Self {
            shell: Some(shell.into()),
            stty: true,
            proc: true,
            host: false,
            missing: "/no/such/command".into(),
            starts: 200,
            state: false,
            descriptors: Vec::new(),
            adds: Vec::new(),
            fake: false,
        }
    }

    /// The programs of [`crate::fake`].
    pub fn fake() -> Self {
        Self {
            shell: None,
            stty: false,
            proc: false,
            host: false,
            missing: "fake:missing".into(),
            starts: 200,
            state: false,
            descriptors: Vec::new(),
            adds: Vec::new(),
            fake: true,
        }
    }

    /// A command that runs until it is ended and reads nothing.
    pub(super) fn sleeper(&self) -> Option<Vec<Text>> {
        self.say("fake:sleep", "exec sleep 600", &[])
    }

    /// A command that only KILL ends.
    pub(super) fn stubborn(&self) -> Option<Vec<Text>> {
        self.say("fake:ignore-term", "trap '' TERM; echo ready; while :; do sleep 0.1; done", &[])
    }

    /// A command that ends with a code.
    pub(super) fn exit(&self, code: i32) -> Option<Vec<Text>> {
        self.say("fake:exit", "exit $1", &[code.to_string().into()])
    }

    /// A command that prints a line and ends.
    pub(super) fn print(&self, line: &str) -> Option<Vec<Text>> {
        self.say("fake:print", "printf '%s\\n' \"$1\"", &[line.into()])
    }

    /// A command that prints exactly what is typed, once it has said `ready` where it is a real one.
    pub(super) fn echo(&self, tty: bool) -> Option<Vec<Text>> {
        let raw = if tty { "stty raw -echo; printf ready; exec cat" } else { "printf ready; exec cat" };
        if tty && !self.fake && !self.stty {
            return None;
        }
        self.say("fake:echo", raw, &[])
    }

    /// What an echo says before it can be typed at.
    pub(super) fn ready(&self) -> &'static [u8] {
        if self.fake { b"" } else { b"ready" }
    }

    fn say(&self, fake: &str, script: &str, args: &[Text]) -> Option<Vec<Text>> {
        if self.fake {
            return Some([&[fake.into()], args].concat());
        }
        let shell = self.shell.clone()?;
        Some([&[shell, "-c".into(), script.into(), "sh".into()], args].concat())
    }
}
