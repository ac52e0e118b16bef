//! Hands the prompt in a file to the agent that it came with.

use std::time::Duration;

use wharf_agents::PromptWay;
use wharf_model::{Manner, Millis, Spec, Text};

use crate::instance::shared::now;
use crate::session::requests::CourierRequest;
use crate::session::task::Task;

/// The key of the message that a prompt in a file is, and how long it may wait until its agent is ready: somebody may
/// have to log in first.
const FIRST_MESSAGE: &str = "wharf.prompt-file";
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The prompt of a session that an agent's profile starts at a terminal: what reads from a pipe has no input box.
pub(crate) fn first_message(spec: &Spec) -> Option<Text> {
    spec.prompt.clone().filter(|prompt| spec.agent.is_some() && spec.tty && !prompt.is_empty())
}

impl Task {
    /// Puts the prompt that came with an agent into its queue, where its profile says that it is a message.
    pub(crate) async fn hand_over(&self, prompt: Option<Text>) {
        let (shared, handle) = (&self.shared, &self.handle);
        let Some(prompt) = prompt else { return };
        let observed = shared.observed(handle);
        if observed.profile().launch.prompt != Some(PromptWay::Message) {
            return;
        }
        let text = prompt.lossy().trim_end_matches('\n').to_owned();
        let manner = Manner {
            key: Some(FIRST_MESSAGE.to_owned()),
            expires: Some(Millis(now().0 + FIRST_MESSAGE_TIMEOUT.as_millis() as u64)),
            ..Manner::default()
        };
        let ask = |reply| CourierRequest::Accept(text, Box::new(manner), reply);
        if let Err(failure) = observed.ask_courier(shared, handle, ask).await {
            tracing::warn!(session = %handle.id, %failure, "a prompt is not handed to its agent");
            let detail = format!("its prompt was not handed over: {}", failure.message);
            shared.update(handle, |session| session.detail = Some(detail));
        }
    }
}
