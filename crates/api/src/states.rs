//! What sessions are doing, and who says so.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_model::{Explanation, Session, Until};

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

/// One line of `GET /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Its name, for `--agent`.
    pub name: String,
    /// What it is called.
    #[serde(default)]
    pub title: String,
    /// The programs that mean it.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Where its program is installed.
    #[serde(default)]
    pub installed: Option<String>,
    /// Which version that is, where somebody asked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How the program is got, where its profile says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Its patterns that were too slow and are switched off, each with the session that it is off for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switched_off: Vec<String>,
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
