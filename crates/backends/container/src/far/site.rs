//! One session's container on another host.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::exec::CreateExecOptions;
use bollard::query_parameters::{ResizeExecOptionsBuilder, UploadToContainerOptionsBuilder};
use wharf_backend::Result;
use wharf_model::{Code, Failure, Ticket};

use super::load::Load;
use super::tube::{self, Input, Output};
use crate::body::mounts::{HOLDER, ROOM};
use crate::engine::Engine;
use crate::engine::inspect::FoundState;
use crate::engine::transport::Transport;

/// Where a holder waits to be told what to start.
pub(crate) const BIRTH: &str = "/run/wharf/room/birth";
/// Its socket.
pub(crate) const SOCKET: &str = "/run/wharf/room/sock";

/// What a relay says first.
const RELAY_READY: &[u8] = b"ready\n";
/// How long it may take to have a program run in a container.
const EXEC_TIMEOUT: Duration = Duration::from_secs(20);
/// How long it may take to bring something there.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// A container, the way to it, and the session that is in it.
pub(crate) struct Site {
    pub(crate) engine: Engine,
    transport: Arc<Transport>,
    pub(crate) container: String,
    pub(crate) ticket: Ticket,
}

impl Site {
    /// The container of a session; none where the engine is one of this host.
    pub(crate) fn of(engine: &Engine, container: &str, ticket: &Ticket) -> Option<Self> {
        let transport = Arc::clone(engine.transport());
        let (container, ticket) = (container.to_owned(), ticket.clone());
        engine.is_far().then(|| Self { engine: engine.clone(), transport, container, ticket })
    }

    /// The way to it.
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The session's directory on this side.
    pub(crate) fn home(&self) -> &Path {
        self.ticket.dir.as_path()
    }

    /// Runs the holder's program once more in the container: the engine's name for that, and what it reads and prints.
    pub(crate) async fn run(&self, words: &[&str], tty: bool) -> Result<(String, Input, Output)> {
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
            .within(EXEC_TIMEOUT, "a further process", docker.create_exec(&self.container, options))
            .await?;
        let opened = tokio::time::timeout(EXEC_TIMEOUT, tube::open(&self.transport, &made.id, tty)).await;
        let lost = |why: String| {
            let at = &self.engine.endpoint().address;
            Failure::new(Code::Unreachable, format!("the engine at {at} gave no stream: {why}"))
        };
        let opened = opened.map_err(|_| lost(format!("it is silent for {EXEC_TIMEOUT:?}")))?;
        let (input, output) = opened.map_err(|error: io::Error| lost(error.to_string()))?;
        Ok((made.id, input, output))
    }

    /// A connection to a socket in the container. One who comes early waits for it to be there.
    pub(crate) async fn relay(&self, socket: &str, early: bool) -> Result<(Input, Output)> {
        let words: &[&str] = if early { &["relay", socket, "early"] } else { &["relay", socket] };
        let (_, input, mut output) = self.run(words, false).await?;
        let lost = |why: String| Failure::new(Code::Unreachable, format!("no way to the holder: {why}"));
        match tokio::time::timeout(EXEC_TIMEOUT, output.next()).await {
            Ok(Ok(Some((true, said)))) if said.starts_with(RELAY_READY) => Ok((input, output)),
            // What an engine has to say of a program that it could not start comes where its output would.
            Ok(Ok(Some((_, said)))) => Err(lost(String::from_utf8_lossy(&said).trim().to_owned())),
            Ok(Ok(None)) => Err(lost("it ended at once".to_owned())),
            Ok(Err(error)) => Err(lost(error.to_string())),
            Err(_) => Err(lost(format!("it is silent for {EXEC_TIMEOUT:?}"))),
        }
    }

    /// Gives the terminal of a program a size. What cannot be done is left: it has one already.
    pub(crate) async fn resize(&self, exec: &str, cols: u16, rows: u16) {
        let options = ResizeExecOptionsBuilder::default().w(i32::from(cols)).h(i32::from(rows)).build();
        let asked = self.engine.docker.resize_exec(exec, options);
        if let Err(failure) = self.engine.within(EXEC_TIMEOUT, "a size", asked).await {
            tracing::debug!(%failure, "a terminal keeps its size");
        }
    }

    /// How a program that was run ended; none while it runs.
    pub(crate) async fn code(&self, exec: &str) -> Result<Option<i64>> {
        let asked =
            self.engine.within(EXEC_TIMEOUT, "the end of a process", self.engine.docker.inspect_exec(exec));
        let told = asked.await?;
        Ok(if told.running == Some(true) { None } else { told.exit_code })
    }

    /// How the container is; none where it is gone.
    pub(crate) async fn state(&self) -> Result<Option<FoundState>> {
        Ok(self.engine.container(&self.container).await?.map(|found| found.state))
    }

    /// Puts something into the container, which need not run.
    pub(crate) async fn put(&self, load: Load) -> Result<()> {
        let options = UploadToContainerOptionsBuilder::default().path(load.at).build();
        let body = bollard::body_full(load.tar.into());
        let docker = &self.engine.docker;
        let put = docker.upload_to_container(&self.container, Some(options), body);
        self.engine.within(UPLOAD_TIMEOUT, "a file for the container", put).await
    }

    /// Where the room is.
    pub(crate) fn room() -> &'static str {
        ROOM
    }
}
