//! A session's container on another host: runs programs in it, connects to its holder, uploads files.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::exec::CreateExecOptions;
use bollard::query_parameters::{ResizeExecOptionsBuilder, UploadToContainerOptionsBuilder};
use wharf_backend::Result;
use wharf_model::{Code, Failure, Ticket};

use super::exec_stream::{self, ExecInput, ExecOutput};
use super::upload::Upload;
use crate::create_body::mounts::{HOLDER, ROOM};
use crate::engine::Engine;
use crate::engine::inspect::FoundState;
use crate::engine::transport::Transport;

/// The socket at which a holder waits for its start request. The name in the container is older.
pub(crate) const HANDSHAKE_SOCKET: &str = "/run/wharf/room/birth";
/// The holder's socket.
pub(crate) const SOCKET: &str = "/run/wharf/room/sock";

/// What a relay prints once it is connected.
const RELAY_READY: &[u8] = b"ready\n";
/// How long the engine may take to start a program in the container.
const EXEC_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an upload may take.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// A container on another host, and the session in it.
pub(crate) struct RemoteContainer {
    pub(crate) engine: Engine,
    transport: Arc<Transport>,
    pub(crate) id: String,
    pub(crate) ticket: Ticket,
}

impl RemoteContainer {
    /// The container of a session; none where the engine is on this host.
    pub(crate) fn of(engine: &Engine, container: &str, ticket: &Ticket) -> Option<Self> {
        let transport = Arc::clone(engine.transport());
        let (id, ticket) = (container.to_owned(), ticket.clone());
        engine.is_remote().then(|| Self { engine: engine.clone(), transport, id, ticket })
    }

    /// The transport to the engine.
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The session's directory on this side.
    pub(crate) fn home(&self) -> &Path {
        self.ticket.dir.as_path()
    }

    /// Runs the holder's program once more in the container. Returns the engine's id of the process and its streams.
    pub(crate) async fn run(&self, words: &[&str], tty: bool) -> Result<(String, ExecInput, ExecOutput)> {
        let cmd = std::iter::once(HOLDER).chain(words.iter().copied()).map(str::to_owned).collect();
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(tty),
            cmd: Some(cmd),
            ..CreateExecOptions::<String>::default()
        };
        let docker = &self.engine.docker;
        let made = self
            .engine
            .within(EXEC_TIMEOUT, "a further process", docker.create_exec(&self.id, options))
            .await?;
        let opened =
            tokio::time::timeout(EXEC_TIMEOUT, exec_stream::open(&self.transport, &made.id, tty)).await;
        let lost = |why: String| {
            let at = &self.engine.endpoint().address;
            Failure::new(Code::Unreachable, format!("the engine at {at} gave no stream: {why}"))
        };
        let opened = opened.map_err(|_| lost(format!("it is silent for {EXEC_TIMEOUT:?}")))?;
        let (input, output) = opened.map_err(|error: io::Error| lost(error.to_string()))?;
        Ok((made.id, input, output))
    }

    /// Connects to a socket in the container. With `early`, the relay waits until the socket exists.
    pub(crate) async fn relay(&self, socket: &str, early: bool) -> Result<(ExecInput, ExecOutput)> {
        let words: &[&str] = if early { &["relay", socket, "early"] } else { &["relay", socket] };
        let (_, input, mut output) = self.run(words, false).await?;
        let lost = |why: String| Failure::new(Code::Unreachable, format!("no way to the holder: {why}"));
        match tokio::time::timeout(EXEC_TIMEOUT, output.next()).await {
            Ok(Ok(Some((true, said)))) if said.starts_with(RELAY_READY) => Ok((input, output)),
            // An engine reports a program that it could not start on the program's own output.
            Ok(Ok(Some((_, said)))) => Err(lost(String::from_utf8_lossy(&said).trim().to_owned())),
            Ok(Ok(None)) => Err(lost("it ended at once".to_owned())),
            Ok(Err(error)) => Err(lost(error.to_string())),
            Err(_) => Err(lost(format!("it is silent for {EXEC_TIMEOUT:?}"))),
        }
    }

    /// Sets the terminal size of a program. Failures are logged alone: the terminal has a size already.
    pub(crate) async fn resize(&self, exec: &str, cols: u16, rows: u16) {
        let options = ResizeExecOptionsBuilder::default().w(i32::from(cols)).h(i32::from(rows)).build();
        let asked = self.engine.docker.resize_exec(exec, options);
        if let Err(failure) = self.engine.within(EXEC_TIMEOUT, "a size", asked).await {
            tracing::debug!(%failure, "a terminal keeps its size");
        }
    }

    /// The exit code of a program; none while it runs.
    pub(crate) async fn code(&self, exec: &str) -> Result<Option<i64>> {
        let asked =
            self.engine.within(EXEC_TIMEOUT, "the end of a process", self.engine.docker.inspect_exec(exec));
        let told = asked.await?;
        Ok(if told.running == Some(true) { None } else { told.exit_code })
    }

    /// The container's state; none where it is gone.
    pub(crate) async fn state(&self) -> Result<Option<FoundState>> {
        Ok(self.engine.container(&self.id).await?.map(|found| found.state))
    }

    /// Uploads files into the container, which need not run.
    pub(crate) async fn put(&self, upload: Upload) -> Result<()> {
        let options = UploadToContainerOptionsBuilder::default().path(upload.at).build();
        let body = bollard::body_full(upload.tar.into());
        let docker = &self.engine.docker;
        let put = docker.upload_to_container(&self.id, Some(options), body);
        self.engine.within(UPLOAD_TIMEOUT, "a file for the container", put).await
    }

    /// Where the room is in the container.
    pub(crate) fn room() -> &'static str {
        ROOM
    }
}
