//! Gemini's generateContent, as Gemini CLI speaks it.

use std::io;

use serde_json::{Value, json};

use super::plan::{Asked, Plan, arguments, is_the_agents};
use crate::service::stream::Events;

pub(super) fn read(body: &Value) -> Asked {
    let declared = body["tools"].as_array().into_iter().flatten();
    let tools: Vec<&Value> =
        declared.filter_map(|tool| tool["functionDeclarations"].as_array()).flatten().collect();
    let mut asked = Asked { side: tools.is_empty(), ..Asked::default() };
    asked.schema = ["responseJsonSchema", "responseSchema"]
        .iter()
        .find_map(|name| body["generationConfig"].get(name).cloned());
    asked.tool = tools.into_iter().find(|tool| tool["name"] == "run_shell_command").cloned();
    for content in body["contents"].as_array().into_iter().flatten().filter(|said| said["role"] == "user") {
        for part in content["parts"].as_array().into_iter().flatten() {
            if let Some(result) = part.get("functionResponse") {
                asked.results.push(result["response"].to_string());
                asked.by_user = false;
            } else if let Some(text) = part["text"].as_str()
                && !is_the_agents(text)
            {
                asked.users.push(text.to_owned());
                asked.by_user = true;
            }
        }
    }
    asked
}

pub(super) fn stream(events: &mut Events<'_>, plan: &Plan) -> io::Result<()> {
    if let Some(command) = &plan.command {
        let schema = [&command.tool["parametersJsonSchema"], &command.tool["parameters"]];
        let schema = schema.into_iter().find(|schema| schema.is_object()).unwrap_or(&Value::Null);
        let args = arguments(schema, &command.line);
        let call =
            json!({ "functionCall": { "id": command.id, "name": command.tool["name"], "args": args } });
        return events.data(&part(&call, true));
    }
    plan.say(events, |events, word| events.data(&part(&json!({ "text": word }), false)))?;
    events.data(&part(&json!({ "text": "" }), true))
}

pub(super) fn whole(plan: &Plan) -> Value {
    let mut answer = content(&json!({ "text": plan.text() }));
    answer["candidates"][0]["finishReason"] = Value::from("STOP");
    answer
}

fn part(part: &Value, last: bool) -> String {
    let mut chunk = content(part);
    if last {
        chunk["candidates"][0]["finishReason"] = Value::from("STOP");
    }
    chunk.to_string()
}

fn content(part: &Value) -> Value {
    json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": [part] } }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15 },
        "modelVersion": "loopback",
    })
}
