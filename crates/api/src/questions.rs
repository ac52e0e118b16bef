//! What an agent asks, and how its turn is stopped.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_model::{Answered, Interrupted, Question, Report};

use crate::Client;
use crate::client::{Answer, millis};
use crate::query::Query;
use crate::target::of;

/// `POST /v1/sessions/{name}/approve`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApproveRequest {
    /// The choice, by its number on the screen or its label; the plain yes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
}

/// `POST /v1/sessions/{name}/keys`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysRequest {
    /// Keys by name: `Escape`, `C-c`, `Enter`.
    pub keys: Vec<String>,
}

impl Client {
    /// Stops the agent's turn by what its profile says does that, and proves it.
    pub async fn interrupt(&self, key: &str, within: Duration) -> Answer<Interrupted> {
        self.post_within(timed(within).after(&of(key, "/interrupt")?), &(), within).await
    }

    /// Presses Escape, once.
    pub async fn escape(&self, key: &str) -> Answer<Report> {
        self.post(of(key, "/escape")?, &()).await
    }

    /// Presses keys.
    pub async fn keys(&self, key: &str, keys: Vec<String>) -> Answer<()> {
        self.post::<_, Option<()>>(of(key, "/keys")?, &KeysRequest { keys }).await.map(drop)
    }

    /// What the agent asks, if it does.
    pub async fn question(&self, key: &str) -> Answer<Option<Question>> {
        self.get(of(key, "/question")?).await
    }

    /// Answers the agent's question with yes, or with the choice that is named.
    pub async fn approve(&self, key: &str, choice: Option<String>, within: Duration) -> Answer<Answered> {
        let target = timed(within).after(&of(key, "/approve")?);
        self.post_within(target, &ApproveRequest { choice }, within).await
    }

    /// Answers the agent's question with no.
    pub async fn deny(&self, key: &str, within: Duration) -> Answer<Answered> {
        self.post_within(timed(within).after(&of(key, "/deny")?), &(), within).await
    }
}

fn timed(within: Duration) -> Query {
    Query::default().push("timeout_ms", millis(within))
}
