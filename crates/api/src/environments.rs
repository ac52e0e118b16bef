//! Defines the request that prepares environments, and reads its steps as they arrive.

use serde::{Deserialize, Serialize};
use wharf_model::Spec;

use crate::Client;
use crate::client::Answer;
use crate::line_reader::LineReader;

/// `POST /v1/environments/prepare`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrepareRequest {
    /// What would be run. Nothing is started.
    pub spec: Spec,
}

/// One line of the answer to [`PrepareRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrepareStep {
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What is ready: the last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Vec<String>>,
}

/// The steps of a preparation as they come. Dropped before the last, it ends what was begun.
#[derive(Debug)]
pub struct Preparation(LineReader);

impl Client {
    /// Makes a spec's environments ready ahead of its start.
    pub async fn prepare(&self, spec: &Spec) -> Answer<Preparation> {
        let request = PrepareRequest { spec: spec.clone() };
        let body = self.stream_of("/v1/environments/prepare".to_owned(), &request).await?;
        Ok(Preparation(LineReader::new(body, "ask again")))
    }
}

impl Preparation {
    /// The next step; `None` after the last.
    pub async fn next(&mut self) -> Answer<Option<PrepareStep>> {
        self.0.next().await
    }
}
