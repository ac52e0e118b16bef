//! Implements the typed client of the daemon: one method for each route, with timeouts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Method, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wharf_model::{Code, ExitRecord, Failure, Name, Offset, Session, Size, Stats, Text};

use crate::connection::{Ask, Body, Broken, Connection, Refusal, body, refused};
use crate::log_reader::LogReader;
use crate::query::Query;
use crate::target::of;
use crate::{
    BackendStatus, Check, DaemonStatus, EnvRequest, GcItem, GcRequest, ManyRequest, Outcome, PipeRequest,
    RenameRequest, Selector, StartRequest, Started, Summary, linux,
};

/// How long answers may take. A daemon that dies is noticed at once; these are for one that hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For what the daemon knows by heart: who it is, and what sessions there are.
    pub look: Duration,
    /// For what the daemon answers by itself.
    pub answer: Duration,
    /// For what waits for a session's end, beyond the grace that was asked for.
    pub end: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        // The end may come only after a grace that the session itself sets, which this side does not know.
        Self {
            look: Duration::from_secs(10),
            answer: Duration::from_secs(60),
            end: Duration::from_secs(3600),
        }
    }
}

/// Speaks to the daemon of one instance. A clone shares the connection.
#[derive(Clone)]
pub struct Client {
    socket: PathBuf,
    timeouts: Timeouts,
    /// The connection that was used last, while nobody uses it.
    idle: Arc<Mutex<Option<(Connection, Instant)>>>,
}

/// The most bytes of one write.
pub const MAX_WRITE_LEN: usize = 64 << 20;

/// Less than the daemon keeps a connection that asks nothing.
const MAX_IDLE_TIME: Duration = Duration::from_secs(20);

pub(crate) type Answer<T> = Result<T, Failure>;

