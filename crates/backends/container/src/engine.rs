//! An engine, which every question is asked with a deadline.

pub(crate) mod allowance;
mod bounded;
pub(crate) mod caller;
pub(crate) mod endpoint;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod inspect;
pub(crate) mod pause_events;
pub(crate) mod recalls;
pub(crate) mod route;
#[cfg(feature = "remote-engines")]
mod tls;
pub(crate) mod transport;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ImageInspect};
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use futures_util::StreamExt;
use tokio::sync::OnceCell;
use wharf_backend::BackendTasks;
use wharf_model::{Code, Failure};

use crate::engine::allowance::{Allowance, MAX_ITEM_LEN};
use crate::engine::endpoint::{Endpoint, Flavour};
use crate::engine::inspect::{EngineTraits, Found, Listed, ListedImage};
use crate::engine::transport::Transport;

/// How long a question takes at most that an engine answers from memory.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an engine on another host may take to be reached.
const REMOTE_CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long it takes at most to make, start or remove a container: disks and kernels have their say in that.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);

/// An engine that has answered.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) docker: Docker,
    endpoint: Endpoint,
    transport: Arc<Transport>,
    traits: Arc<OnceCell<EngineTraits>>,
}

impl Engine {
    /// Reaches the engine, and settles on a version of its API. A client alone says nothing: the engine must answer.
    pub(crate) async fn reach(
        endpoint: &Endpoint,
        flavour: Flavour,
        ssh: &Path,
        tasks: &BackendTasks,
    ) -> Result<Self, Failure> {
        let transport = Transport::to(endpoint, flavour, ssh, tasks)?;
        let down = |why: String| {
            let why = transport.complaint().map_or(why.clone(), |complaint| format!("{complaint} ({why})"));
            let message = format!("no engine answers at {endpoint}: {why}");
            Failure::new(Code::Unavailable, message)
                .hint("start it, or name another one by DOCKER_HOST or its context")
        };
        let docker = transport.client(CHANGE_TIMEOUT).map_err(|error| down(why(&error)))?;
        // Another host takes longer to be reached.
        let within = if endpoint.is_remote() { REMOTE_CONNECT_TIMEOUT } else { QUERY_TIMEOUT };
        let silent = |_| down(format!("it is silent for {} s", within.as_secs()));
        let answered = tokio::time::timeout(within, docker.ping()).await.map_err(silent)?;
        answered.map_err(|error| down(why(&error)))?;
        // One that is there may take its time to say which it is: Podman asks the system's packages first.
        let docker = tokio::time::timeout(REMOTE_CONNECT_TIMEOUT, docker.negotiate_version()).await;
        let docker = docker
            .map_err(|_| down(format!("it names no version for {} s", REMOTE_CONNECT_TIMEOUT.as_secs())))?;
        let docker = docker.map_err(|error| down(why(&error)))?;
        Ok(Self { docker, endpoint: endpoint.clone(), transport, traits: Arc::default() })
    }

    /// Where it listens.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What leads to it.
    pub(crate) fn transport(&self) -> &Arc<Transport> {
        &self.transport
    }

    /// Whether it is on another host.
    pub(crate) fn is_remote(&self) -> bool {
        self.endpoint.is_remote()
    }

    /// A client for one question that is answered by a stream, of which each item is limited: whoever takes one renews the
    /// allowance.
    pub(crate) fn stream(&self) -> Result<(Docker, Allowance), Failure> {
        self.stream_within(Allowance::of(MAX_ITEM_LEN), CHANGE_TIMEOUT)
    }

    /// The same, where so many bytes may come in all, and the first of them within `timeout`: an engine may say nothing
    /// before it has been sent all.
    pub(crate) fn stream_of(&self, total: u64, timeout: Duration) -> Result<(Docker, Allowance), Failure> {
        self.stream_within(Allowance::of(MAX_ITEM_LEN).in_total(total), timeout)
    }

    fn stream_within(&self, allowance: Allowance, timeout: Duration) -> Result<(Docker, Allowance), Failure> {
        let version = self.docker.client_version();
        let client = self.transport.stream_client(timeout, &version, allowance.clone());
        Ok((client.map_err(|error| self.failure("a stream", &error))?, allowance))
    }

    /// Whether it still answers.
    pub(crate) async fn ping(&self) -> Result<(), Failure> {
        self.within(QUERY_TIMEOUT, "ping", self.docker.ping()).await.map(drop)
    }

    /// How it runs. Asked once: some engines take long to say.
    pub(crate) async fn traits(&self) -> Result<EngineTraits, Failure> {
        let ask = async || {
            let asked = inspect::traits(&self.transport);
            self.told(CHANGE_TIMEOUT, || "tell of itself".to_owned(), asked).await
        };
        self.traits.get_or_try_init(ask).await.copied()
    }

    /// Its version, and that of the API which is spoken with it.
    pub(crate) async fn version(&self) -> Result<(String, String), Failure> {
        let version = self.within(QUERY_TIMEOUT, "version", self.docker.version()).await?;
        let api = self.docker.client_version().to_string();
        Ok((version.version.unwrap_or_default(), api))
    }

