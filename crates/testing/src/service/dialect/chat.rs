//! OpenAI chat completions, as OpenCode and aider speak it.

use std::io;

use serde_json::{Value, json};

use super::plan::{Asked, Plan, arguments, is_the_agents, texts};
use crate::service::stream::Events;

pub(super) fn read(body: &Value) -> Asked {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tool = tools.iter().find(|tool| tool["function"]["name"] == "bash").cloned();
    let mut asked = Asked { tool, ..Asked::default() };
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str().unwrap_or_default() {
            "system" => asked.side |= texts(&message["content"]).concat().contains("title generator"),
            "tool" => {
                asked.results.push(texts(&message["content"]).concat());
                asked.by_user = false;
            }
            "user" => {
                for text in texts(&message["content"]).into_iter().filter(|text| !is_the_agents(text)) {
                    // aider says the last word itself.
                    let text =
                        text.strip_suffix("\n\nReply in English.\n").map(str::to_owned).unwrap_or(text);
                    asked.users.push(text);
                    asked.by_user = true;
                }
            }
            _ => {}
        }
    }
    asked
}

pub(super) fn stream(events: &mut Events<'_>, plan: &Plan) -> io::Result<()> {
    events.data(&chunk(plan, &json!({ "role": "assistant", "content": "" }), None))?;
    let stop = if let Some(command) = &plan.command {
        let line = arguments(&command.tool["function"]["parameters"], &command.line).to_string();
        let function = json!({ "name": command.tool["function"]["name"], "arguments": line });
        let call = json!([{ "index": 0, "id": command.id, "type": "function", "function": function }]);
        events.data(&chunk(plan, &json!({ "tool_calls": call }), None))?;
        "tool_calls"
    } else {
        plan.say(events, |events, word| events.data(&chunk(plan, &json!({ "content": word }), None)))?;
        "stop"
    };
    events.data(&chunk(plan, &json!({}), Some(stop)))?;
    events.data("[DONE]")
}

pub(super) fn whole(plan: &Plan) -> Value {
    let message = json!({ "role": "assistant", "content": plan.text() });
    json!({
        "id": format!("chat_{}", plan.id), "object": "chat.completion", "created": 0, "model": "loopback",
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }], "usage": usage(),
    })
}

fn chunk(plan: &Plan, delta: &Value, stop: Option<&str>) -> String {
    let mut chunk = json!({
        "id": format!("chat_{}", plan.id), "object": "chat.completion.chunk", "created": 0, "model": "loopback",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": stop }],
    });
    if stop.is_some() {
        chunk["usage"] = usage();
    }
    chunk.to_string()
}

fn usage() -> Value {
    json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 })
}
