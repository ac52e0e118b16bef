//! Fetches or builds images ahead of a start and reports the progress, so that no start waits for them in silence.

use async_trait::async_trait;
use wharf_backend::{Environment, Launch, Probe, Progress, Result};
use wharf_model::{Capabilities, Code, Failure, Home, SessionId, Spec};

use crate::backend::Options;
use crate::containers::Containers;
use crate::engine::endpoint::Flavour;
use crate::image;

/// Makes images ready by the engine of a session's backend. It changes nothing of a launch.
pub struct Images {
    containers: [Containers; 2],
}

impl Images {
    /// Those of both engines.
    pub fn new(home: &Home) -> Self {
        let of = |flavour| Containers::new(Options::new(flavour, home));
        Self { containers: [of(Flavour::Docker), of(Flavour::Podman)] }
    }
}

#[async_trait]
impl Environment for Images {
    fn name(&self) -> &'static str {
        "image"
    }

    fn concerns(&self, spec: &Spec) -> bool {
        spec.container.is_some()
    }

    async fn probe(&self) -> Probe {
        let detail = "images are fetched and built by the engine that runs the container".to_owned();
        Probe { available: true, version: None, detail, hint: None }
    }

    async fn prepare(&self, launch: &Launch, _: &Capabilities, progress: &Progress) -> Result<Vec<String>> {
        let Some(container) = &launch.spec.container else { return Ok(Vec::new()) };
        let name = launch.spec.backend.as_deref().unwrap_or_default();
        let containers = self.containers.iter().find(|containers| containers.options.flavour.name() == name);
        let containers = containers
            .ok_or_else(|| Failure::new(Code::Unsupported, format!("the backend {name} has no images")))?;
        // Only reached: the backend of that engine removes what nobody needs there, and owns what is spawned for it.
        let endpoint = containers.endpoint(container.engine.as_ref()).await?;
        let engine = containers.connect(&endpoint).await?;
        let (labels, looks) = (containers.owner()?.build_labels(), &containers.path_checks);
        let image = Box::pin(image::ensure(&engine, container, &labels, progress, looks)).await?;
        Ok(vec![format!("the image {} of {name}", image.id)])
    }

    async fn apply(&self, launch: Launch, _: &Capabilities) -> Result<Launch> {
        Ok(launch)
    }

    /// Images are kept for the next session, and nothing for one alone.
    fn release(&self, _: &SessionId, _: &Spec) {}
}