    /// What it runs by itself, such as `linux/amd64`.
    pub(crate) async fn platform(&self) -> Result<String, Failure> {
        let version = self.within(QUERY_TIMEOUT, "version", self.docker.version()).await?;
        let arch = version.arch.unwrap_or_default();
        Ok(format!("{}/{}", version.os.unwrap_or_default(), crate::image::architecture(&arch)))
    }

    /// An image; none where there is no such one.
    pub(crate) async fn image(&self, name: &str) -> Result<Option<ImageInspect>, Failure> {
        found(self.ask(QUERY_TIMEOUT, "inspect of an image", self.docker.inspect_image(name)).await?)
            .map_err(|error| self.failure(&format!("inspect of the image {name}"), &error))
    }

    /// Makes a container.
    pub(crate) async fn create(
        &self,
        name: &str,
        platform: Option<&str>,
        body: ContainerCreateBody,
    ) -> Result<Made, Failure> {
        let options =
            CreateContainerOptionsBuilder::default().name(name).platform(platform.unwrap_or_default());
        let options = options.build();
        let made =
            self.within(CHANGE_TIMEOUT, "create", self.docker.create_container(Some(options), body)).await?;
        Ok(Made { id: made.id, limit_left_out: limit_left_out(made.warnings) })
    }

    /// Starts a container.
    pub(crate) async fn start(&self, id: &str) -> Result<(), Failure> {
        self.within(CHANGE_TIMEOUT, "start", self.docker.start_container(id, None)).await
    }

    /// A container by id or name; none where there is no such one.
    pub(crate) async fn container(&self, id: &str) -> Result<Option<Found>, Failure> {
        let asked = inspect::container(&self.transport, id);
        self.told(QUERY_TIMEOUT, || format!("tell of container {id}"), asked).await
    }

    /// All containers with a label, whether they run or not.
    pub(crate) async fn containers(&self, label: &str) -> Result<Vec<Listed>, Failure> {
        let asked = inspect::containers(&self.transport, label);
        self.told(QUERY_TIMEOUT, || "list its containers".to_owned(), asked).await
    }

    /// The images that containers need, once for each of these.
    pub(crate) async fn images_in_use(&self) -> Result<Vec<String>, Failure> {
        let asked = inspect::images_in_use(&self.transport);
        self.told(QUERY_TIMEOUT, || "list its containers".to_owned(), asked).await
    }

    /// All images.
    pub(crate) async fn images(&self, within: Duration) -> Result<Vec<ListedImage>, Failure> {
        self.told(within, || "list its images".to_owned(), inspect::images(&self.transport)).await
    }

    /// Waits for an answer, and says what the engine did not do where there is none.
    async fn told<T>(
        &self,
        within: Duration,
        what: impl Fn() -> String,
        asked: impl Future<Output = io::Result<T>>,
    ) -> Result<T, Failure> {
        let lost = |why: String| {
            let message = format!("the engine at {} did not {}: {why}", self.endpoint.address, what());
            Failure::new(Code::Unreachable, message)
        };
        let asked = tokio::time::timeout(within, asked).await;
        asked
            .map_err(|_| lost(format!("it is silent for {within:?}")))?
            .map_err(|error| lost(error.to_string()))
    }

