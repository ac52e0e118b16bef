//! Starts the counters of a chaos run, and accounts for their lines at the end.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use wharf_tool_support::instance::Instance;

use super::account::Account;
use super::chatter::Chat;
use super::stage::Stage;
use crate::counter::LINE_LEN;

/// How long the start of an agent, its answer and its end may take.
const AGENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The counters of one run, with the pids that they had at the start.
pub(super) struct Agents {
    list: Vec<Agent>,
}

struct Agent {
    name: String,
    pid: i64,
    report: PathBuf,
}

impl Agents {
    /// Starts them all and waits until each has printed something.
    pub(super) fn start(instance: &Instance, stage: &Stage, count: usize, rate: u64) -> Result<Self> {
        let counter = std::env::current_exe()?.display().to_string();
        // A container sees the counter, and where it reports to.
        let (program, home) = (format!("{counter}:ro"), instance.home().display().to_string());
        let seen = ["-v", program.as_str(), "-v", home.as_str()];
        let seen = if stage.has_containers() { seen.as_slice() } else { &[] };
        let place: Vec<&str> = stage.words().iter().map(String::as_str).collect();
        let mut list = Vec::new();
        for number in 0..count {
            let name = format!("counter-{number}");
            let report = instance.home().join(format!("{name}.json"));
            let shown = report.display().to_string();
            let rate = rate.to_string();
            // The default of 64 MiB would drop lines of a long run, as it should.
            let first = ["run", "-d", "--name", &name, "--log-size", "4G"];
            let last = ["--", &counter, "counter", "--rate", &rate, "--report", &shown];
            instance.run(&[&first, place.as_slice(), seen, &last].concat())?;
            list.push(Agent { name, pid: 0, report });
        }
        let mut agents = Self { list };
        for agent in &mut agents.list {
            wait_for(&format!("{} prints", agent.name), || {
                Ok(instance.run(&["logs", &agent.name])?.len() > LINE_LEN)
            })?;
        }
        let pids = agents.pids(instance)?;
        for (agent, pid) in agents.list.iter_mut().zip(pids) {
            agent.pid = pid.with_context(|| format!("{} has no pid", agent.name))?;
        }
        Ok(agents)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.list.iter().map(|agent| agent.name.clone()).collect()
    }

    /// The pids as `ls` has them now, in the agents' order.
    fn pids(&self, instance: &Instance) -> Result<Vec<Option<i64>>> {
        let sessions = instance.json(&["ls", "--json"])?;
        let sessions: &[Value] = sessions.as_array().map(Vec::as_slice).unwrap_or_default();
        let find = |agent: &Agent| sessions.iter().find(|session| session["name"] == agent.name.as_str());
        Ok(self.list.iter().map(|agent| find(agent)?["pid"].as_i64()).collect())
    }

    /// Asks each agent something, ends each with a code of its own, and accounts for every line.
    pub(super) fn finish(&self, instance: &Instance, chat: &Chat) -> Result<Report> {
        let mut report = Report { agents: self.list.len(), ..Report::default() };
        for (agent, pid) in self.list.iter().zip(self.pids(instance)?) {
            if pid != Some(agent.pid) {
                report.fault(format!("{}: pid {} became {pid:?}", agent.name, agent.pid));
            }
        }
        for (number, agent) in self.list.iter().enumerate() {
            if let Err(error) = agent.last_words(instance, number, chat, &mut report) {
                report.fault(format!("{}: {error:#}", agent.name));
            }
        }
        Ok(report)
    }
}

impl Agent {
    fn last_words(&self, instance: &Instance, number: usize, chat: &Chat, report: &mut Report) -> Result<()> {
        let answered = instance.write(&self.name, "still there\n")?;
        if !answered.status.success() {
            bail!("takes no input: {}", String::from_utf8_lossy(&answered.stderr).trim_end());
        }
        let code = 1 + number as i32 % 100;
        let told = instance.write(&self.name, &format!("exit {code}\n"))?;
        if !told.status.success() {
            bail!("cannot be told to exit: {}", String::from_utf8_lossy(&told.stderr).trim_end());
        }
        let ended = instance.try_run(&["wait", "--timeout", "60s", &self.name])?;
        if ended.status.code() != Some(code) {
            report.fault(format!("{}: told to exit with {code}, `wait` says {}", self.name, ended.status));
        }
        let log = instance.run(&["logs", &self.name])?;
        let account = Account::of(&log);
        report.lines += account.lines;
        report.lost += account.lost;
        report.doubled += account.doubled;
        report.bytes += log.len() as u64;
        for fault in account.faults(chat.said_to(&self.name)) {
            report.fault(format!("{}: {fault}", self.name));
        }
        let counted: Value = serde_json::from_slice(&std::fs::read(&self.report)?)?;
        if counted["written"].as_u64() != Some(account.lines) {
            report
                .fault(format!("{}: wrote {}, the log has {}", self.name, counted["written"], account.lines));
        }
        for (gap, times) in counted["gaps"].as_array().into_iter().flatten().enumerate() {
            report.gap(gap, times.as_u64().unwrap_or(0));
        }
        Ok(())
    }
}

/// Waits for something, with a deadline.
pub(super) fn wait_for(what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + AGENT_TIMEOUT;
    while !condition()? {
        if Instant::now() > deadline {
            bail!("waited {} s in vain until {what}", AGENT_TIMEOUT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What the agents' logs say.
#[derive(Default)]
pub(super) struct Report {
    agents: usize,
    lines: u64,
    bytes: u64,
    lost: u64,
    doubled: u64,
    gaps: Vec<u64>,
    faults: Vec<String>,
}

impl Report {
    pub(super) fn faults(&self) -> usize {
        self.faults.len()
    }

    fn fault(&mut self, fault: String) {
        self.faults.push(fault);
    }

    fn gap(&mut self, millis: usize, times: u64) {
        if self.gaps.len() <= millis {
            self.gaps.resize(millis + 1, 0);
        }
        self.gaps[millis] += times;
    }

    /// The gap between two writes that this share of all gaps does not exceed.
    fn percentile(&self, share: f64) -> usize {
        let all: u64 = self.gaps.iter().sum();
        let mut seen = 0;
        for (millis, times) in self.gaps.iter().enumerate() {
            seen += times;
            if seen as f64 >= all as f64 * share {
                return millis;
            }
        }
        0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "lines                 {} from {} agents, {} bytes",
            self.lines, self.agents, self.bytes
        )?;
        writeln!(f, "lost, doubled         {}, {}", self.lost, self.doubled)?;
        writeln!(
            f,
            "gap between writes    p50 {} ms, p99 {} ms, p99.9 {} ms, longest {} ms (undisturbed: 10 ms)",
            self.percentile(0.5),
            self.percentile(0.99),
            self.percentile(0.999),
            self.percentile(1.0)
        )?;
        writeln!(f, "faults                {}", self.faults.len())?;
        for fault in self.faults.iter().take(20) {
            writeln!(f, "  {fault}")?;
        }
        Ok(())
    }
}
