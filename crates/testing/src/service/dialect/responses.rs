//! OpenAI Responses, as Codex speaks it.

use std::io;

use serde_json::{Value, json};

use super::plan::{Asked, Plan, arguments, is_the_agents, texts};
use crate::service::stream::Events;

/// The names that Codex has given its shell tool.
const SHELLS: &[&str] = &["exec_command", "shell_command", "shell", "local_shell"];

pub(super) fn read(body: &Value) -> Asked {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name).cloned();
    let mut asked = Asked { side: tools.is_empty(), ..Asked::default() };
    asked.tool = SHELLS.iter().find_map(|name| named(name));
    for item in body["input"].as_array().into_iter().flatten() {
        if item["type"] == "function_call_output" {
            let output = item["output"].as_str().map_or_else(|| item["output"].to_string(), str::to_owned);
            asked.results.push(output);
            asked.by_user = false;
        } else if item["role"] == "user" {
            for text in texts(&item["content"]).into_iter().filter(|text| !is_the_agents(text)) {
                asked.users.push(text);
                asked.by_user = true;
            }
        }
    }
    asked
}

pub(super) fn stream(events: &mut Events<'_>, plan: &Plan) -> io::Result<()> {
    events
        .named(&json!({ "type": "response.created", "response": { "id": format!("resp_{}", plan.id) } }))?;
    let item = if let Some(command) = &plan.command {
        json!({
            "type": "function_call", "id": format!("fc_{}", plan.id), "call_id": command.id, "name": command.tool["name"],
            "arguments": arguments(&command.tool["parameters"], &command.line).to_string(),
        })
    } else {
        let item = json!({ "type": "message", "id": format!("msg_{}", plan.id), "role": "assistant", "content": [] });
        events.named(&json!({ "type": "response.output_item.added", "output_index": 0, "item": item }))?;
        plan.say(events, |events, word| {
            events.named(&json!({
                "type": "response.output_text.delta", "item_id": format!("msg_{}", plan.id), "output_index": 0, "content_index": 0,
                "delta": word,
            }))
        })?;
        message(plan)
    };
    events.named(&json!({ "type": "response.output_item.done", "output_index": 0, "item": item }))?;
    events.named(&json!({ "type": "response.completed", "response": response(plan, &item) }))
}

pub(super) fn whole(plan: &Plan) -> Value {
    response(plan, &message(plan))
}

fn message(plan: &Plan) -> Value {
    let content = json!([{ "type": "output_text", "text": plan.text(), "annotations": [] }]);
    json!({ "type": "message", "id": format!("msg_{}", plan.id), "role": "assistant", "status": "completed", "content": content })
}

fn response(plan: &Plan, item: &Value) -> Value {
    json!({
        "id": format!("resp_{}", plan.id), "object": "response", "status": "completed", "output": [item],
        "usage": {
            "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15,
        },
    })
}