    /// Waits until a container does not run: its code, where it is there still. The caller sets the deadline.
    pub(crate) async fn ended(&self, id: &str) -> Option<i64> {
        loop {
            // The answer is an error for every code but zero, and for other reasons too: only a look tells them apart.
            if let Ok((docker, _)) = self.stream() {
                docker.wait_container(id, None).next().await;
            }
            match self.container(id).await {
                Ok(None) => return None,
                Ok(Some(found)) if !found.state.running => return Some(found.state.exit_code),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Kills a container, and waits until it does not run. One that is gone or has ended is no error.
    pub(crate) async fn kill(&self, id: &str) -> Result<(), Failure> {
        match self.ask(CHANGE_TIMEOUT, "kill", self.docker.kill_container(id, None)).await? {
            Ok(()) | Err(Error::DockerResponseServerError { status_code: 404 | 409, .. }) => {}
            Err(error) => return Err(self.failure("kill", &error)),
        }
        tokio::time::timeout(QUERY_TIMEOUT, self.ended(id)).await.map(drop).map_err(|_| {
            Failure::new(Code::Survivors, format!("container {id} runs on although the engine killed it"))
        })
    }

    /// Takes a container away with its own volumes, and ends it first where it runs. One that is gone is no error.
    pub(crate) async fn remove(&self, id: &str) -> Result<(), Failure> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.ask(CHANGE_TIMEOUT, "remove", self.docker.remove_container(id, Some(options))).await? {
            Ok(()) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(()),
            // Somebody else is at it: that it goes is what counts.
            Err(Error::DockerResponseServerError { status_code: 409, .. }) => self.gone(id).await,
            Err(error) => Err(self.failure("remove", &error)),
        }
    }

    async fn gone(&self, id: &str) -> Result<(), Failure> {
        let until = tokio::time::Instant::now() + QUERY_TIMEOUT;
        while self.container(id).await?.is_some() {
            if tokio::time::Instant::now() >= until {
                return Err(Failure::new(
                    Code::Timeout,
                    format!("container {id} is being removed for too long"),
                ));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Asks, and explains what went wrong.
    pub(crate) async fn within<T>(
        &self,
        time: Duration,
        what: &str,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        self.ask(time, what, call).await?.map_err(|error| self.failure(what, &error))
    }

    /// Asks. Silence is a failure; an error is the caller's to understand.
    async fn ask<T>(
        &self,
        time: Duration,
        what: &str,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<Result<T, Error>, Failure> {
        tokio::time::timeout(time, call).await.map_err(|_| {
            let message =
                format!("the engine at {} did not answer {what} within {time:?}", self.endpoint.address);
            Failure::new(Code::Unreachable, message)
        })
    }

    pub(crate) fn failure(&self, what: &str, error: &Error) -> Failure {
        let message = format!("the engine at {} refused {what}: {}", self.endpoint.address, why(error));
        let code = match error {
            Error::DockerResponseServerError { message, .. } if is_of_another_architecture(message) => {
                Code::NotExecutable
            }
            Error::DockerResponseServerError { status_code: 404, .. } => Code::NotFound,
            Error::DockerResponseServerError { status_code: 400..=499, .. } => Code::Invalid,
            Error::DockerResponseServerError { .. } | Error::DockerStreamError { .. } => Code::Internal,
            _ => Code::Unreachable,
        };
        Failure::new(code, message)
    }
}

/// A container that was just made.
pub(crate) struct Made {
    pub(crate) id: String,
    /// What the engine says of a limit that it does not put in force.
    pub(crate) limit_left_out: Option<String>,
}

/// The warning that tells of a limit. Engines have words for it alone.
fn limit_left_out(warnings: Vec<String>) -> Option<String> {
    let limit = warnings.into_iter().find(|warning| warning.contains("limit"))?;
    Some(limit.trim().to_owned())
}

/// Whether a program could not be run because it is one of another architecture. Engines have words for it alone.
fn is_of_another_architecture(message: &str) -> bool {
    message.to_lowercase().contains("exec format error")
}

fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What an error says, to its root: the outermost one is often the least telling.
fn why(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        Error::DockerStreamError { error } => error.trim().to_owned(),
        error => {
            let (mut text, mut inner) = (error.to_string(), std::error::Error::source(error));
            while let Some(source) = inner {
                text = source.to_string();
                inner = source.source();
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fake::{Answer, FakeEngine};
    use super::*;

    #[test]
    fn what_engines_have_only_words_for_is_told_apart_here() {
        let warnings = vec!["no swap".to_owned(), " Your kernel has no pids limit. \n".to_owned()];
        assert_eq!(limit_left_out(warnings).as_deref(), Some("Your kernel has no pids limit."));
        assert_eq!(limit_left_out(vec!["other".to_owned()]), None);
        assert!(is_of_another_architecture("exec /run/wharf/holder: Exec format error"));
        assert!(!is_of_another_architecture("no such file"));
    }

    /// An engine that says the same byte without end when it is asked for this.
    fn engine_without_end(dir: &Path, endless: &'static str) -> FakeEngine {
        FakeEngine::serve(dir, move |path| {
            if path.contains(endless) { Answer::Endless(|_| " ".repeat(1 << 16)) } else { Answer::Usual }
        })
    }

    #[tokio::test]
    async fn an_answer_without_end_is_given_up_at_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let failure = engine_without_end(dir.path(), "/version").reach().await.unwrap_err();
        assert_eq!(failure.code, Code::Unavailable);
        assert!(failure.message.contains("says more than 1024 KiB at once"), "{failure}");
    }

    #[tokio::test]
    async fn a_list_without_end_is_given_up_at_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let served = engine_without_end(dir.path(), "/containers/");
        let failure = served.reach().await.unwrap().containers("wharf").await.unwrap_err();
        assert!(failure.message.contains("says more than 16384 KiB"), "{failure}");
    }

    #[tokio::test]
    async fn a_line_of_a_pull_without_end_is_given_up_at_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let served = engine_without_end(dir.path(), "/images/create");
        let (docker, _) = served.reach().await.unwrap().stream().unwrap();
        let image = bollard::query_parameters::CreateImageOptionsBuilder::default().from_image("any").build();
        let error = docker.create_image(Some(image), None, None).next().await.unwrap().unwrap_err();
        assert!(matches!(error, Error::IOError { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn a_stream_may_be_of_any_length_when_its_items_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let served = engine_without_end(dir.path(), "/archive");
        let (docker, allowance) = served.reach().await.unwrap().stream().unwrap();
        let path =
            bollard::query_parameters::DownloadFromContainerOptionsBuilder::default().path("/x").build();
        let mut pieces = docker.download_from_container("c", Some(path));
        let mut len = 0;
        while len < 4 * MAX_ITEM_LEN {
            len += pieces.next().await.unwrap().unwrap().len();
            allowance.renew();
        }
    }
}
