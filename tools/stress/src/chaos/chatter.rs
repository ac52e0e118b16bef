//! Runs `wharf` commands all through the kills, and remembers what they promised.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;
use wharf_tool_support::instance::Instance;

use super::stage::Stage;
use super::visitors::Visitors;

/// Commands that run all through the kills: some of them are cut off, and what they promised must hold all the same.
pub(super) struct Chatter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Chat>,
}

/// Something that was typed at an agent.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) acknowledged: bool,
}

/// What the commands did.
#[derive(Default)]
pub(super) struct Chat {
    said: HashMap<String, Vec<Said>>,
    visitors: Visitors,
    commands: u32,
    failed: u32,
    slowest: Duration,
    words: HashMap<String, u32>,
    unexpected: Vec<String>,
}

impl Chatter {
    pub(super) fn start(instance: &Arc<Instance>, stage: &Stage, names: Vec<String>, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let instance = Arc::clone(instance);
        let place = stage.words().to_vec();
        let thread = std::thread::spawn(move || {
            let mut random = Rng::with_seed(seed ^ 0x5EED);
            let mut chat = Chat::default();
            while !told.load(Ordering::Relaxed) {
                let name = &names[random.usize(..names.len())];
                let text = format!("ping {}", chat.commands);
                let typed = format!("{text}\n");
                match random.u8(..8) {
                    0 => drop(chat.run(&instance, &["ls", "--json"])),
                    1 => drop(chat.run(&instance, &["show", name, "--json"])),
                    2 => {
                        let start = chat.visitors.next(&place);
                        let start: Vec<&str> = start.iter().map(String::as_str).collect();
                        let acknowledged = chat.run(&instance, &start);
                        chat.visitors.came(acknowledged);
                    }
                    _ => {
                        let acknowledged = chat.run(&instance, &["write", name, &typed]);
                        chat.said.entry(name.clone()).or_default().push(Said { text, acknowledged });
                    }
                }
            }
            chat
        });
        Self { stop, thread }
    }

    pub(super) fn finish(self) -> Chat {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Chat {
            unexpected: vec!["the thread that runs commands panicked".to_owned()],
            ..Chat::default()
        })
    }
}

impl Chat {
    fn run(&mut self, instance: &Instance, args: &[&str]) -> bool {
        let began = Instant::now();
        let output = instance.try_run(args);
        self.slowest = self.slowest.max(began.elapsed());
        self.commands += 1;
        let (ok, code, words) = match output {
            Ok(output) => (
                output.status.success(),
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned(),
            ),
            Err(error) => (false, None, error.to_string()),
        };
        if !ok {
            self.failed += 1;
            *self.words.entry(words.clone()).or_default() += 1;
            // A daemon that is killed in the middle of a request cannot answer it: the caller is told that it
            // could not be reached (7). Anything else is a fault.
            if code != Some(7) {
                self.unexpected.push(format!("wharf {}: code {code:?}: {words}", args.join(" ").trim_end()));
            }
        }
        ok
    }

    pub(super) fn said_to(&self, name: &str) -> impl Iterator<Item = &Said> {
        self.said.get(name).into_iter().flatten()
    }

    /// Looks at what became of the sessions that were started meanwhile.
    pub(super) fn look(&mut self, instance: &Instance) -> Result<()> {
        self.unexpected.extend(self.visitors.faults(instance)?);
        Ok(())
    }

    pub(super) fn faults(&self) -> usize {
        self.unexpected.len()
    }
}

impl fmt::Display for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed: usize = self.said.values().map(Vec::len).sum();
        write!(
            f,
            "commands meanwhile    {} ({typed} typed something, {} started a session), {} cut off, slowest {} ms",
            self.commands,
            self.visitors.count(),
            self.failed,
            self.slowest.as_millis()
        )?;
        for (words, times) in &self.words {
            write!(f, "\n  {times} times: {words}")?;
        }
        for fault in self.unexpected.iter().take(20) {
            write!(f, "\n  unexpected: {fault}")?;
        }
        Ok(())
    }
}