impl Client {
    /// A client of the daemon at this socket. It connects when it is first asked something.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), timeouts: Timeouts::default(), idle: Arc::default() }
    }

    /// A client that is connected.
    pub async fn connect(socket: impl Into<PathBuf>) -> Answer<Self> {
        Self::try_connect(socket).await.map_err(|refusal| refusal.failure)
    }

    pub(crate) async fn try_connect(socket: impl Into<PathBuf>) -> Result<Self, Refusal> {
        let client = Self::new(socket);
        let connection = Connection::open(&client.socket).await?;
        client.keep(connection);
        Ok(client)
    }

    /// The same client with other timeouts.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What the daemon says of itself.
    pub async fn daemon(&self) -> Answer<DaemonStatus> {
        self.look("/v1/daemon".into()).await
    }

    /// Ends the daemon and waits until it is gone. Sessions go on.
    pub async fn stop_daemon(&self) -> Answer<()> {
        let connection = self.connection().await?;
        // Watched before it is asked to go: afterwards its pid might be another's.
        let pid = connection.peer.pid;
        // A daemon inside this process ends without it.
        let daemon = if pid == std::process::id() as i32 { Ok(None) } else { linux::Watched::pid(pid) };
        self.keep(connection);
        self.post::<_, Option<()>>("/v1/daemon/stop".into(), &()).await?;
        let system = |error| Failure::system("cannot wait for the daemon's end", &error);
        if let Some(daemon) = daemon.map_err(system)?
            && !daemon.ended(self.timeouts.answer).await.map_err(system)?
        {
            return Err(Failure::new(Code::Timeout, "the daemon was asked to end and has not yet"));
        }
        Ok(())
    }

    /// Starts a session.
    pub async fn start(&self, request: &StartRequest) -> Answer<Started> {
        self.post("/v1/sessions".into(), request).await
    }

    /// Sessions in full, all of them when the selector is empty.
    pub async fn sessions(&self, selector: &Selector) -> Answer<Vec<Session>> {
        self.look(Query::from(selector).after("/v1/sessions")).await
    }

    /// Sessions in brief, all of them when the selector is empty.
    pub async fn summaries(&self, selector: &Selector) -> Answer<Vec<Summary>> {
        decode(&self.sessions_raw(selector).await?)
    }

    /// The JSON text of [`Client::summaries`], which nobody has to parse.
    pub async fn sessions_raw(&self, selector: &Selector) -> Answer<Bytes> {
        let target = Query::from(selector).push("brief", "true").after("/v1/sessions");
        self.ask(Method::GET, target, None, Bytes::new(), self.timeouts.look).await
    }

    /// The text at a target of [`direct::sessions`](crate::direct::sessions).
    pub async fn sessions_at(&self, target: &str) -> Answer<Bytes> {
        self.ask(Method::GET, target.to_owned(), None, Bytes::new(), self.timeouts.look).await
    }

    /// One session, by name or id.
    pub async fn session(&self, key: &str) -> Answer<Session> {
        self.look(of(key, "")?).await
    }

    /// The same with its state as it is now: one that nobody attends is looked at first.
    pub async fn glance(&self, key: &str) -> Answer<Session> {
        self.look(Query::default().push("glance", "true").after(&of(key, "")?)).await
    }

    /// Stops sessions: TERM, grace, KILL.
    pub async fn stop(&self, request: &ManyRequest) -> Answer<Vec<Outcome>> {
        self.many("/v1/stop", request).await
    }

    /// Kills sessions at once.
    pub async fn kill(&self, request: &ManyRequest) -> Answer<Vec<Outcome>> {
        self.many("/v1/kill", request).await
    }

    /// Sends a signal to sessions.
    pub async fn signal(&self, request: &ManyRequest) -> Answer<Vec<Outcome>> {
        self.many("/v1/signal", request).await
    }

    /// Starts sessions again.
    pub async fn restart(&self, request: &ManyRequest) -> Answer<Vec<Outcome>> {
        self.many("/v1/restart", request).await
    }

    /// Removes sessions and their logs.
    pub async fn remove(&self, request: &ManyRequest) -> Answer<Vec<Outcome>> {
        self.many("/v1/remove", request).await
    }

    /// Types bytes into a session. Returns when all of them are in its terminal or pipe.
    pub async fn write(&self, key: &str, bytes: impl Into<Bytes>, within: Duration) -> Answer<()> {
        let target = Query::default().push("within_ms", millis(within)).after(&of(key, "/write")?);
        let bytes = bytes.into();
        if bytes.len() > MAX_WRITE_LEN {
            return Err(Failure::new(Code::Invalid, format!("cannot write {} bytes at once", bytes.len()))
                .hint(format!("at most {MAX_WRITE_LEN} go into one write: send it in parts")));
        }
        let media_type = Some("application/octet-stream");
        let within = within.saturating_add(self.timeouts.answer);
        self.ask(Method::POST, target, media_type, bytes, within).await.map(drop)
    }

    /// Ends the input of a pipe session.
    pub async fn close_input(&self, key: &str) -> Answer<()> {
        self.post::<_, Option<()>>(of(key, "/close-input")?, &()).await.map(drop)
    }

    /// Changes the terminal's size.
    pub async fn resize(&self, key: &str, size: Size) -> Answer<()> {
        self.post::<_, Option<()>>(of(key, "/resize")?, &size).await.map(drop)
    }

    /// Gives a session another name.
    pub async fn rename(&self, key: &str, name: &Name) -> Answer<Session> {
        self.post(of(key, "/rename")?, &RenameRequest { name: name.clone() }).await
    }

    /// The variables of a session's command.
    pub async fn env(&self, key: &str) -> Answer<Vec<(Text, Text)>> {
        self.get(of(key, "/env")?).await
    }

    /// Changes the variables of what starts later in a session.
    pub async fn set_env(&self, key: &str, request: &EnvRequest) -> Answer<()> {
        self.post::<_, Option<()>>(of(key, "/env")?, request).await.map(drop)
    }

    /// Copies output to a file from now on, or no more.
    pub async fn pipe(&self, key: &str, request: &PipeRequest) -> Answer<()> {
        self.post::<_, Option<()>>(of(key, "/pipe")?, request).await.map(drop)
    }

    /// Waits for a session's end; for ever where no timeout is given.
    pub async fn wait(&self, key: &str, timeout: Option<Duration>) -> Answer<ExitRecord> {
        let target = Query::default().push_some("timeout_ms", timeout.map(millis)).after(&of(key, "/wait")?);
        let within = timeout.map_or(Duration::MAX, |timeout| timeout.saturating_add(self.timeouts.answer));
        decode(&self.ask(Method::GET, target, None, Bytes::new(), within).await?)
    }

    /// What a session uses.
    pub async fn stats(&self, key: &str) -> Answer<Stats> {
        self.get(of(key, "/stats")?).await
    }

    /// A session's output from an offset on: what there is, and with `follow` what comes until its end.
    pub async fn log(&self, key: &str, from: Offset, follow: bool) -> Answer<LogReader> {
        let body = self.log_body(key, from, follow).await?;
        Ok(LogReader::new(self.clone(), key, from, follow, body))
    }

    pub(crate) async fn log_body(&self, key: &str, from: Offset, follow: bool) -> Answer<Body> {
        let query = Query::default().push("from", from.to_string()).push("follow", follow.to_string());
        self.stream(query.after(&of(key, "/log")?)).await
    }

    /// An answer that comes piece by piece.
    pub(crate) async fn stream(&self, target: String) -> Answer<Body> {
        self.streamed(Ask { method: Method::GET, target, media_type: None, body: Bytes::new() }).await
    }

    /// The same, of a request with a body.
    pub(crate) async fn stream_of(&self, target: String, request: &impl Serialize) -> Answer<Body> {
        let media_type = Some("application/json");
        self.streamed(Ask { method: Method::POST, target, media_type, body: encode(request)? }).await
    }

    async fn streamed(&self, ask: Ask) -> Answer<Body> {
        within(self.timeouts.answer, async {
            // The stream keeps the connection, so it is not given back.
            let (connection, response) = self.exchange(ask).await?;
            if response.status().is_success() {
                return Ok(connection.into_body(response));
            }
            Err(refused(response).await)
        })
        .await
    }

    /// The backends and whether they can be used.
    pub async fn backends(&self) -> Answer<Vec<BackendStatus>> {
        self.get("/v1/backends".into()).await
    }

    /// Collects what is left of sessions that are over.
    pub async fn gc(&self, request: &GcRequest) -> Answer<Vec<GcItem>> {
        self.post("/v1/gc".into(), request).await
    }

    /// Looks for what is wrong.
    pub async fn doctor(&self) -> Answer<Vec<Check>> {
        self.get("/v1/doctor".into()).await
    }

    pub(crate) async fn many(&self, target: &str, request: &ManyRequest) -> Answer<Vec<Outcome>> {
        let grace = Duration::from_millis(request.grace.map_or(0, |grace| grace.0));
        let within = grace.saturating_add(self.timeouts.end);
        let body = encode(request)?;
        decode(&self.ask(Method::POST, target.into(), Some("application/json"), body, within).await?)
    }

    pub(crate) async fn look<T: DeserializeOwned>(&self, target: String) -> Answer<T> {
        decode(&self.ask(Method::GET, target, None, Bytes::new(), self.timeouts.look).await?)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, target: String) -> Answer<T> {
        decode(&self.ask(Method::GET, target, None, Bytes::new(), self.timeouts.answer).await?)
    }

    pub(crate) async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        target: String,
        request: &B,
    ) -> Answer<T> {
        self.post_within(target, request, Duration::ZERO).await
    }

    /// A question that may take the daemon this long, beyond what an answer takes anyway.
    pub(crate) async fn get_within<T: DeserializeOwned>(
        &self,
        target: String,
        within: Duration,
    ) -> Answer<T> {
        let within = within.saturating_add(self.timeouts.answer);
        decode(&self.ask(Method::GET, target, None, Bytes::new(), within).await?)
    }

    /// A request that may take the daemon this long, beyond what an answer takes anyway.
    pub(crate) async fn post_within<B: Serialize, T: DeserializeOwned>(
        &self,
        target: String,
        request: &B,
        within: Duration,
    ) -> Answer<T> {
        let body = encode(request)?;
        let within = within.saturating_add(self.timeouts.answer);
        decode(&self.ask(Method::POST, target, Some("application/json"), body, within).await?)
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        target: String,
        media_type: Option<&'static str>,
        bytes: Bytes,
        deadline: Duration,
    ) -> Answer<Bytes> {
        within(deadline, async {
            let ask = Ask { method, target, media_type, body: bytes };
            let (connection, response) = self.exchange(ask).await?;
            let answer = body(response).await;
            self.keep(connection);
            answer
        })
        .await
    }

    /// Sends a request, once. Only where it is certain that it was not sent is another connection tried.
    pub(crate) async fn exchange(&self, ask: Ask) -> Answer<(Connection, Response<Incoming>)> {
        let mut connection = self.connection().await?;
        let broken = match connection.ask(ask.clone()).await {
            Ok(response) => return Ok((connection, response)),
            Err(Broken::Unsent) => {
                connection = Connection::open(&self.socket).await.map_err(|refusal| refusal.failure)?;
                match connection.ask(ask).await {
                    Ok(response) => return Ok((connection, response)),
                    Err(broken) => broken,
                }
            }
            Err(broken) => broken,
        };
        Err(match broken {
            Broken::Unsent => Failure::new(Code::Unreachable, "the daemon closes every connection")
                .hint("it is ending: try again"),
            Broken::Unknown(why) => {
                Failure::new(Code::Unreachable, format!("the daemon went away before it answered: {why}"))
                    .hint("it may have done what was asked: `wharf ls` shows what is there now")
            }
        })
    }

    async fn connection(&self) -> Answer<Connection> {
        let idle = self.idle.lock().expect("nothing panics while it is held").take();
        match idle {
            Some((connection, since)) if since.elapsed() < MAX_IDLE_TIME => Ok(connection),
            _ => Connection::open(&self.socket).await.map_err(|refusal| refusal.failure),
        }
    }

    pub(crate) fn keep(&self, connection: Connection) {
        *self.idle.lock().expect("nothing panics while it is held") = Some((connection, Instant::now()));
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("socket", &self.socket).finish_non_exhaustive()
    }
}

pub(crate) fn millis(duration: Duration) -> String {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).to_string()
}

fn encode(request: &impl Serialize) -> Answer<Bytes> {
    serde_json::to_vec(request)
        .map(Bytes::from)
        .map_err(|error| Failure::new(Code::Invalid, format!("cannot write the request: {error}")))
}

pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Answer<T> {
    serde_json::from_slice(body).map_err(|error| {
        Failure::new(Code::Internal, format!("cannot read the daemon's answer: {error}"))
            .hint("`wharf daemon stop` and the next command start a daemon of this version")
    })
}

pub(crate) async fn within<T>(deadline: Duration, work: impl Future<Output = Answer<T>>) -> Answer<T> {
    tokio::time::timeout(deadline, work).await.unwrap_or_else(|_| {
        let message = format!("the daemon did not answer within {} s", deadline.as_secs());
        Err(Failure::new(Code::Timeout, message).hint(
            "it is stopped or overloaded; what needs no daemon (logs, attach, write, keys) works meanwhile",
        ))
    })
}
