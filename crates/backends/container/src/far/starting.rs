//! A start on another host: what would be mounted is brought, and what would be shared has a door.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::oneshot;
use wharf_backend::{Connection, Result};
use wharf_holder::wire::{Start, Started};
use wharf_local::held;
use wharf_log::Reader;
use wharf_model::{Code, Failure, Offset, Scope, ScopeKind};

use super::door::{Door, Key};
use super::load::Load;
use super::mirror::Birth;
use super::site::{BIRTH, SOCKET, Site};
use super::tube::{Input, Output};
use crate::starting::Starting;

/// How much output may wait over there while nobody fetches it.
pub(super) const MIN_REMOTE_LOG_LEN: u64 = 64 << 20;
/// How long a holder may take to be reached, and to start a command.
const HOLDER_START_TIMEOUT: Duration = Duration::from_secs(60);

impl Starting {
    /// Starts the session. What fails is undone by the caller.
    pub(crate) async fn begin_far(&mut self) -> Result<Arc<dyn Connection>> {
        self.rooms.furnish_far()?;
        let home = self.ticket.dir.as_path().to_owned();
        let Some(key) = Key::take(&home)? else {
            return Err(Failure::new(Code::Running, "an earlier run of the session is still being followed"));
        };
        self.rooms.write_ticket(&self.ticket)?;
        // Who it is, is the image's to say: nobody over there is who we are here.
        let id = self.make(self.container.user.clone().unwrap_or_default(), false).await?;
        self.note_made(&id)?;
        let here = || Failure::new(Code::Internal, "the engine is one of this host");
        let site = Site::of(&self.engine, &id, &self.ticket).ok_or_else(here)?;
        self.bring(&site).await?;
        self.engine.start(&id).await?;
        let late = |_| Failure::new(Code::Timeout, "the holder in the container was not reached in time");
        // All before the command runs: it may leave no room for a further process.
        let relays = Box::pin(async {
            tokio::try_join!(site.relay(BIRTH, true), site.relay(SOCKET, true), site.relay(SOCKET, true))
        });
        let reached = tokio::time::timeout(HOLDER_START_TIMEOUT, relays);
        let ((input, output), guest, spare) = reached.await.map_err(late)??;
        let (tell, told) = oneshot::channel();
        let birth = Birth { input, output, frame: self.frame()?, tell };
        let door = Door::open(site, key, Some((birth, spare)))?;
        match self.converse(&door, told, guest).await {
            Ok(connection) => Ok(connection),
            Err(failure) => {
                door.close().await;
                Err(failure)
            }
        }
    }

    /// What is kept over there is what this side has not seen yet: that much at least, however little is to be kept here.
    pub(crate) fn apart(&self, start: Start) -> Start {
        let asked = self.ticket.spec.log_size.unwrap_or_default();
        Start { log_size: if asked == 0 { 0 } else { asked.max(MIN_REMOTE_LOG_LEN) }, ..start }
    }

    /// Where the log on this side ends, and the one over there begins.
    pub(crate) fn log_end(&self) -> Result<Offset> {
        let bounds = Reader::bounds(&self.rooms.log());
        bounds.map(|(_, end)| end).map_err(|error| Failure::system("cannot read the session's log", &error))
    }

    /// Brings there what a container of this host would have mounted.
    async fn bring(&self, site: &Site) -> Result<()> {
        site.put(Load::holder(&self.place.options.holder, self.log_end()?)?).await?;
        if let Some(secrets) = Load::secrets(&self.container, &self.settled)? {
            site.put(secrets).await?;
        }
        if let Some(prompt) = Load::prompt(self.rooms.prompt().as_deref())? {
            site.put(prompt).await?;
        }
        Ok(())
    }

    /// The first words with the holder.
    async fn converse(
        &mut self,
        door: &Door,
        told: oneshot::Receiver<Result<Started>>,
        relay: (Input, Output),
    ) -> Result<Arc<dyn Connection>> {
        let late = |_| Failure::new(Code::Timeout, "the holder did not start the command in time");
        let gone = |_| Failure::new(Code::Internal, "the holder went away before the command was started");
        let started =
            tokio::time::timeout(HOLDER_START_TIMEOUT, told).await.map_err(late)?.map_err(gone)??;
        let pair = UnixStream::pair();
        let (stream, guest) =
            pair.map_err(|error| Failure::system("cannot make a pair of sockets", &error))?;
        door.admit(guest, relay);
        // No process of another host is one of this one, whatever its number.
        (self.ticket.holder, self.ticket.command) = (None, None);
        self.ticket.started = started.started;
        self.ticket.scope = Scope { kind: ScopeKind::Namespace, dirs: Vec::new() };
        self.rooms.write_ticket(&self.ticket)?;
        let first = held::first_status(0, self.ticket.spec.size, None);
        Ok(held::connect(self.ticket.dir.as_path().to_owned(), stream, first))
    }
}
