//! Anthropic Messages, as Claude Code speaks it.

use std::io;

use serde_json::{Value, json};

use super::plan::{Asked, Plan, arguments, is_the_agents, texts};
use crate::service::stream::Events;

pub(super) fn read(body: &Value) -> Asked {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Titles, quota checks and the like come without tools.
    let mut asked = Asked { side: tools.is_empty(), ..Asked::default() };
    asked.tool = tools.iter().find(|tool| tool["name"] == "Bash").cloned();
    for message in body["messages"].as_array().into_iter().flatten().filter(|said| said["role"] == "user") {
        let results = message["content"].as_array().into_iter().flatten();
        for result in results.filter(|part| part["type"] == "tool_result") {
            asked.results.push(texts(&result["content"]).concat());
            asked.by_user = false;
        }
        for text in texts(&message["content"]).into_iter().filter(|text| !is_the_agents(text)) {
            // Claude Code drops white space at the end itself, and adds a line break where it joins two messages.
            asked.users.push(text.trim_end().to_owned());
            asked.by_user = true;
        }
    }
    asked
}

pub(super) fn stream(events: &mut Events<'_>, plan: &Plan) -> io::Result<()> {
    let message = json!({
        "id": format!("msg_{}", plan.id), "type": "message", "role": "assistant", "model": "loopback", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 10, "output_tokens": 1 },
    });
    events.named(&json!({ "type": "message_start", "message": message }))?;
    let mut stop = "end_turn";
    if let Some(command) = &plan.command {
        stop = "tool_use";
        let input = arguments(&command.tool["input_schema"], &command.line).to_string();
        let block =
            json!({ "type": "tool_use", "id": command.id, "name": command.tool["name"], "input": {} });
        events.named(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))?;
        let delta = json!({ "type": "input_json_delta", "partial_json": input });
        events.named(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))?;
    } else {
        let block = json!({ "type": "text", "text": "" });
        events.named(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))?;
        plan.say(events, |events, word| {
            let delta = json!({ "type": "text_delta", "text": word });
            events.named(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
        })?;
    }
    events.named(&json!({ "type": "content_block_stop", "index": 0 }))?;
    events.named(&json!({
        "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null },
        "usage": { "output_tokens": 5 },
    }))?;
    events.named(&json!({ "type": "message_stop" }))
}

pub(super) fn whole(plan: &Plan) -> Value {
    json!({
        "id": format!("msg_{}", plan.id), "type": "message", "role": "assistant", "model": "loopback",
        "content": [{ "type": "text", "text": plan.text() }],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": { "input_tokens": 10, "output_tokens": 5 },
    })
}
