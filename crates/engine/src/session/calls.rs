//! Calls to a running session over its connection: signal, write, resize, stats, exec, output.

use std::sync::Arc;
use std::time::Duration;

use wharf_backend::{Connection, ExecRequest, Output, Pending};
use wharf_model::{Code, Failure, Home, Offset, Size, State, Stats};

use crate::Result;
use crate::output::read::{FollowedOutput, LogOutput, log_end};
use crate::session::handle::Handle;
use crate::session::session_handle::SessionHandle;

/// What is done to a session that runs.
impl SessionHandle {
    /// Sends a signal to the command, or to its whole tree.
    pub async fn signal(&self, signal: i32, tree: bool) -> Result<()> {
        let connection = self.connection().await?;
        self.within(connection.signal(signal, tree)).await
    }

    /// Types at a session. Returns when all of it is in the terminal or pipe.
    pub async fn write(&self, bytes: &[u8], within: Duration) -> Result<()> {
        let connection = self.connection().await?;
        // The connection keeps the deadline itself, and says how much went in.
        let late = within + self.engine.shared.timeouts.call;
        tokio::time::timeout(late, connection.write(bytes, within))
            .await
            .unwrap_or_else(|_| Err(slow(&self.called(), late)))
    }

    /// Ends the input of a pipe session.
    pub async fn close_input(&self) -> Result<()> {
        let connection = self.connection().await?;
        self.within(connection.close_input()).await
    }

    /// How much input the application has not read, and the terminal's mode.
    pub async fn pending(&self) -> Result<Pending> {
        let connection = self.connection().await?;
        self.within(connection.pending()).await
    }

    /// Changes the terminal's size.
    pub async fn resize(&self, size: Size) -> Result<()> {
        let connection = self.connection().await?;
        self.within(connection.resize(size.sane())).await
    }

    /// What a session uses; of one that is over, what its log holds.
    pub async fn stats(&self) -> Result<Stats> {
        let handle = self.entry().await?;
        if !handle.is_over() {
            let connection = connected(&handle)?;
            return self.within(connection.stats()).await;
        }
        let log = self.engine.shared.home.session(&handle.id).join(Home::LOG);
        let log_start = wharf_log::Reader::bounds(&log).map_or(Offset(0), |(start, _)| start);
        Ok(Stats { log_start, log_end: log_end(&log)?, ..Stats::default() })
    }

    /// Runs one more command in the session's place and tree.
    pub async fn exec(&self, request: ExecRequest) -> Result<i32> {
        let connection = self.connection().await?;
        connection.exec(request).await
    }

    /// Reads output from an offset on. With `follow` it goes on until the session is over, else until what there is now.
    pub async fn output(&self, from: Offset, follow: bool) -> Result<Box<dyn Output>> {
        let handle = self.entry().await?;
        if follow && !handle.is_over() {
            return Ok(Box::new(FollowedOutput::new(&self.engine.shared, &handle, from)));
        }
        Ok(Box::new(LogOutput::new(
            &self.engine.shared.tasks,
            self.engine.shared.home.session(&handle.id).join(Home::LOG),
            from,
        )))
    }

    /// The way to a session that runs.
    pub(crate) async fn connection(&self) -> Result<Arc<dyn Connection>> {
        connected(&*self.entry().await?)
    }

    pub(crate) async fn within<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let within = self.engine.shared.timeouts.call;
        tokio::time::timeout(within, call).await.unwrap_or_else(|_| Err(slow(&self.called(), within)))
    }
}

/// The way to a session that runs, or why there is none.
pub(crate) fn connected(handle: &Handle) -> Result<Arc<dyn Connection>> {
    let session = handle.session();
    let name = &session.name;
    if session.state.is_over() {
        return Err(Failure::new(Code::Ended, format!("session {name} has ended"))
            .hint(format!("`wharf logs {name}` shows its output, `wharf restart {name}` starts it again")));
    }
    if let Some(connection) = handle.links().connection.clone() {
        return Ok(connection);
    }
    let detail = session.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
    Err(if session.state == State::Starting {
        Failure::new(Code::NotStarted, format!("session {name} does not run yet{detail}"))
    } else {
        Failure::new(Code::Unreachable, format!("session {name} cannot be reached{detail}"))
            .hint("nothing is concluded from that; it is looked for again and again")
    })
}

fn slow(name: &str, within: Duration) -> Failure {
    Failure::new(Code::Timeout, format!("session {name} did not answer within {within:?}"))
}
