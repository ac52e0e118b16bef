//! What only some places have: ports, images, and sessions that stand still.

use serde::{Deserialize, Serialize};
use wharf_model::{ImageSummary, Published};

use crate::client::{Answer, of};
use crate::query::Query;
use crate::{Client, ManyRequest, Outcome};

/// `POST /v1/images/prune`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneRequest {
    /// The backend whose engine is meant; all that answer when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
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

    /// The images of one backend, or of all whose engine answers.
    pub async fn images(&self, backend: Option<&str>) -> Answer<Vec<ImageSummary>> {
        self.get(Query::default().push_some("backend", backend).after("/v1/images")).await
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
