//! Starts a session on another host: uploads what would be mounted, and proxies the socket that would be shared.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::oneshot;
use wharf_backend::{Connection, Result};
use wharf_holder::wire::{Start, StartedReply};
use wharf_holder_client::session as held;
use wharf_log::Reader;
use wharf_model::{Code, Failure, Offset, Scope, ScopeKind};

use super::container::{HANDSHAKE_SOCKET, RemoteContainer, SOCKET};
use super::exec_stream::{ExecInput, ExecOutput};
use super::log_mirror::StartRequest;
use super::socket_proxy::{ProxyLock, SocketProxy};
use super::upload::Upload;
use crate::session_start::SessionStart;

/// How much output, in bytes, the holder keeps at least until the mirror has copied it.
pub(super) const MIN_REMOTE_LOG_LEN: u64 = 64 << 20;
/// How long a holder may take to be reached, and to start a command.
const HOLDER_START_TIMEOUT: Duration = Duration::from_secs(60);

impl SessionStart {
    /// Starts the session. The caller cleans up after a failure.
    pub(crate) async fn start_remote(&mut self) -> Result<Arc<dyn Connection>> {
        self.dirs.create_remote()?;
        let home = self.ticket.dir.as_path().to_owned();
        let Some(lock) = ProxyLock::take(&home)? else {
            return Err(Failure::new(Code::Running, "an earlier run of the session is still being followed"));
        };
        self.dirs.write_ticket(&self.ticket)?;
        // Keep the image's user: our uid means nothing on the remote host.
        let id = self.create_container(self.container.user.clone().unwrap_or_default(), false).await?;
        self.record_made(&id)?;
        let local = || Failure::new(Code::Internal, "the engine is one of this host");
        let remote = RemoteContainer::of(&self.engine, &id, &self.ticket).ok_or_else(local)?;
        self.upload_files(&remote).await?;
        self.engine.start(&id).await?;
        let late = |_| Failure::new(Code::Timeout, "the holder in the container was not reached in time");
        // Open all streams before the command runs: it may use up the container's processes.
        let relays = Box::pin(async {
            tokio::try_join!(
                remote.relay(HANDSHAKE_SOCKET, true),
                remote.relay(SOCKET, true),
                remote.relay(SOCKET, true)
            )
        });
        let reached = tokio::time::timeout(HOLDER_START_TIMEOUT, relays);
        let ((input, output), client, spare) = reached.await.map_err(late)??;
        let (tell, told) = oneshot::channel();
        let request = StartRequest { input, output, frame: self.start_request().await?, tell };
        let proxy = SocketProxy::open(remote, lock, Some((request, spare)))?;
        match self.wait_until_started(&proxy, told, client).await {
            Ok(connection) => Ok(connection),
            Err(failure) => {
                proxy.close().await;
                Err(failure)
            }
        }
    }

    /// Raises the log limit of the holder there: it must keep all output that the mirror has not copied yet, however
    /// little is kept here.
    pub(crate) fn keep_unseen_output(&self, start: Start) -> Start {
        let asked = self.ticket.spec.log_size.unwrap_or_default();
        Start { log_size: if asked == 0 { 0 } else { asked.max(MIN_REMOTE_LOG_LEN) }, ..start }
    }

    /// Where the log on this side ends, and the one in the container begins.
    pub(crate) fn log_end(&self) -> Result<Offset> {
        let bounds = Reader::bounds(&self.dirs.log());
        bounds.map(|(_, end)| end).map_err(|error| Failure::system("cannot read the session's log", &error))
    }

    /// Uploads what a container of this host would have mounted.
    async fn upload_files(&self, remote: &RemoteContainer) -> Result<()> {
        remote.put(Upload::holder(&self.containers.options.holder, self.log_end()?)?).await?;
        let (container, paths) = (self.container.clone(), self.paths.clone());
        let read = move || Upload::secrets(&container, &paths);
        if let Some(secrets) = self.containers.path_checks.look("a secret", read).await?? {
            remote.put(secrets).await?;
        }
        if let Some(prompt) = Upload::prompt(self.dirs.prompt().as_deref())? {
            remote.put(prompt).await?;
        }
        Ok(())
    }

    /// Waits for the answer to the start request, writes the ticket, and connects.
    async fn wait_until_started(
        &mut self,
        proxy: &SocketProxy,
        told: oneshot::Receiver<Result<StartedReply>>,
        relay: (ExecInput, ExecOutput),
    ) -> Result<Arc<dyn Connection>> {
        let late = |_| Failure::new(Code::Timeout, "the holder did not start the command in time");
        let gone = |_| Failure::new(Code::Internal, "the holder went away before the command was started");
        let started =
            tokio::time::timeout(HOLDER_START_TIMEOUT, told).await.map_err(late)?.map_err(gone)??;
        let pair = UnixStream::pair();
        let (stream, client) =
            pair.map_err(|error| Failure::system("cannot make a pair of sockets", &error))?;
        proxy.add_client(client, relay);
        // Process numbers of another host mean nothing here.
        (self.ticket.holder, self.ticket.command) = (None, None);
        self.ticket.started = started.started;
        self.ticket.scope = Scope { kind: ScopeKind::Namespace, dirs: Vec::new() };
        self.dirs.write_ticket(&self.ticket)?;
        let first = held::first_status(0, self.ticket.spec.size, None);
        Ok(held::connect(&self.containers.tasks, self.ticket.dir.as_path().to_owned(), stream, first))
    }
}
