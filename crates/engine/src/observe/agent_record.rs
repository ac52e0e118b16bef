//! Follows the transcript that an agent writes, and makes events of it.

use std::time::{Duration, Instant, SystemTime};

use tokio::task::JoinHandle;
use wharf_agents::{AgentTranscript, Told};

use crate::instance::tasks::Tasks;
use crate::observe::memory::Memory;
use crate::observe::observed::Observed;

/// How often an agent's own record is read while something happens.
const READ_INTERVAL: Duration = Duration::from_millis(300);

/// How long the last read may take once the session is over.
const LAST_READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Follows what an agent writes down by itself, and makes events of it.
pub(crate) struct Record {
    tasks: Tasks,
    /// Absent while it is being read.
    transcript: Option<AgentTranscript>,
    reading: Option<JoinHandle<(AgentTranscript, Vec<Told>)>>,
    read: Instant,
}

impl Record {
    pub(crate) fn new(tasks: &Tasks, transcript: AgentTranscript) -> Self {
        Self { tasks: tasks.clone(), transcript: Some(transcript), reading: None, read: Instant::now() }
    }

    /// When it is to be read again.
    pub(crate) fn due(&self) -> Instant {
        self.read + READ_INTERVAL
    }

    /// Begins to read where it is time, and takes what was read. Returns the conversation, where it is known.
    pub(crate) async fn poll(&mut self, observed: &Observed, memory: &mut Memory) -> Option<String> {
        if let Some(mut transcript) = self.transcript.take_if(|_| Instant::now() >= self.read + READ_INTERVAL)
        {
            // A file may be long, and a disk slow.
            self.reading = Some(self.tasks.spawn_blocking(move || {
                let told = transcript.poll();
                (transcript, told)
            }));
        }
        let reading = self.reading.take_if(|reading| reading.is_finished())?;
        self.take(observed, memory, reading.await.ok()?)
    }

    /// Reads what was written last. Returns the conversation, where it is known.
    pub(crate) async fn finish(&mut self, observed: &Observed, memory: &mut Memory) -> Option<String> {
        let until = tokio::time::Instant::now() + LAST_READ_TIMEOUT;
        if let Some(reading) = self.reading.take() {
            let read = tokio::time::timeout_at(until, reading).await.ok()?.ok()?;
            self.take(observed, memory, read);
        }
        let mut transcript = self.transcript.take()?;
        let reading = self.tasks.spawn_blocking(move || {
            let told = transcript.poll();
            (transcript, told)
        });
        let read = tokio::time::timeout_at(until, reading).await.ok()?.ok()?;
        self.take(observed, memory, read)
    }

    /// Makes events of what was read.
    fn take(
        &mut self,
        observed: &Observed,
        memory: &mut Memory,
        (transcript, told): (AgentTranscript, Vec<Told>),
    ) -> Option<String> {
        self.read = Instant::now();
        let conversation = transcript.conversation().map(str::to_owned);
        self.transcript = Some(transcript);
        // Where hooks tell the same, they tell it sooner.
        let has_hooks = memory.has_hooks;
        let mut begun = false;
        let said_by_hooks = |kind: &str| kind.starts_with("turn.") || kind.starts_with("tool.");
        for told in
            told.into_iter().filter(|told| !(has_hooks && said_by_hooks(&told.kind)) && told.kind != "other")
        {
            begun |= told.kind == "turn.started";
            if told.kind == "turn.ended" {
                memory.end_turn(begun);
            }
            observed.add_event("record", &told.kind, told.data);
        }
        conversation
    }
}

/// The moment from which an agent's record is read.
pub(crate) fn since(started: wharf_model::Millis) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(started.0)
}
