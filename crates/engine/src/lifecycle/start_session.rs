//! Starts a session or ensures that one is there: claims its name and begins its task.

use std::sync::Arc;

use tokio::sync::oneshot;
use wharf_model::{Code, Failure, Home, Session, SessionId, Spec, State, Ticket};

use crate::Result;
use crate::instance::disk;
use crate::instance::engine::Engine;
use crate::instance::names::stem_of;
use crate::instance::registry::{Claimed, taken};
use crate::instance::shared::{now, random, without_start_data};
use crate::launch::{backend_launch, secrets, validate};
use crate::lifecycle::start_run::undo;
use crate::session::handle::{Handle, Stage};
use crate::session::task::{self, Phase, RunStart};

/// How many made-up names are tried before a random one.
const MAX_NAME_TRIES: usize = 64;

impl Engine {
    /// Starts a session. After an error nothing of it is left.
    pub async fn start(&self, spec: Spec) -> Result<Arc<Session>> {
        match self.claim(spec, false).await? {
            Claim::New(started) => started.await,
            Claim::Existing(handle) => Err(taken(&handle.session().name)),
        }
    }

    /// The live session of the spec's name, or else of its group; one is started where there is none. The flag
    /// says whether this call started it. Of any number of callers at once exactly one does.
    pub async fn ensure(&self, spec: Spec) -> Result<(Arc<Session>, bool)> {
        loop {
            let handle = match self.claim(spec.clone(), true).await? {
                Claim::New(started) => return Ok((started.await?, true)),
                Claim::Existing(handle) => handle,
            };
            // Another caller's start may still fail: then it is this caller's turn.
            let mut watch = handle.watch();
            while handle.stage() == Stage::Starting && watch.changed().await.is_ok() {}
            if matches!(handle.stage(), Stage::Exists | Stage::Searching) && !handle.is_over() {
                return Ok((handle.session(), false));
            }
            tokio::task::yield_now().await;
        }
    }

    async fn claim(&self, mut spec: Spec, ensure: bool) -> Result<Claim> {
        let shared = &self.shared;
        spec.forget_filled_in();
        let group = shared.qualify(&mut spec).await?;
        shared.expand(&mut spec).await?;
        validate::validate(&mut spec)?;
        let backend = shared.choose(&mut spec).await?;
        spec.backend = Some(backend.clone());
        let place = shared.backend(&backend)?;
        if spec.adopt.is_some() && !place.capabilities().guests {
            let backend = format!("the {backend} backend");
            return Err(Failure::unsupported("what somebody else started", backend));
        }
        let awaited = !spec.after.is_empty();
        self.check_after(&spec).await?;
        let (created, named) = (now(), spec.name.is_some());
        let mut stem = if named { String::new() } else { stem_of(&spec) };
        if let Some(group) = group {
            stem = format!("{group}/{stem}");
        }
        let id = shared.ids.next(created)?;
        let name = match spec.name.take() {
            Some(name) => name,
            None => shared.registry.make_up(&stem)?,
        };
        let (dir, token) = (shared.home.session(&id), backend_launch::token()?);
        let mut ticket = Ticket::new(id, created, name, backend, dir, token, spec);
        for attempt in 0.. {
            ticket.spec.name = Some(ticket.name.clone());
            let small = copy_without_start_data(&mut ticket);
            let handle = Handle::new(shared.describe(&small, State::Starting), small, Stage::Starting);
            let claimed = shared.registry.claim(&handle, ensure, named);
            let link = match claimed {
                Ok(Claimed::Existing(handle)) => return Ok(Claim::Existing(handle)),
                Ok(Claimed::New { displaced }) => {
                    let link = self.claim_link(&ticket, displaced.as_ref()).await;
                    if matches!(link, Ok(true)) {
                        return self.begin(handle, ticket, displaced, awaited);
                    }
                    shared.registry.unclaim(&ticket.id, &ticket.name, displaced.as_ref());
                    handle.set_stage(Stage::Gone);
                    link
                }
                Err(failure) if failure.code == Code::NameTaken && !named => Ok(false),
                Err(failure) => return Err(failure),
            };
            if link? {
                continue;
            }
            if named || attempt > 2 * MAX_NAME_TRIES {
                return Err(taken(&ticket.name));
            }
            ticket.name = if attempt < MAX_NAME_TRIES {
                shared.registry.make_up(&stem)?
            } else {
                format!("{stem}-{:08x}", random()? as u32).parse()?
            };
        }
        Err(taken(&ticket.name))
    }

