//! Kills of everything at random, alone and together, on a disk that fills and empties.
//!
//! A session may be lost here: its holder and whoever would replace it died at once. Then that is said of it, nothing of it
//! runs on, and its log tells what it tells. Of all others every line is there, or in a gap that is told.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use serde_json::Value;
use wharf_tool_support::instance::Instance;
use wharf_tool_support::process;

use super::agents::wait_for;
use super::chatter::Said;
use super::disk::{self, Tide};
use super::ledger::Ledger;
use crate::counter::LINE_LEN;

/// How long it may take until a session is known to run again, or to be lost.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// What takes longer is told.
const SLOW_TIME: Duration = Duration::from_secs(5);
/// The room that each agent's log may take.
const LOG_SIZE: &str = "1M";

/// How the run is made.
pub(super) struct Run {
    pub(super) agents: usize,
    pub(super) kills: usize,
    pub(super) rate: u64,
    pub(super) pause: Duration,
    pub(super) disk_mib: u64,
    pub(super) seed: u64,
}

/// What was killed together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blow {
    Daemon,
    Holder,
    Nursery,
    TwoHolders,
    DaemonAndHolder,
    DaemonAndNursery,
    NurseryAndHolder,
}

impl Blow {
    fn any(random: &mut Rng) -> Self {
        match random.u8(..12) {
            0..=2 => Self::Daemon,
            3..=5 => Self::Holder,
            6 => Self::Nursery,
            7 | 8 => Self::TwoHolders,
            9 => Self::DaemonAndHolder,
            10 => Self::DaemonAndNursery,
            _ => Self::NurseryAndHolder,
        }
    }
}

struct Agent {
    name: String,
    pid: i32,
    report: PathBuf,
    said: Vec<Said>,
    /// Its holder, where that was killed since it was last known to run.
    struck: Option<i32>,
}

/// What became of it all.
#[derive(Default)]
pub(super) struct Report {
    killed: usize,
    agents: usize,
    lost: usize,
    full: u32,
    refused: u32,
    lines: u64,
    gaps: u64,
    gone: u64,
    said: usize,
    unsure: usize,
    faults: Vec<String>,
}

struct Field<'a> {
    instance: &'a Instance,
    run: Run,
    random: Rng,
    agents: Vec<Agent>,
    next: usize,
    /// Whether a daemon was killed since all agents were last known to run.
    daemon_struck: bool,
    report: Report,
}

/// Makes the run. What it found is in the report; an error is a run that could not go on.
pub(super) fn run(instance: &Instance, run: Run) -> Result<Report> {
    let room = instance.home().join(".local");
    disk::mount(&room, run.disk_mib)?;
    let random = Rng::with_seed(run.seed);
    let (agents, report) = (Vec::new(), Report::default());
    let mut field = Field { instance, run, random, agents, next: 0, daemon_struck: false, report };
    for _ in 0..field.run.agents {
        let agent = field.start()?.context("an agent is refused on an empty disk")?;
        field.agents.push(agent);
    }
    println!("agents run");
    let tide = Tide::start(&room, field.run.seed);
    let began = Instant::now();
    let mut told = 0;
    let struck = loop {
        if field.report.killed >= field.run.kills {
            break Ok(());
        }
        if let Err(error) = field.round() {
            break Err(error);
        }
        if field.report.killed >= told + 50 {
            told = field.report.killed;
            println!("{:>6.1} s  {told} killed, {} lost", began.elapsed().as_secs_f64(), field.report.lost);
        }
    };
    field.report.full = tide.finish()?;
    struck?;
    field.settle()?;
    for agent in std::mem::take(&mut field.agents) {
        field.finish(&agent)?;
    }
    Ok(field.report)
}

