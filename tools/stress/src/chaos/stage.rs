//! Chooses the backend of a chaos run, and starts a container engine for it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use wharf_tool_support::container_engine::{ContainerEngine, Kind};

/// How long containers of sessions that are over may take to go.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Where sessions run, and the engine that was started for them.
pub(super) struct Stage {
    words: Vec<String>,
    containers: bool,
    engine: Option<ContainerEngine>,
}

impl Stage {
    /// A backend. Where it has containers and no image is named, it gets an engine of its own.
    pub(super) fn new(backend: &str, image: Option<String>) -> Result<Self> {
        let kind = Kind::of(backend).filter(|_| image.is_none());
        let engine = kind.map(ContainerEngine::start).transpose()?;
        let image = image.or_else(|| engine.as_ref().map(|_| ContainerEngine::IMAGE.to_owned()));
        let containers = image.is_some();
        let mut words = vec!["--backend".to_owned(), backend.to_owned()];
        if let Some(image) = image {
            words.extend(["--image", &image, "--network", "none"].map(str::to_owned));
        }
        Ok(Self { words, containers, engine })
    }

    /// The options of `wharf run` that choose it.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether sessions see only what they are shown.
    pub(super) fn has_containers(&self) -> bool {
        self.containers
    }

    /// Where the engine of its own is found.
    pub(super) fn variable(&self) -> Option<(&'static str, String)> {
        Some(self.engine.as_ref()?.variable())
    }

    /// Fails where its engine still has a container or a volume.
    pub(super) fn must_be_empty(&self) -> Result<()> {
        let Some(engine) = &self.engine else { return Ok(()) };
        let deadline = Instant::now() + REMOVAL_TIMEOUT;
        loop {
            let mut left = engine.list(&["ps", "-a", "--format", "{{.Names}}={{.State}}"])?;
            left.extend(engine.list(&["volume", "ls", "-q"])?);
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("{} containers and volumes are left behind: {}", left.len(), left.join(", "));
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}
