//! What sessions are doing, and who says so.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_model::{AgentSummary, Explanation, Session, Until};

use crate::Client;
use crate::client::{Answer, millis};
use crate::query::Query;
use crate::target::of;

/// The answer to `GET /v1/sessions/{name}/until`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Met {
    /// The session then.
    pub session: Session,
    /// What was seen: the line that matched, the event's kind, the state's evidence.
    pub evidence: String,
}

impl Client {
    /// Waits until a session is as asked; for ever where no timeout is given.
    pub async fn until(&self, key: &str, until: &Until, timeout: Option<Duration>) -> Answer<Met> {
        let query = Query::default().push("until", until.to_string());
        let target = query.push_some("timeout_ms", timeout.map(millis)).after(&of(key, "/until")?);
        self.get_within(target, timeout.unwrap_or(Duration::MAX)).await
    }

    /// Why a session is in its state.
    pub async fn explain(&self, key: &str) -> Answer<Explanation> {
        self.get(of(key, "/explain")?).await
    }

    /// The agents whose profiles are known, as they are in a directory: its `wharf.toml` may change some.
    pub async fn agents(&self, dir: Option<&str>) -> Answer<Vec<AgentSummary>> {
        self.get(Query::default().push_some("dir", dir).after("/v1/agents")).await
    }
}
