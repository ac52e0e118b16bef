//! Runs the task that watches one session: reads its log, feeds its screen, decides its state.

mod agent_output;
mod publish;
mod terminal_replies;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::{mpsc, watch};
use wharf_agents::StreamJson;
use wharf_backend::{Connection, Output, OutputChunk, Status, Stream};
use wharf_model::{Home, Offset, Report, Size};

use crate::instance::catch_panic::catch_panic;
use crate::instance::shared::Shared;
use crate::observe::agent_record::Record;
use crate::observe::judge::Judge;
use crate::observe::memory::Memory;
use crate::observe::observed::Observed;
use crate::observe::observer::terminal_replies::PendingReplies;
use crate::observe::prompt::Prompt;
use crate::observe::seen::{Foreground, Sight};
use crate::observe::view::View;
use crate::output::read::{FollowedOutput, log_end};
use crate::session::handle::Handle;
use crate::session::requests::ObserverRequest;
use crate::session::worker::Begin;

/// How long after the last output an agent's observer that nobody needs goes to sleep.
const AGENT_SLEEP_DELAY: Duration = Duration::from_secs(20);
/// How long one stays that nobody needs where the command is no agent, whatever it prints.
const OTHER_SLEEP_DELAY: Duration = Duration::from_millis(300);
/// How long after a little output the next is left to gather: somebody who types sees each key come back.
const GATHER_TIME: Duration = Duration::from_millis(5);
/// How long whoever asks waits for the screen to be that of now.
const CATCH_UP_TIMEOUT: Duration = Duration::from_millis(200);
/// What is more than a little.
const SMALL_OUTPUT_LEN: usize = 4 << 10;
/// How soon a log that cannot be read is looked at again for somebody who waits.
const LOG_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often what is seen is published while much happens.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(10);
/// How often who owns the terminal is looked at while somebody wants to know.
const FOREGROUND_POLL_INTERVAL: Duration = Duration::from_millis(120);
/// How far an observer may be behind before it goes on near the end: nobody reads a flood.
const MAX_BACKLOG_LEN: u64 = 8 << 20;
/// How long the screen is fed before other sessions have their turn.
const FEED_TIME: Duration = Duration::from_millis(2);
/// How many cells a piece of output may change if each of its bytes changes all of them, and so how long the piece is.
const MAX_CELLS_PER_PIECE: usize = 16 << 20;
const MAX_PIECE_LEN: usize = 64 << 10;
const MIN_PIECE_LEN: usize = 16;
/// How long a session must look idle before it counts as idle.
const IDLE_STABLE_TIME: Duration = Duration::from_millis(300);

