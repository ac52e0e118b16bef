//! Lists the real agents of the suite: packages, versions and arguments.

/// A real agent: where it comes from and what the suite must know to run it.
pub(crate) struct Agent {
    /// Its name, here and as a profile.
    pub(crate) name: &'static str,
    /// The package that brings it.
    pub(crate) package: Package,
    /// The version that the profiles were written against.
    pub(crate) version: &'static str,
    /// The program's name.
    pub(crate) program: &'static str,
    /// Arguments that keep it quiet and offline.
    pub(crate) args: &'static [&'static str],
    /// It has a tool for shell commands and asks before it runs one.
    pub(crate) asks: bool,
    /// Escape stops its turn.
    pub(crate) escape: bool,
    /// It hangs up on the service when its turn is stopped. The others leave the connection to their garbage collector.
    pub(crate) hangs_up: bool,
}

/// Where an agent comes from.
pub(crate) enum Package {
    /// npm: the package, and the script of its own that puts a native program in place, which npm may leave out.
    Npm { name: &'static str, script: Option<&'static str> },
    /// `PyPI`.
    Pip { name: &'static str },
}

/// Every agent of the suite.
pub(crate) const AGENTS: &[Agent] = &[
    Agent {
        name: "claude",
        package: Package::Npm { name: "@anthropic-ai/claude-code", script: Some("install.cjs") },
        version: "2.1.197",
        program: "claude",
        args: &[],
        asks: true,
        escape: true,
        hangs_up: true,
    },
    Agent {
        name: "codex",
        package: Package::Npm { name: "@openai/codex", script: None },
        version: "0.166.0",
        program: "codex",
        args: &[],
        asks: true,
        escape: true,
        hangs_up: true,
    },
    Agent {
        name: "opencode",
        package: Package::Npm { name: "opencode-ai", script: Some("postinstall.mjs") },
        version: "1.18.33",
        program: "opencode",
        args: &[],
        asks: true,
        escape: true,
        hangs_up: true,
    },
    Agent {
        name: "gemini",
        package: Package::Npm { name: "@google/gemini-cli", script: None },
        version: "0.61.0",
        program: "gemini",
        args: &[],
        asks: true,
        escape: true,
        hangs_up: true,
    },
    Agent {
        name: "aider",
        package: Package::Pip { name: "aider-chat" },
        version: "0.86.2",
        program: "aider",
        args: &[
            "--model",
            "openai/loopback",
            "--chat-mode",
            "ask",
            "--no-git",
            "--no-gitignore",
            "--no-check-update",
            "--no-show-release-notes",
            "--no-show-model-warnings",
            "--no-analytics",
        ],
        asks: false,
        escape: false,
        hangs_up: false,
    },
];