impl Field<'_> {
    /// A new agent; none where the disk had no room for it.
    fn start(&mut self) -> Result<Option<Agent>> {
        let name = format!("counter-{}", self.next);
        self.next += 1;
        let report = self.instance.home().join(format!("{name}.json"));
        let (counter, shown) = (std::env::current_exe()?.display().to_string(), report.display().to_string());
        let rate = self.run.rate.to_string();
        let words = [
            "run",
            "-d",
            "--json",
            "--name",
            &name,
            "--log-size",
            LOG_SIZE,
            "--",
            &counter,
            "counter",
            "--rate",
        ];
        let ran = self.instance.try_run(&[&words[..], &[&rate, "--report", &shown]].concat())?;
        if !ran.status.success() {
            let why = String::from_utf8_lossy(&ran.stderr).into_owned();
            // A full disk is said to be full (8).
            if ran.status.code() != Some(8) {
                self.report.faults.push(format!(
                    "a start was refused with {}: {}",
                    ran.status,
                    why.trim_end()
                ));
            }
            self.report.refused += 1;
            return Ok(None);
        }
        let session: Value = serde_json::from_slice(&ran.stdout).context("the JSON of a start")?;
        let pid = session["pid"].as_i64().context("a pid")? as i32;
        self.report.agents += 1;
        Ok(Some(Agent { name, pid, report, said: Vec::new(), struck: None }))
    }

    /// Some commands, then one blow at a random moment.
    fn round(&mut self) -> Result<()> {
        for _ in 0..self.random.u8(..4) {
            self.say()?;
        }
        // Else the next blow falls on what has not recovered from this one.
        if self.random.u8(..4) > 0 {
            self.settle()?;
        }
        let blow = Blow::any(&mut self.random);
        let mut victims: Vec<i32> = Vec::new();
        let daemon = self.daemon();
        if matches!(blow, Blow::Daemon | Blow::DaemonAndHolder | Blow::DaemonAndNursery) {
            victims.extend(daemon);
        }
        // One that is not there now cannot replace anybody either.
        self.daemon_struck |= daemon.is_none_or(|daemon| victims.contains(&daemon));
        if matches!(blow, Blow::Nursery | Blow::DaemonAndNursery | Blow::NurseryAndHolder) {
            victims.extend(daemon.and_then(nursery_of));
        }
        let holders = match blow {
            Blow::Holder | Blow::DaemonAndHolder | Blow::NurseryAndHolder => 1,
            Blow::TwoHolders => 2,
            _ => 0,
        };
        for _ in 0..holders.min(self.agents.len()) {
            let at = self.random.usize(..self.agents.len());
            if let Some(holder) =
                holder_of(self.instance, self.agents[at].pid).filter(|holder| !victims.contains(holder))
            {
                self.agents[at].struck = Some(holder);
                victims.push(holder);
            }
        }
        let moment = Duration::from_micros(self.random.u64(..=self.run.pause.as_micros() as u64));
        std::thread::sleep(moment);
        self.random.shuffle(&mut victims);
        let mark = self.instance.mark();
        for pid in victims {
            self.report.killed += usize::from(process::kill_if(pid, &mark)?);
        }
        Ok(())
    }

    fn daemon(&self) -> Option<i32> {
        let lock = self.instance.home().join(".local/state/wharf/daemon.lock");
        let pid = std::fs::read_to_string(lock).ok()?.trim().parse().ok()?;
        process::lives(pid).then_some(pid)
    }

    /// Types something, which also starts a daemon where there is none.
    fn say(&mut self) -> Result<()> {
        if self.agents.is_empty() {
            return Ok(());
        }
        let at = self.random.usize(..self.agents.len());
        let text = format!("ping {}", self.report.said);
        self.report.said += 1;
        let typed = format!("{text}\n");
        let begun = Instant::now();
        let written = self.instance.try_run(&["write", "--timeout", "10", &self.agents[at].name, &typed])?;
        slow(
            begun,
            &format!("write to {}: {}", self.agents[at].name, String::from_utf8_lossy(&written.stderr)),
        );
        self.agents[at].said.push(Said { text, acknowledged: written.status.success() });
        Ok(())
    }

    /// Waits until each agent is known to run, or to be lost; those are accounted for, and others take their places.
    fn settle(&mut self) -> Result<()> {
        let until = Instant::now() + RECOVERY_TIMEOUT;
        let (instance, mut states) = (self.instance, Vec::new());
        let known = |name: &str, states: &[Value]| -> Option<String> {
            let found = states.iter().find(|session| session["name"] == name)?;
            found["state"].as_str().map(str::to_owned)
        };
        while !self.agents.is_empty() {
            let listed = instance.try_run(&["ls", "--all", "--json"])?;
            if let Ok(Value::Array(list)) = serde_json::from_slice(&listed.stdout) {
                states = list;
                let sure = |agent: &Agent| {
                    let state = known(&agent.name, &states);
                    match state.as_deref() {
                        Some("lost" | "exited") => true,
                        None | Some("unknown" | "starting" | "stopping") => false,
                        // It may not have been noticed yet that its holder is gone.
                        Some(_) => {
                            holder_of(instance, agent.pid).is_some_and(|holder| agent.struck != Some(holder))
                        }
                    }
                };
                if self.agents.iter().all(sure) {
                    break;
                }
            }
            if Instant::now() > until {
                let names = self.agents.iter().map(|agent| (&agent.name, known(&agent.name, &states)));
                bail!("it is not known what became of sessions: {:?}", names.collect::<Vec<_>>());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        slow(
            until.checked_sub(RECOVERY_TIMEOUT).unwrap_or(until),
            "it was not known what became of sessions",
        );
        let over = |agent: &Agent| matches!(known(&agent.name, &states).as_deref(), Some("lost" | "exited"));
        let (gone, live): (Vec<Agent>, Vec<Agent>) =
            std::mem::take(&mut self.agents).into_iter().partition(over);
        self.agents = live;
        for agent in &gone {
            self.bury(agent)?;
        }
        self.daemon_struck = false;
        self.agents.iter_mut().for_each(|agent| agent.struck = None);
        while self.agents.len() < self.run.agents {
            match self.start()? {
                Some(agent) => self.agents.push(agent),
                None => break,
            }
        }
        Ok(())
    }

    /// One that was lost: its holder was killed by us, nothing of it runs, and its log is in order.
    fn bury(&mut self, agent: &Agent) -> Result<()> {
        self.report.lost += 1;
        let shown = self.instance.json(&["show", &agent.name, "--json"])?;
        if agent.struck.is_none() || !self.daemon_struck {
            let who = if agent.struck.is_some() { "its daemon" } else { "it" };
            self.fault(&agent.name, format!("it is over though nobody struck {who}: {}", shown["exit"]));
            self.quote(shown["id"].as_str().unwrap_or_default());
        }
        if wait_for("it is gone", || Ok(!process::lives(agent.pid))).is_err() {
            self.fault(&agent.name, format!("it is {} and process {} lives", shown["state"], agent.pid));
        }
        self.report.unsure += usize::from(shown["exit"]["unsure"] == true);
        self.account(agent, true)?;
        self.instance.try_run(&["rm", &agent.name])?;
        Ok(())
    }

    /// One that lives: it answers, ends as it is told, and its log is whole but for what is told.
    fn finish(&mut self, agent: &Agent) -> Result<()> {
        let code = 1 + self.random.i32(0..90);
        for text in ["still there\n".to_owned(), format!("exit {code}\n")] {
            let typed = self.instance.try_run(&["write", "--timeout", "30", &agent.name, &text])?;
            if !typed.status.success() {
                let why = String::from_utf8_lossy(&typed.stderr).trim_end().to_owned();
                self.fault(&agent.name, format!("takes no input: {why}"));
            }
        }
        let ended = self.instance.try_run(&["wait", "--timeout", "60s", &agent.name])?;
        if ended.status.code() != Some(code) {
            self.fault(&agent.name, format!("told to exit with {code}, `wait` says {}", ended.status));
        }
        self.account(agent, false)?;
        Ok(())
    }

    fn account(&mut self, agent: &Agent, lost: bool) -> Result<()> {
        let mut ledger = Ledger::of(self.instance, &agent.name)?;
        ledger.check_answers(agent.said.iter(), lost);
        if !lost {
            let counted: Value =
                serde_json::from_slice(&std::fs::read(&agent.report).unwrap_or_default()).unwrap_or_default();
            if ledger.end.is_none() || ledger.end != counted["written"].as_u64() {
                ledger
                    .faults
                    .push(format!("it wrote {}, the log ends with {:?}", counted["written"], ledger.end));
            }
        }
        self.report.lines += ledger.lines;
        self.report.gaps += ledger.gaps;
        self.report.gone += ledger.gone;
        for fault in ledger.faults {
            self.fault(&agent.name, fault);
        }
        Ok(())
    }

    /// Shows what the daemons have to say of a session.
    fn quote(&self, id: &str) {
        let log = self.instance.home().join(".local/state/wharf/daemon.log");
        let log = std::fs::read(log).unwrap_or_default();
        for line in String::from_utf8_lossy(&log).lines().filter(|line| line.contains(id)) {
            println!("    {line}");
        }
    }

    fn fault(&mut self, name: &str, fault: impl fmt::Display) {
        let fault = format!("{name}: {fault}");
        println!("  fault: {fault}");
        self.report.faults.push(fault);
    }
}

/// Tells what took long: nothing is lost by it, and somebody waited.
fn slow(begun: Instant, what: &str) {
    let took = begun.elapsed();
    if took > SLOW_TIME {
        println!("  slow: {:.1} s: {}", took.as_secs_f64(), what.trim_end());
    }
}

/// The holder of a command: its parent, or, once that was replaced, whoever has its terminal; the ticket says who. On a full
/// disk it may not be signed, so the socket's owner is what counts: whoever of our holders has the command's terminal open.
/// Only of those of this instance: a container's terminals have numbers of their own, and so may have the same.
fn holder_of(instance: &Instance, command: i32) -> Option<i32> {
    let terminal = std::fs::read_link(format!("/proc/{command}/fd/0")).ok()?;
    let number = terminal.to_str()?.strip_prefix("/dev/pts/")?.to_owned();
    let ours = instance.processes();
    let mut holders = process::named("wharf-holder").into_iter().filter(|pid| ours.contains(pid));
    holders.find(|pid| process::has_terminal(*pid, &number))
}

/// The nursery of a daemon: the child that forks holders.
fn nursery_of(daemon: i32) -> Option<i32> {
    process::named("wharf-holder").into_iter().find(|pid| process::parent(*pid) == Some(daemon))
}

impl Report {
    pub(super) fn faults(&self) -> usize {
        self.faults.len()
    }

    pub(super) fn killed(&self) -> usize {
        self.killed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agents, lines, gaps, gone, lost, unsure, full, refused, said, .. } = self;
        writeln!(
            f,
            "lines                 {lines} from {agents} agents ({} bytes)",
            lines * LINE_LEN as u64
        )?;
        writeln!(f, "gaps, told            {gaps}, {gone} bytes")?;
        writeln!(f, "sessions lost, told   {lost} ({unsure} unsure)")?;
        writeln!(f, "disk full             {full} times, {refused} starts refused")?;
        writeln!(f, "typed                 {said} lines")?;
        writeln!(f, "faults                {}", self.faults.len())?;
        for fault in self.faults.iter().take(40) {
            writeln!(f, "  {fault}")?;
        }
        Ok(())
    }
}
