use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use wharf_backend::{Environment, Launch, Probe, Progress};
use wharf_model::{Capabilities, Code, Failure, Network, SessionId, Spec, Text};

use crate::rules::InForce;
use crate::{Namespace, Result, Rules, STEP, program};

/// How long a trial may take.
const TRIAL: Duration = Duration::from_secs(10);

/// Keeps commands to the files and the network that they were given.
pub struct SandboxEnvironment {
    holder: PathBuf,
}

impl SandboxEnvironment {
    /// One whose step is done by this `wharf-holder`.
    pub fn new(holder: PathBuf) -> Self {
        Self { holder }
    }

    /// The rules of a launch, and what of them is in force here. Nothing is left of the trial.
    async fn rules(&self, launch: &Launch, place: &Capabilities) -> Result<(Rules, InForce)> {
        let Some(asked) = &launch.spec.sandbox else {
            return Err(Failure::new(Code::Internal, "no sandbox was asked for"));
        };
        if place.isolation {
            return Err(Failure::unsupported("a sandbox", "a place of its own")
                .hint("a container is one already: --read-only, --network none"));
        }
        let dir = launch.spec.dir.as_path();
        if !dir.is_dir() {
            let message = format!("cannot run in {:?}: it is no directory", dir.display().to_string());
            return Err(Failure::new(Code::NoDirectory, message).hint("give a directory that exists with -w"));
        }
        for path in asked.read.iter().chain(&asked.write) {
            if !path.as_path().is_absolute() || !path.as_path().exists() {
                let message = format!("the sandbox cannot have {}: there is no such path", path.lossy());
                return Err(Failure::new(Code::Invalid, message)
                    .hint("name files and directories that are there, from the root on"));
            }
        }
        let mut write = vec![launch.spec.dir.clone()];
        write.extend(asked.write.iter().filter(|path| **path != launch.spec.dir).cloned());
        let mut rules = Rules {
            read: asked.read.clone(),
            write,
            temporary: Some(launch.home.join("tmp").into()),
            network: asked.network,
            namespace: Namespace::Own,
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
        let status = tokio::time::timeout(TRIAL, ran).await.map_err(|_| {
            Failure::new(Code::Unavailable, format!("the sandbox was not there within {TRIAL:?}"))
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
        let (rules, in_force) = self.rules(launch, place).await?;
        Ok(rules.words(in_force))
    }

    async fn apply(&self, mut launch: Launch, place: &Capabilities) -> Result<Launch> {
        let (mut rules, in_force) = self.rules(&launch, place).await?;
        let word = launch.argv.first().ok_or_else(|| Failure::new(Code::Invalid, "the command is empty"))?;
        let program = program::find(word, &launch.env, launch.spec.dir.as_path())?;
        launch.spec.in_force.extend(rules.words(in_force));
        if launch.spec.agent.is_some() {
            let said = "sandbox: the agent's hooks cannot reach Wharf; its state is read from its screen and its files";
            launch.spec.in_force.push(said.to_owned());
        }
        // The command itself may be run wherever it is; what it needs besides must be named.
        rules.read.push(program.canonicalize().unwrap_or(program).into());
        if launch.spec.prompt.is_some() {
            rules.read.push(launch.home.join(wharf_model::Home::PROMPT).into());
        }
        let temporary: Option<Text> = rules.temporary.clone();
        if let Some(dir) = temporary {
            launch.env.retain(|(name, _)| name.as_bytes() != b"TMPDIR");
            launch.env.push(("TMPDIR".into(), dir));
        }
        let holder: &Path = &self.holder;
        let mut argv: Vec<Text> = vec![holder.into(), STEP.into(), json(&rules)?.into(), "--".into()];
        argv.append(&mut launch.argv);
        launch.argv = argv;
        Ok(launch)
    }

    /// What it makes stands in the session's own directory, and goes with that.
    fn release(&self, _: &SessionId, _: &Spec) {}
}
