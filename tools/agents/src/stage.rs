//! Runs one real agent against the model service, and checks what the model got.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use wharf_agents::{Profile, Profiles};
use wharf_testing::service::{ModelService, Settings};
use wharf_tool_support::instance::Instance;
use wharf_tool_support::process;

use crate::agent::Agent;
use crate::kit::Kit;
use crate::settings;

/// One agent in an instance of Wharf of its own, and the service that knows what it got.
pub(crate) struct Stage {
    agent: &'static Agent,
    profile: Arc<Profile>,
    instance: Instance,
    service: ModelService,
    work: PathBuf,
    environment: Vec<(&'static str, String)>,
    round: usize,
    case: &'static str,
    tags: AtomicUsize,
    /// How many turns of the record are accounted for.
    seen: usize,
}

/// What `wharf send` gave back.
pub(crate) struct Sent {
    code: Option<i32>,
    receipt: Value,
    complaint: String,
}

/// How long an agent may take to be ready, and a message to arrive: a loaded machine takes its time.
const AGENT_TIMEOUT: Duration = Duration::from_secs(90);

impl Stage {
    /// The session's name.
    pub(crate) const NAME: &'static str = "agent";

    /// Starts the agent and does not wait for it.
    pub(crate) fn start(agent: &'static Agent, kit: &Kit, wharf: &Path) -> Result<Self> {
        let instance = Instance::new(wharf)?;
        let service = ModelService::start(Settings::default()).context("the model service")?;
        let work = instance.home().join("work");
        std::fs::create_dir(&work).with_context(|| work.display().to_string())?;
        let mut environment = settings::prepare(agent.name, instance.home(), &work, &service.url())?;
        let caller = std::env::var_os("PATH").unwrap_or_default();
        let paths = [kit.find(agent)?].into_iter().chain(std::env::split_paths(&caller));
        let path = std::env::join_paths(paths).context("PATH")?;
        environment.push(("PATH", path.into_string().map_err(|_| anyhow::anyhow!("PATH is not UTF-8"))?));
        environment.push(("HOME", instance.home().display().to_string()));
        environment.push(("LANG", "C.UTF-8".to_owned()));
        let profile = Profiles::built_in().get(agent.name).context("a profile of that name")?;
        let stage = Self {
            agent,
            profile,
            instance,
            service,
            work,
            environment,
            round: 0,
            case: "",
            tags: AtomicUsize::new(0),
            seen: 0,
        };
        let work = stage.work.display().to_string();
        let mut words = vec!["run", "-d", "--name", Self::NAME, "--size", "120x40", "--dir", &work];
        words.extend(["--agent", agent.name, "--"]);
        words.extend(agent.args);
        stage.run(&words)?;
        Ok(stage)
    }

    /// Says which case is being played.
    pub(crate) fn begin(&mut self, round: usize, case: &'static str) {
        (self.round, self.case) = (round, case);
    }

    pub(crate) fn agent(&self) -> &'static Agent {
        self.agent
    }

    /// How often the key that stops a turn is pressed.
    pub(crate) fn presses(&self) -> usize {
        self.profile.keys.interrupt.len()
    }

    /// A word that no other message has.
    pub(crate) fn tag(&self) -> String {
        let number = self.tags.fetch_add(1, Ordering::Relaxed);
        let case = self.case.replace(|c: char| !c.is_ascii_alphanumeric(), "");
        format!("r{}{case}{number}", self.round)
    }

    /// What the model must get of a text: what is handed over, and what the agent itself makes of that.
    pub(crate) fn expected(&self, text: &str) -> Result<String> {
        let prepared = self.profile.prepare(text, false).map_err(|failure| anyhow::anyhow!("{failure}"))?;
        Ok(self.profile.as_received(&prepared.text))
    }

