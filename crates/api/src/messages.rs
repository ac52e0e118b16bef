//! Messages: text for an agent, and what becomes of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_model::{Await, Code, Failure, Manner, Name, Receipt, Reply, Retry};

use crate::Client;
use crate::client::{Answer, millis};
use crate::query::Query;
use crate::target::of;

/// `POST /v1/sessions/{name}/messages` and `…/ask`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SendRequest {
    /// The text, whole.
    pub text: String,
    /// How it is to be delivered.
    #[serde(flatten)]
    pub manner: Manner,
}

impl Client {
    /// Has an agent go on whose last turn failed. The receipt is that of the message that does so.
    pub async fn retry(&self, key: &str, request: Retry, how: Await, within: Duration) -> Answer<Receipt> {
        let target = waiting(how, within).after(&of(key, "/retry")?);
        self.post_within(target, &request, within).await
    }

    /// Puts a message into a session's queue and waits as far as `how` says. The answer is a receipt also where the
    /// message was refused; its status says so. A message with a key may be sent again: it is the same one.
    pub async fn send(
        &self,
        key: &str,
        request: &SendRequest,
        how: Await,
        within: Duration,
    ) -> Answer<Receipt> {
        let target = waiting(how, within).after(&of(key, "/messages")?);
        self.post_within(target, request, within).await
    }

    /// A session's messages, the oldest first.
    pub async fn messages(&self, key: &str) -> Answer<Vec<Receipt>> {
        self.get(of(key, "/messages")?).await
    }

    /// What became of a message.
    pub async fn receipt(&self, id: &str) -> Answer<Receipt> {
        self.get(message(id, "")?).await
    }

    /// Waits for a message. Fails with a timeout where it neither came so far nor is over.
    pub async fn await_receipt(&self, id: &str, how: Await, within: Duration) -> Answer<Receipt> {
        self.get_within(waiting(how, within).after(&message(id, "")?), within).await
    }

    /// Takes a message back that is not typed yet.
    pub async fn cancel(&self, id: &str) -> Answer<Receipt> {
        self.post(message(id, "/cancel")?, &()).await
    }

    /// Sends a message, waits for the turn to end, and gives what the agent answered.
    pub async fn ask_agent(&self, key: &str, request: &SendRequest, within: Duration) -> Answer<Reply> {
        let target = Query::default().push("timeout_ms", millis(within)).after(&of(key, "/ask")?);
        self.post_within(target, request, within).await
    }
}

fn waiting(how: Await, within: Duration) -> Query {
    Query::default().push("wait", how.as_str()).push("timeout_ms", millis(within))
}

/// The target of one message: its id has the form of a name in no group.
fn message(id: &str, what: &str) -> Answer<String> {
    let id = id.parse().ok().filter(|id: &Name| id.group().is_none()).ok_or_else(|| {
        Failure::new(Code::Invalid, format!("{id:?} is no message's id"))
            .hint("`wharf messages NAME` lists a session's messages")
    })?;
    Ok(format!("/v1/messages/{id}{what}"))
}

#[cfg(test)]
mod tests {
    use wharf_model::When;

    use super::*;

    #[test]
    fn a_request_is_flat() {
        let manner = Manner { when: When::Now, key: Some("k".into()), ..Manner::default() };
        let request = SendRequest { text: "a\nb".into(), manner };
        let json = serde_json::to_value(&request).unwrap();
        assert_eq!((json["text"].as_str(), json["when"].as_str()), (Some("a\nb"), Some("now")));
        assert_eq!(serde_json::from_value::<SendRequest>(json).unwrap(), request);
        let least: SendRequest = serde_json::from_str(r#"{"text":"x","later":1}"#).unwrap();
        assert_eq!(least.manner, Manner::default());
    }

    #[test]
    fn an_id_that_would_change_the_path_is_refused() {
        assert_eq!(
            message("0123456789abcdef.3", "/cancel").unwrap(),
            "/v1/messages/0123456789abcdef.3/cancel"
        );
        for bad in ["", "../x", "a/b", "a?b"] {
            assert_eq!(message(bad, "").unwrap_err().code, Code::Invalid, "{bad:?}");
        }
    }
}
