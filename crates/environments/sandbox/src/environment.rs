//! Implements `Environment` for the sandbox: makes rules, tries them, and wraps the command.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use wharf_backend::{Beside, Environment, Launch, Probe, Progress};
use wharf_boundary::channel;
use wharf_model::{Capabilities, Code, Failure, Network, SessionId, Spec, Text};

use crate::pinned::Asked;
use crate::rules::InForce;
use crate::{BESIDE, Guarded, Namespace, Result, Rules, STEP, program};

/// How long a trial may take.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps commands to the files and the network that they were given.
pub struct SandboxEnvironment {
    holder: PathBuf,
    guarded: Guarded,
    /// Paths that a file system never answers for cost whoever named them.
    beside: Beside,
}

impl SandboxEnvironment {
    /// One whose step is done by this `wharf-holder`, and keeps everybody from these directories.
    pub fn new(holder: PathBuf, guarded: Guarded) -> Self {
        Self { holder, guarded, beside: Beside::default() }
    }

    /// The rules of a launch, and what of them is in force here. Nothing is left of the trial.
    async fn rules(&self, launch: &mut Launch, place: &Capabilities) -> Result<(Rules, InForce)> {
        let Some(network) = launch.spec.sandbox.as_ref().map(|asked| asked.network) else {
            return Err(Failure::new(Code::Internal, "no sandbox was asked for"));
        };
        if place.isolation {
            return Err(Failure::unsupported("a sandbox", "a place of its own")
                .hint("a container is one already: --read-only, --network none"));
        }
        let asked = Asked::of(launch);
        let what = "what the sandbox is given";
        let pinned;
        (pinned, launch.spec.pins) = self.beside.look(what, move || asked.settle()).await??;
        let mut rules = Rules {
            read: pinned.read,
            write: pinned.write,
            temporary: Some(launch.home.join("tmp").into()),
            network,
            namespace: Namespace::Own,
            expected: pinned.expected,
            guarded: self.guarded.clone(),
        };
        match self.trial(&rules).await {
            Ok(in_force) => Ok((rules, in_force)),
            Err(own) if rules.network == Network::Loopback => {
                rules.namespace = Namespace::Bubblewrap;
                // What the usual way said is the better word where the other one fails as well.
                self.trial(&rules).await.map(|in_force| (rules, in_force)).map_err(|_| own)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Does everything but the command.
    async fn trial(&self, rules: &Rules) -> Result<InForce> {
        let failed = |error: std::io::Error| {
            Failure::system(format!("cannot try the sandbox with {}", self.holder.display()), &error)
        };
        let mut command = Command::new(&self.holder);
        command.args([STEP, &json(rules)?, "--check"]).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::null()).current_dir("/").kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        let mut stdout = child.stdout.take().expect("it was asked for").take(64 << 10);
        let mut answer = Vec::new();
        let ran = async {
            stdout.read_to_end(&mut answer).await?;
            child.wait().await
        };
        let status = tokio::time::timeout(TRIAL_TIMEOUT, ran).await.map_err(|_| {
            Failure::new(Code::Unavailable, format!("the sandbox was not there within {TRIAL_TIMEOUT:?}"))
        })?;
        let status = status.map_err(failed)?;
        let odd = || {
            let message = format!("the sandbox cannot be had: its step ended with {status}");
            Failure::new(Code::Unsupported, message)
        };
        if status.success() {
            return serde_json::from_slice(&answer).map_err(|_| odd());
        }
        Err(serde_json::from_slice(&answer).unwrap_or_else(|_| odd()))
    }
}

fn json(rules: &Rules) -> Result<String> {
    serde_json::to_string(rules)
        .map_err(|error| Failure::new(Code::Internal, format!("cannot write the sandbox's rules: {error}")))
}

#[async_trait]
impl Environment for SandboxEnvironment {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn concerns(&self, spec: &Spec) -> bool {
        spec.sandbox.is_some()
    }

    async fn probe(&self) -> Probe {
        let rules = Rules { write: vec!["/".into()], network: Network::Loopback, ..Rules::default() };
        match self.trial(&rules).await {
            Ok(in_force) => {
                let signals = if in_force.signals { "signals, " } else { "" };
                let detail = format!("files, system calls, {signals}a network of its own");
                Probe { available: true, version: None, detail, hint: None }
            }
            Err(failure) => {
                Probe { available: false, version: None, detail: failure.message, hint: failure.hint }
            }
        }
    }

    async fn prepare(&self, launch: &Launch, place: &Capabilities, _: &Progress) -> Result<Vec<String>> {
        let (rules, in_force) = self.rules(&mut launch.clone(), place).await?;
        Ok(rules.words(in_force))
    }

    async fn apply(&self, mut launch: Launch, place: &Capabilities) -> Result<Launch> {
        let (mut rules, in_force) = self.rules(&mut launch, place).await?;
        let word = launch.argv.first().ok_or_else(|| Failure::new(Code::Invalid, "the command is empty"))?;
        let program = program::find(word, &launch.env, launch.spec.dir.as_path())?;
        launch.spec.in_force.extend(rules.words(in_force));
        // Hooks speak by the channel, and are our own programs.
        let number = channel::NUMBER.to_string();
        launch.env.retain(|(name, _)| name.as_bytes() != channel::VARIABLE.as_bytes());
        launch.env.push((channel::VARIABLE.into(), number.as_str().into()));
        rules.read.push(self.holder.as_path().into());
        let own = self.holder.with_file_name("wharf");
        rules.read.extend(own.exists().then(|| own.into()));
        // The command itself may be run wherever it is; what it needs besides must be named.
        rules.read.push(program.canonicalize().unwrap_or(program).into());
        if launch.spec.prompt.is_some() {
            rules.read.push(launch.home.join(wharf_model::Home::PROMPT).into());
        }
        if !launch.spec.secrets.is_empty() {
            rules.read.push(launch.home.join(wharf_model::Home::SECRETS).into());
        }
        let temporary: Option<Text> = rules.temporary.clone();
        if let Some(dir) = temporary {
            launch.env.retain(|(name, _)| name.as_bytes() != b"TMPDIR");
            launch.env.push(("TMPDIR".into(), dir));
        }
        let holder: &Path = &self.holder;
        let mut argv: Vec<Text> = vec![holder.into(), STEP.into(), json(&rules)?.into(), "--".into()];
        launch.spec.enter = vec![holder.into(), STEP.into(), json(&rules)?.into(), BESIDE.into()];
        argv.append(&mut launch.argv);
        launch.argv = argv;
        Ok(launch)
    }

    /// What it makes stands in the session's own directory, and goes with that.
    fn release(&self, _: &SessionId, _: &Spec) {}
}