    /// `wharf send`, with the text on standard input.
    pub(crate) fn send(&self, text: &str, more: &[&str]) -> Result<Sent> {
        let mut command = self.command(&["send", Self::NAME, "-f", "-", "--json"]);
        command.args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("wharf send")?;
        child.stdin.take().context("a pipe")?.write_all(text.as_bytes()).context("the text")?;
        let output = child.wait_with_output().context("wharf send")?;
        Ok(Sent {
            code: output.status.code(),
            receipt: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
            complaint: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// Exactly these turns have come since the last time, in this order.
    pub(crate) fn got(&mut self, expected: &[String]) -> Result<()> {
        let turns = self.turns(expected.len());
        compare(&turns, expected)
    }

    /// Exactly these turns have come since the last time.
    pub(crate) fn got_in_any_order(&mut self, expected: &[String]) -> Result<()> {
        let mut turns = self.turns(expected.len());
        let mut expected = expected.to_vec();
        turns.sort();
        expected.sort();
        compare(&turns, &expected)
    }

    fn turns(&mut self, count: usize) -> Vec<String> {
        let from = self.seen;
        self.service.wait(AGENT_TIMEOUT, |record| record.turns.len() >= from + count);
        let turns: Vec<String> = self.service.turns().into_iter().skip(from).map(|turn| turn.text).collect();
        self.seen += turns.len();
        turns
    }

    /// Waits for the turn to be over. The state is idle, and nothing has come that nobody sent.
    pub(crate) fn settle(&self) -> Result<()> {
        self.until("idle", AGENT_TIMEOUT)?;
        let shown = self.show()?;
        ensure!(shown["state"] == "idle", "the state is {} and not idle", shown["state"]);
        ensure!(shown["state_source"].is_string(), "the state has no source");
        let turns = self.service.turns();
        ensure!(turns.len() <= self.seen, "the agent got more than was sent: {:?}", turns.last());
        Ok(())
    }

    /// Waits until the last message's receipt says that it was confirmed.
    pub(crate) fn delivered(&self) -> Result<()> {
        let deadline = Instant::now() + AGENT_TIMEOUT;
        loop {
            let listed = self.run(&["messages", Self::NAME, "--json"])?.stdout;
            let listed: Value = serde_json::from_slice(&listed).context("wharf messages --json")?;
            let last = listed.as_array().and_then(|all| all.last()).context("no message is listed")?;
            match last["status"].as_str() {
                Some("confirmed") => return Ok(()),
                Some("accepted" | "written" | "submitted") => {}
                _ => bail!("the message in the queue: {last}"),
            }
            ensure!(Instant::now() < deadline, "the message stays in the queue: {last}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// `wharf wait --until`.
    pub(crate) fn until(&self, what: &str, within: Duration) -> Result<()> {
        self.run(&["wait", Self::NAME, "--until", what, "--timeout", &within.as_secs().to_string()]).map(drop)
    }

    /// Waits until words of the turn are on the screen.
    pub(crate) fn until_words(&self) -> Result<()> {
        let words = format!(r"match=word{}\.3\b", self.count());
        self.until(&words, AGENT_TIMEOUT)
    }

    /// `wharf show`.
    pub(crate) fn show(&self) -> Result<Value> {
        serde_json::from_slice(&self.run(&["show", Self::NAME, "--json"])?.stdout)
            .context("wharf show --json")
    }

    /// How many turns there were.
    pub(crate) fn count(&self) -> usize {
        self.service.turns().len()
    }

    /// Turns whose answer the agent did not wait for.
    pub(crate) fn cut(&self) -> usize {
        self.service.cut()
    }

    /// Whether one more turn was cut off within that time.
    pub(crate) fn cut_after(&self, cut: usize, within: Duration) -> bool {
        self.service.wait(within, |record| record.cut > cut)
    }

    /// Whether a file was made in the agent's directory.
    pub(crate) fn has_file(&self, name: &str) -> bool {
        self.work.join(name).exists()
    }

    /// Kills the daemon with -9 and waits until it is gone.
    pub(crate) fn kill_daemon(&self) -> Result<()> {
        let status = self.run(&["daemon", "status", "--json"])?.stdout;
        let status: Value = serde_json::from_slice(&status).context("wharf daemon status --json")?;
        let pid = status["pid"].as_i64().context("the daemon's pid")? as i32;
        ensure!(process::kill_if(pid, &self.instance.mark())?, "the daemon {pid} was not there to be killed");
        let deadline = Instant::now() + AGENT_TIMEOUT;
        while process::lives(pid) {
            ensure!(Instant::now() < deadline, "the daemon does not die");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// A command that must succeed.
    pub(crate) fn run(&self, args: &[&str]) -> Result<Output> {
        let output = self.command(args).output().context("cannot run wharf")?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("wharf {}: {}: {}", args.join(" "), output.status, complaint.trim_end());
        }
        Ok(output)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.instance.command(args);
        // Nothing of whoever runs the suite, who may be an agent: its marks would change how another one behaves.
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("NO_COLOR", "1");
        command
    }

    /// What there is to see after a failure.
    pub(crate) fn evidence(&self) -> String {
        let mut text = String::new();
        for words in [&["capture", Self::NAME][..], &["explain", Self::NAME], &["messages", Self::NAME]] {
            let shown = self.command(words).output();
            let shown = shown.map(|output| {
                [output.stdout, output.stderr]
                    .map(|part| String::from_utf8_lossy(&part).into_owned())
                    .concat()
            });
            let _ = writeln!(text, "--- wharf {}\n{}", words.join(" "), shown.unwrap_or_default().trim_end());
        }
        let turns = self.service.turns();
        for turn in turns.iter().skip(turns.len().saturating_sub(4)) {
            let start: String = turn.text.chars().take(200).collect();
            let _ = writeln!(text, "--- turn {}: {start:?}", turn.n);
        }
        text
    }
}

impl Sent {
    /// It must have been confirmed; the receipt.
    pub(crate) fn confirmed(self) -> Result<Value> {
        ensure!(self.code == Some(0) && self.receipt["status"] == "confirmed", "not confirmed: {self}");
        Ok(self.receipt)
    }

    /// It must be in the queue.
    pub(crate) fn queued(self) -> Result<()> {
        ensure!(self.code == Some(0), "not queued: {self}");
        Ok(())
    }

    /// It must have been refused, with a code that says so.
    pub(crate) fn refused(self) -> Result<()> {
        ensure!(self.code != Some(0) && self.receipt["status"] == "refused", "not refused: {self}");
        Ok(())
    }

    /// It must not have been typed, and its receipt must say so.
    pub(crate) fn not_sent(self) -> Result<()> {
        let status = self.receipt["status"].as_str().unwrap_or_default();
        ensure!(self.code != Some(0) && matches!(status, "refused" | "expired"), "sent: {self}");
        Ok(())
    }
}

impl std::fmt::Display for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code.map_or_else(|| "killed".to_owned(), |code| format!("exit {code}"));
        write!(
            f,
            "{code}, status {}, {}, {}",
            self.receipt["status"], self.receipt["evidence"], self.complaint
        )
    }
}

fn compare(turns: &[String], expected: &[String]) -> Result<()> {
    if turns == expected {
        return Ok(());
    }
    if turns.len() != expected.len() {
        let starts: Vec<String> = turns.iter().map(|turn| turn.chars().take(80).collect()).collect();
        bail!("{} turns arrived and not {}: {starts:?}", turns.len(), expected.len());
    }
    for (got, wanted) in turns.iter().zip(expected) {
        let same = got.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
        if got != wanted {
            let around = |text: &str| text.chars().skip(same.saturating_sub(10)).take(40).collect::<String>();
            bail!(
                "{} characters arrived and not {}; they differ at {same}: {:?} and not {:?}",
                got.chars().count(),
                wanted.chars().count(),
                around(got),
                around(wanted)
            );
        }
    }
    Ok(())
}
