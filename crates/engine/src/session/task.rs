//! One task a session: it owns what happens to the session from its start to its end.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use wharf_backend::Connection;
use wharf_model::{ExitRecord, Failure, SessionId, State, Stats, Ticket};

use crate::Result;
use crate::instance::catch_panic::catch_panic;
use crate::instance::disk;
use crate::instance::shared::{Shared, without_start_data};
use crate::lifecycle::run_events::ReportedEvents;
use crate::lifecycle::start_run::undo;
use crate::output::copy_to_file::OutputCopy;
use crate::session::handle::{Handle, Stage};
use crate::session::requests::{Command, MAX_QUEUED_COMMANDS, RestartRequest, StopRequest};

/// What a session's task does next.
pub(crate) enum Phase {
    /// Other sessions come first.
    WaitForOthers,
    /// Its command is to be started.
    StartRun(Box<RunStart>),
    /// It is to be found again.
    Adopt,
    /// Its command runs.
    Live(Arc<dyn Connection>, bool),
    /// Its command ended and is started again after a while.
    BackOff(Box<ExitRecord>),
    /// It is over.
    Over(Box<ExitRecord>, State),
    /// The task ends.
    Leave,
}

/// Which start it is; that decides what a failure undoes.
pub(crate) enum RunStart {
    /// The first: a failure leaves nothing.
    First { ticket: Ticket, displaced: Option<SessionId>, reply: oneshot::Sender<Result<()>> },
    /// The first, after a wait for others: a failure ends the session.
    Waited { ticket: Ticket },
    /// Another: a failure leaves what was there before.
    Again { ended: ExitRecord, restarters: Vec<RestartRequest> },
}

pub(crate) struct Task {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: Arc<Handle>,
    pub(crate) commands: mpsc::Receiver<Command>,
    /// Restarts in a row.
    pub(crate) attempts: u32,
    /// Connections in a row that broke within seconds.
    pub(crate) brief_connections: u32,
    /// Whether somebody asked for the end of this run.
    pub(crate) end_requested: bool,
    /// Whether its holder was asked something and has not answered.
    pub(crate) silent: bool,
    /// What the session's events tell of this run already.
    pub(crate) reported: ReportedEvents,
    /// Stops that wait to be carried out until the session is found.
    pub(crate) waiting_stops: Vec<StopRequest>,
    /// Stops that are being carried out, each by the job of its number.
    pub(crate) running_stops: Vec<(u64, StopRequest)>,
    /// Who waits for the session to be started again.
    pub(crate) restarters: Vec<RestartRequest>,
    pub(crate) jobs: JoinSet<JobResult>,
    pub(crate) job: u64,
    pub(crate) pipe: Option<OutputCopy>,
}

/// What a job beside a live session's task brought back.
pub(crate) enum JobResult {
    Stopped(u64, Result<ExitRecord>),
    Stats(Option<Stats>),
}

/// Starts the task of a session that has none. Returns false where it has one, and where the engine is closing.
pub(crate) fn spawn(shared: &Arc<Shared>, handle: &Arc<Handle>, phase: Phase, attempts: u32) -> bool {
    if shared.is_closing() {
        return false;
    }
    let (sender, mut commands) = mpsc::channel(MAX_QUEUED_COMMANDS);
    {
        let mut links = handle.links();
        if links.commands.is_some() {
            return false;
        }
        links.commands = Some(sender);
    }
    let (shared, handle) = (Arc::clone(shared), Arc::clone(handle));
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        let mut phase = phase;
        loop {
            let task = Task::new(&shared, &handle, commands, attempts);
            let Err(panic) = catch_panic(task.run(phase)).await else { return };
            tracing::error!(session = %handle.id, panic, "a session's task failed; the session is looked for again");
            let (sender, fresh) = mpsc::channel(MAX_QUEUED_COMMANDS);
            commands = fresh;
            phase = recover(&shared, &handle, sender);
            if matches!(phase, Phase::Leave) {
                return;
            }
            tokio::select! {
                () = shared.closed() => return,
                () = tokio::time::sleep(shared.timeouts.retry.0) => {}
            }
        }
    });
    true
}

/// After a panic nothing is known but what is on disk.
fn recover(shared: &Arc<Shared>, handle: &Arc<Handle>, sender: mpsc::Sender<Command>) -> Phase {
    {
        let mut links = handle.links();
        links.commands = Some(sender);
        links.connection = None;
    }
    let found = disk::ticket(&shared.home.session(&handle.id));
    match found {
        Ok(Some(ticket)) => {
            handle.links().ticket = Arc::new(without_start_data(ticket));
            handle.set_stage(Stage::Exists);
        }
        Ok(None) if handle.stage() == Stage::Starting => {
            undo(shared, handle, None);
            return Phase::Leave;
        }
        Ok(None) | Err(_) => {}
    }
    shared.update(handle, |session| {
        session.state = State::Unknown;
        session.detail = Some("its supervision failed and begins anew".to_owned());
    });
    handle.end_search();
    Phase::Adopt
}

impl Task {
    fn new(
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
        commands: mpsc::Receiver<Command>,
        attempts: u32,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            handle: Arc::clone(handle),
            commands,
            attempts,
            brief_connections: 0,
            end_requested: false,
            silent: false,
            reported: ReportedEvents::default(),
            waiting_stops: Vec::new(),
            running_stops: Vec::new(),
            restarters: Vec::new(),
            jobs: JoinSet::new(),
            job: 0,
            pipe: None,
        }
    }

    async fn run(mut self, mut phase: Phase) {
        loop {
            // Boxed, so that an idle session's task is as large as the phase that it is in.
            phase = match phase {
                Phase::WaitForOthers => Box::pin(self.wait_for_others()).await,
                Phase::StartRun(start) => Box::pin(self.start_run(*start)).await,
                Phase::Adopt => Box::pin(self.adopt()).await,
                Phase::Live(connection, found) => Box::pin(self.live(connection, found)).await,
                Phase::BackOff(ended) => Box::pin(self.back_off(*ended)).await,
                Phase::Over(exit, state) => Box::pin(self.finish(*exit, state)).await,
                Phase::Leave => return,
            };
        }
    }

    /// Takes note of a stop that is carried out now.
    pub(crate) fn begin_stop(&mut self, stop: StopRequest) -> u64 {
        self.end_requested = true;
        self.job += 1;
        self.running_stops.push((self.job, stop));
        self.job
    }

    /// Sends the exit record to everybody whose stop waits for it.
    pub(crate) fn answer_stops(&mut self, exit: &ExitRecord) {
        self.reply_to_stops(&Ok(exit.clone()));
    }

    pub(crate) fn reply_to_stops(&mut self, answer: &Result<ExitRecord>) {
        let running = self.running_stops.drain(..).map(|(_, stop)| stop);
        for reply in running.chain(self.waiting_stops.drain(..)).filter_map(|stop| stop.reply) {
            // Whoever went away wants no answer.
            let _ = reply.send(answer.clone());
        }
    }

    /// Tells everybody who waits for a stop or a restart that it failed.
    pub(crate) fn refuse(&mut self, failure: &Failure) {
        self.reply_to_stops(&Err(failure.clone()));
        for restarter in self.restarters.drain(..) {
            let _ = restarter.reply.send(Err(failure.clone()));
        }
        self.end_requested = false;
    }
}
