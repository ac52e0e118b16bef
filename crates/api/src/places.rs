//! What only some places have: ports, images, and sessions that stand still.

use serde::{Deserialize, Serialize};
use wharf_model::{EngineVariables, ImageSummary, Published};

use crate::client::Answer;
use crate::query::Query;
use crate::target::of;
use crate::{Client, ManyRequest, Outcome};

/// `POST /v1/images/prune`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneRequest {
    /// The backend whose engine is meant; all that answer when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The caller's variables that say which engine is meant; the daemon's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineVariables>,
    /// Also those that have a name.
    #[serde(default)]
    pub all: bool,
    /// Only say what would be removed.
    #[serde(default)]
    pub dry_run: bool,
}

/// `POST /v1/images/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveImageRequest {
    /// The backend whose engine is meant; the first that has it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The caller's variables that say which engine is meant; the daemon's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineVariables>,
    /// Its name or id.
    pub name: String,
}

impl Client {
    /// Makes sessions stand still.
    pub async fn pause(&self, request: &ManyRequest) -> Answer<Vec<Outcome>> {
        self.many("/v1/pause", request).await
    }

    /// Lets sessions go on.
    pub async fn unpause(&self, request: &ManyRequest) -> Answer<Vec<Outcome>> {
        self.many("/v1/unpause", request).await
    }

    /// A session's ports, and where each is reached.
    pub async fn ports(&self, key: &str) -> Answer<Vec<Published>> {
        self.get(of(key, "/ports")?).await
    }

    /// The images of one backend, or of all whose engine answers: the engine that `engine` says, or the daemon's own.
    pub async fn images(
        &self,
        backend: Option<&str>,
        engine: Option<&EngineVariables>,
    ) -> Answer<Vec<ImageSummary>> {
        let engine = engine.and_then(|engine| serde_json::to_string(engine).ok());
        let query = Query::default().push_some("backend", backend).push_some("engine", engine);
        self.get(query.after("/v1/images")).await
    }

    /// Removes images that were built here and that nobody needs.
    pub async fn prune_images(&self, request: &PruneRequest) -> Answer<Vec<ImageSummary>> {
        self.post("/v1/images/prune".into(), request).await
    }

    /// Removes an image.
    pub async fn remove_image(&self, request: &RemoveImageRequest) -> Answer<()> {
        self.post::<_, Option<()>>("/v1/images/remove".into(), request).await.map(drop)
    }
}
