//! Begins a turn of an agent once more that failed.

use std::time::{Duration, Instant};

use serde_json::json;
pub use wharf_model::Retry;
use wharf_model::{Code, Failure, Manner, Millis, Progress, Receipt, State};

use crate::Result;
use crate::deliver::messages::Await;
use crate::instance::shared::now;
use crate::session::session_handle::SessionHandle;

impl SessionHandle {
    /// Has an agent go on whose last turn failed: by the message that its profile says does that, with a receipt as any
    /// other. A session that has ended is started again first, and goes on with its conversation.
    pub async fn retry(&self, how: Retry, within: Duration) -> Result<Receipt> {
        let deadline = Instant::now() + within;
        let handle = self.entry().await?;
        let name = handle.session().name.clone();
        let profile = self.engine.shared.observed(&handle).profile();
        let unable = |what: &str| Failure::unsupported(what, format!("the agent profile {}", profile.name));
        if profile.retry.text.is_empty() {
            return Err(unable("a retry"));
        }
        let compact = match (how.compact, &profile.retry.compact) {
            (false, _) => None,
            (true, Some(text)) => Some(text.clone()),
            (true, None) => return Err(unable("making a conversation shorter")),
        };
        let failed = if handle.is_over() {
            let agent = handle.ticket().spec.agent.clone();
            if profile.launch.resume.is_empty() || agent.is_none_or(|agent| agent.id.is_none()) {
                let message =
                    format!("session {name} has ended, and its conversation cannot be gone on with");
                return Err(
                    Failure::new(Code::Ended, message).hint("`wharf run --agent A --continue` may know it")
                );
            }
            self.restart(None, "retry").await?;
            Some("its session had ended".to_owned())
        } else {
            let mut typist = self.typist().await?;
            let seen = typist.look().await?;
            match seen.report.state {
                State::Working => {
                    return Err(Failure::new(Code::Busy, format!("session {name} is working"))
                        .hint(format!("`wharf interrupt {name}` stops its turn")));
                }
                State::Asking => {
                    return Err(Failure::new(Code::Asking, format!("session {name} asks something"))
                        .hint(format!("answer with `wharf approve {name}` or `wharf deny {name}`")));
                }
                _ => seen.failed.clone(),
            }
        };
        if failed.is_none() && !how.force {
            let message = format!("nothing shows that the last turn of session {name} failed");
            return Err(Failure::new(Code::Refused, message).hint("--force sends the message all the same"));
        }
        let shorter = compact.is_some();
        if let Some(text) = compact {
            let sent = self.send(text, manner(deadline)).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            let receipt = self.await_receipt(&sent.id, Await::Idle, left).await?;
            if receipt.status != Progress::Confirmed {
                // Going on without it would fail as before.
                return Ok(receipt);
            }
        }
        let receipt = self.send(profile.retry.text.as_str(), manner(deadline)).await?;
        let data = json!({ "message": receipt.id, "failed": failed, "compact": shorter });
        let handle = self.entry().await?;
        self.engine.shared.add_engine_event(&handle, "retry", data);
        Ok(receipt)
    }
}

/// A message that is meant as it is, and is not typed after a moment.
fn manner(deadline: Instant) -> Manner {
    let left = deadline.saturating_duration_since(Instant::now());
    Manner { expires: Some(Millis(now().0 + left.as_millis() as u64)), ..Manner::default() }
}