    /// Lets a claimed session begin. From here on its task owns it, also if the caller goes away.
    fn begin(
        &self,
        handle: Arc<Handle>,
        mut ticket: Ticket,
        displaced: Option<SessionId>,
        awaited: bool,
    ) -> Result<Claim> {
        let shared = &self.shared;
        if shared.is_closing() {
            undo(shared, &handle, displaced.as_ref());
            let message = format!("the engine is closing: session {} was not started", ticket.name);
            return Err(Failure::new(Code::Unreachable, message));
        }
        if let Err(failure) = secrets::write_secrets(&shared.home.session(&ticket.id), &mut ticket) {
            undo(shared, &handle, displaced.as_ref());
            return Err(failure);
        }
        let (reply, started) = oneshot::channel();
        let phase = if awaited {
            if let Err(failure) = self.park(&handle, &mut ticket) {
                undo(shared, &handle, displaced.as_ref());
                return Err(failure);
            }
            // It exists from now on; its start is not this call's to wait for.
            let _ = reply.send(Ok(()));
            Phase::WaitForOthers
        } else {
            Phase::StartRun(Box::new(RunStart::First { ticket, displaced, reply }))
        };
        task::spawn(shared, &handle, phase, 0);
        let name = handle.session().name.clone();
        Ok(Claim::New(Box::pin(async move {
            started.await.unwrap_or_else(|_| {
                Err(Failure::new(Code::Internal, format!("the start of {name} was broken off"))
                    .hint("`wharf ls` shows whether it runs"))
            })?;
            Ok(handle.session())
        })))
    }

    /// Puts a session on disk that waits for others, so that another engine goes on waiting.
    fn park(&self, handle: &Handle, ticket: &mut Ticket) -> Result<()> {
        let shared = &self.shared;
        shared.ports.reserve(&ticket.id, &mut ticket.spec.ports)?;
        let dir = shared.home.session(&ticket.id);
        disk::session_dir(&dir)?;
        disk::write_json(&dir.join(Home::TICKET), ticket)?;
        handle.links().ticket = Arc::new(copy_without_start_data(ticket));
        let ports = ticket.spec.ports.clone();
        handle.set_stage(Stage::Exists);
        shared.update(handle, |session| session.ports = ports);
        shared.remember(handle, 0);
        Ok(())
    }

    /// Claims the name on disk. A link that an ended session left is taken over; one of a session that may live is not.
    async fn claim_link(&self, ticket: &Ticket, displaced: Option<&SessionId>) -> Result<bool> {
        let home = &self.shared.home;
        for _ in 0..3 {
            if disk::claim_link(home, &ticket.name, &ticket.id)? {
                return Ok(true);
            }
            let Some(owner) = disk::linked(home, &ticket.name) else {
                if home.name(&ticket.name).symlink_metadata().is_ok() {
                    // Something that is no link of ours stands there: not ours to take away.
                    return Ok(false);
                }
                continue;
            };
            if displaced == Some(&owner) || self.is_past(&owner).await? {
                disk::point_link(home, &ticket.name, &ticket.id)?;
                return Ok(true);
            }
            return Ok(false);
        }
        Ok(false)
    }

    /// Whether a session that is not in memory is over beyond doubt.
    pub(crate) async fn is_past(&self, id: &SessionId) -> Result<bool> {
        if let Some(handle) = self.shared.registry.by_id(id) {
            return Ok(handle.is_over());
        }
        let dir = self.shared.home.session(id);
        if !dir.join(Home::TICKET).exists() || disk::has_exit(&dir) {
            return Ok(true);
        }
        Ok(self.row(id).await?.is_some_and(|row| row.state.is_over()))
    }
}

/// What a request to start found.
enum Claim {
    New(std::pin::Pin<Box<dyn Future<Output = Result<Arc<Session>>> + Send>>),
    Existing(Arc<Handle>),
}

/// A copy without what only a start needs, made without copying that first.
fn copy_without_start_data(ticket: &mut Ticket) -> Ticket {
    let env = std::mem::take(&mut ticket.spec.env);
    let texts = (ticket.spec.prompt.take(), ticket.spec.motd.take());
    let small = without_start_data(ticket.clone());
    ticket.spec.env = env;
    (ticket.spec.prompt, ticket.spec.motd) = texts;
    small
}