/// Starts the observer of a session.
pub(crate) fn spawn(
    shared: &Arc<Shared>,
    handle: &Arc<Handle>,
    observed: &Arc<Observed>,
    begin: Begin<ObserverRequest, Memory>,
) {
    let (shared, handle, observed) = (Arc::clone(shared), Arc::clone(handle), Arc::clone(observed));
    let tasks = shared.tasks.clone();
    tasks.spawn_helper(async move {
        let (requests, memory, leave) = begin.begin().await;
        observed.sight.send_replace(Sight::Nothing);
        shared.output_watch.unwatch(&handle.id);
        let id = handle.id.clone();
        let observer = Observer::new(&shared, &handle, &observed, memory.unwrap_or_default());
        let memory = catch_panic(observer.run(requests)).await.unwrap_or_else(|panic| {
            tracing::error!(session = %id, panic, "a session's observer failed");
            Memory::default()
        });
        let unreadable = observed.sight.borrow().is_unreadable();
        if !unreadable {
            // Nobody may act on a screen that is out of date.
            observed.sight.send_replace(Sight::Nothing);
        }
        let goes_on = !handle.is_over() && !shared.is_closing();
        if goes_on {
            let agent = observed.profile().attend;
            shared.output_watch.watch(&shared, &handle, agent, observed.processed());
        }
        leave.hand_over(memory);
        if goes_on {
            if unreadable {
                // A log that cannot be read now is not looked at again and again.
                tokio::select! {
                    () = shared.closed() => return,
                    () = tokio::time::sleep(LOG_RETRY_INTERVAL) => {}
                }
            }
            // Output that came after the last look and before the watch wakes nobody: look once more.
            let end = log_end(&shared.home.session(&id).join(Home::LOG)).unwrap_or_default();
            if end > observed.processed() || observed.is_followed() {
                observed.ensure_observer(&shared, &handle);
            }
        }
    });
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Observer {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
    observed: Arc<Observed>,
    dir: PathBuf,
    tty: bool,
    /// Whether this engine answers the terminal's queries.
    answers: bool,
    judge: Judge,
    connection: Option<Arc<dyn Connection>>,
    status: Status,
    foreground: Option<Foreground>,
    /// Whether it was seen to wait for input.
    has_read: bool,
    /// Whether a child of the command owned the terminal since the last prompt.
    terminal_was_lent: bool,
    /// When something was last printed.
    last_output: Instant,
    /// When somebody last needed it.
    last_needed: Instant,
    title: String,
    prompt: Prompt,
    /// Whether anything was published yet.
    published: bool,
    /// Whether a turn showed since the last look, however short it was.
    turn_seen: bool,
    /// Answers to the terminal's queries that were not typed yet.
    pending_replies: Option<PendingReplies>,
    /// What the agent writes down by itself.
    record: Option<Record>,
    /// What the agent prints instead of a screen.
    stream: Option<StreamJson>,
    memory: Memory,
}

impl Observer {
    fn new(shared: &Arc<Shared>, handle: &Arc<Handle>, observed: &Arc<Observed>, memory: Memory) -> Self {
        let session = handle.session();
        let first = Report {
            state: session.state,
            source: session.source,
            since: session.since,
            evidence: session.evidence.clone().unwrap_or_default(),
        };
        Self {
            dir: shared.home.session(&handle.id),
            shared: Arc::clone(shared),
            handle: Arc::clone(handle),
            observed: Arc::clone(observed),
            tty: session.tty,
            // A guest's questions were asked of somebody else's terminal, and what it printed before comes once more.
            answers: session.guest.is_none()
                && shared.backend(&session.backend).is_ok_and(|backend| !backend.capabilities().answers),
            judge: Judge::new(first, IDLE_STABLE_TIME),
            connection: None,
            status: Status::default(),
            foreground: None,
            has_read: false,
            terminal_was_lent: false,
            last_output: Instant::now(),
            last_needed: Instant::now(),
            title: String::new(),
            prompt: Prompt::default(),
            published: false,
            turn_seen: false,
            pending_replies: None,
            record: None,
            stream: None,
            memory,
        }
    }

    /// Looks after the screen until nobody needs it. Returns what the next observer is to know.
    async fn run(mut self, mut requests: mpsc::Receiver<ObserverRequest>) -> Memory {
        let shared = Arc::clone(&self.shared);
        let closed = shared.closed();
        tokio::pin!(closed);
        let mut changes = self.handle.watch();
        let Some(mut view) = self.build().await else {
            return self.memory;
        };
        if view.offset < self.observed.processed() {
            // The log is shorter than what was dealt with: it was lost or cut under us.
            view.offset = log_end(&self.dir.join(Home::LOG)).unwrap_or(view.offset);
        }
        self.follow_agent().await;
        let mut output = FollowedOutput::new(&self.shared, &self.handle, view.offset);
        let mut statuses = self.connect();
        self.resized(&mut view);
        let (mut publish, mut again, mut over) = (Some(Instant::now()), None::<Instant>, false);
        let mut gather = None::<Instant>;
        // When something was last published, and whether the last request was about what was told.
        let (mut published, mut told) = (None::<Instant>, false);
        loop {
            let told_before = std::mem::take(&mut told);
            let wanted = self.observed.is_followed();
            if wanted {
                self.last_needed = Instant::now();
            }
            let busy = wanted || self.last_output.elapsed() < Duration::from_secs(3);
            let tick = busy.then(|| Instant::now() + FOREGROUND_POLL_INTERVAL);
            let record = self.record.as_ref().filter(|_| busy).map(Record::due);
            let sleep = self.sleep_at();
            gather = gather.filter(|until| Instant::now() < *until);
            let owed = self.pending_replies.as_ref().map(PendingReplies::due);
            let due = [
                publish,
                again,
                tick,
                record,
                gather,
                owed,
                Some(sleep.max(Instant::now() + PUBLISH_INTERVAL)),
            ]
            .into_iter()
            .flatten()
            .min();
            let timer = tokio::time::sleep_until(due.expect("sleep is always there").into());
            tokio::select! {
                biased;
                () = &mut closed => break,
                // A flood of what is told leaves every other turn to the rest.
                Some(request) = requests.recv(), if !told_before => {
                    told = !request.is_look();
                    if told {
                        publish.get_or_insert(published.map_or_else(Instant::now, |at| at + PUBLISH_INTERVAL));
                    } else {
                        self.last_needed = Instant::now();
                        if let Some(statuses) = &mut statuses {
                            self.status = statuses.borrow_and_update().clone();
                        }
                        if !over {
                            self.catch_up(&mut view, &mut output).await;
                        }
                        // A program may answer a change of its size with nothing.
                        self.resized(&mut view);
                    }
                    self.answer(&mut view, request);
                }
                changed = changes.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    changes.mark_unchanged();
                    statuses = self.connect();
                    self.resized(&mut view);
                }
                changed = changed(&mut statuses), if statuses.is_some() => {
                    match (changed, &mut statuses) {
                        (true, Some(statuses)) => self.status = statuses.borrow_and_update().clone(),
                        _ => statuses = None,
                    }
                    self.resized(&mut view);
                }
                chunk = output.next(), if !over && gather.is_none() => match chunk {
                    Ok(Some(chunk)) => {
                        let little = matches!(&chunk, OutputChunk::Data { bytes, .. } if bytes.len() < SMALL_OUTPUT_LEN);
                        gather = little.then(|| Instant::now() + GATHER_TIME);
                        self.take_output(&mut view, chunk, &mut output).await;
                        // Others have work too.
                        tokio::task::yield_now().await;
                    }
                    Ok(None) => over = true,
                    Err(failure) => {
                        tracing::warn!(session = %self.handle.id, %failure, "a session's output cannot be read");
                        break;
                    }
                },
                () = timer => {
                    self.type_replies(view.offset).await;
                    let idle = Instant::now() >= sleep && publish.is_none() && again.is_none();
                    if idle && self.observed.release_observer(&mut requests) {
                        break;
                    }
                }
                () = std::future::ready(()), if told_before => {}
            }
            // A burst is published at its end, or now and then.
            let at = Instant::now();
            if publish.is_none_or(|due| at >= due) {
                self.memory.changed = false;
                again = self.publish(&view);
                (publish, published) = (None, Some(at));
            }
            if publish.is_none() && view.offset > self.observed.processed() {
                publish = Some(at + PUBLISH_INTERVAL);
            }
            self.observed.mark_processed(view.offset);
            self.read_record().await;
            if self.memory.changed && publish.is_none() {
                publish = Some(at);
            }
            if over && requests.is_empty() {
                break;
            }
        }
        self.finish_stream(view.offset);
        self.finish_record().await;
        // What is over is read from its log; and it may be removed just now.
        if !self.handle.is_over() {
            view.checkpoint(&self.dir);
        }
        requests.close();
        let mut told = false;
        while let Some(request) = requests.recv().await {
            told |= !request.is_look();
            self.answer(&mut view, request);
        }
        // The next observer has another judge.
        if told && !self.shared.is_closing() {
            self.publish(&view);
        }
        self.memory
    }

    /// When it may go to sleep, where nobody needs it.
    fn sleep_at(&self) -> Instant {
        if self.observed.profile().attend {
            self.last_output + AGENT_SLEEP_DELAY
        } else {
            self.last_needed + OTHER_SLEEP_DELAY
        }
    }

    /// Builds the screen beside everything else: a log may be long.
    async fn build(&mut self) -> Option<View> {
        let (dir, size, pipes) = (self.dir.clone(), self.handle.session().size, !self.tty);
        // What was not dealt with yet is read as it comes, for its questions and signals.
        let to = self.observed.processed();
        let built = self.shared.tasks.spawn_blocking(move || View::build(&dir, size, pipes, to)).await;
        match built {
            Ok(Ok(view)) => Some(view),
            Ok(Err(failure)) => {
                tracing::warn!(session = %self.handle.id, %failure, "a session's screen cannot be built");
                self.observed.sight.send_replace(Sight::Unreadable);
                None
            }
            Err(_) => None,
        }
    }

    /// Follows the connection that there is now.
    fn connect(&mut self) -> Option<watch::Receiver<Status>> {
        self.connection = self.handle.links().connection.clone();
        let status = self.connection.as_ref()?.status();
        self.status = status.borrow().clone();
        Some(status)
    }

    fn resized(&self, view: &mut View) {
        if self.tty && self.connection.is_some() {
            view.resize(self.status.size);
        }
    }

    async fn take_output(&mut self, view: &mut View, chunk: OutputChunk, output: &mut FollowedOutput) {
        self.last_output = Instant::now();
        self.resized(view);
        match chunk {
            OutputChunk::Gap { from, to } => {
                self.observed.add_event("engine", "gap", json!({ "from": from, "to": to }));
                view.offset = to;
            }
            OutputChunk::Data { offset, stream, bytes } => {
                let live = offset >= self.observed.processed();
                if live && stream == Stream::Out {
                    self.read_stream(offset, &bytes);
                }
                self.feed(view, offset, &bytes, live).await;
                if bytes.len() >= SMALL_OUTPUT_LEN {
                    self.skip_flood(view, output);
                }
            }
        }
        self.type_replies(view.offset).await;
    }

    /// Feeds the screen in turns. A few bytes can change every cell of a large screen, and other sessions wait meanwhile.
    async fn feed(&mut self, view: &mut View, offset: Offset, bytes: &[u8], live: bool) {
        let (mut at, mut rest, mut turn) = (offset, bytes, Instant::now());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_len(view.screen.size()).min(rest.len()));
            let news = view.feed(at, piece);
            if live {
                self.take_feed_result(news);
            }
            (at, rest) = (at + piece.len() as u64, after);
            if !rest.is_empty() && turn.elapsed() > FEED_TIME {
                tokio::task::yield_now().await;
                turn = Instant::now();
            }
        }
    }

    /// Reads what is in the log by now, so that whoever asks sees all that was printed before.
    async fn catch_up(&mut self, view: &mut View, output: &mut FollowedOutput) {
        let end = log_end(&self.dir.join(Home::LOG)).unwrap_or_default();
        let until = tokio::time::Instant::now() + CATCH_UP_TIMEOUT;
        while view.offset < end {
            match tokio::time::timeout_at(until, output.next()).await {
                Ok(Ok(Some(chunk))) => self.take_output(view, chunk, output).await,
                // The loop hears of it too, or a flood is not waited for.
                _ => return,
            }
        }
    }

    /// Goes on near the end where it is far behind.
    fn skip_flood(&self, view: &mut View, output: &mut FollowedOutput) {
        let end = log_end(&self.dir.join(Home::LOG)).unwrap_or(view.offset);
        if end.0.saturating_sub(view.offset.0) > MAX_BACKLOG_LEN {
            let to = Offset(end.0 - MAX_BACKLOG_LEN / 8);
            *output = FollowedOutput::new(&self.shared, &self.handle, to);
            self.observed.add_event("engine", "skipped", json!({ "from": view.offset, "to": to }));
            self.observed.mark_processed(to);
            view.offset = to;
        }
    }

    fn answer(&mut self, view: &mut View, request: ObserverRequest) {
        // Whoever went away wants no answer.
        match request {
            ObserverRequest::Capture(what, format, reply) => {
                drop(reply.send(view.screen.capture(what, format)));
            }
            ObserverRequest::Since(cursor, reply) => drop(reply.send(view.since(cursor.as_deref()))),
            ObserverRequest::Repaint(reply) => drop(reply.send((view.screen.repaint(), view.offset))),
            ObserverRequest::Told(event) => self.take_agent_event(event),
            ObserverRequest::ExpectTurn(pressed, reply) => {
                let _ = reply.send(self.memory.expect_turn(pressed));
            }
            ObserverRequest::MainPrompt(prompt) => {
                (self.memory.main_prompt, self.memory.changed) = (Some(prompt), true);
            }
        }
    }
}

async fn changed(statuses: &mut Option<watch::Receiver<Status>>) -> bool {
    match statuses {
        Some(statuses) => statuses.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

/// How many bytes a screen of that size is fed at once.
fn piece_len(size: Size) -> usize {
    let cells = usize::from(size.cols) * usize::from(size.rows);
    (MAX_CELLS_PER_PIECE / cells.max(1)).clamp(MIN_PIECE_LEN, MAX_PIECE_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_screen_is_fed_in_small_pieces() {
        let size = |cols, rows| Size { cols, rows };
        assert_eq!(piece_len(size(80, 24)), 8738);
        assert_eq!(piece_len(size(512, 512)), 64);
        assert_eq!(piece_len(size(4096, 4096)), MIN_PIECE_LEN);
        assert_eq!(piece_len(size(1, 1)), MAX_PIECE_LEN);
    }
}
