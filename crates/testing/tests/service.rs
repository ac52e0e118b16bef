//! The model service, spoken to in each protocol as the agents do.
#![expect(clippy::unwrap_used, reason = "tests, and what only tests call")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wharf_testing::service::{ModelService, Settings};

fn service() -> ModelService {
    ModelService::start(Settings::default()).unwrap()
}

fn post(service: &ModelService, path: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(service.url().trim_start_matches("http://")).unwrap();
    let body = body.to_string();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn turns(service: &ModelService) -> Vec<String> {
    service.turns().into_iter().map(|turn| turn.text).collect()
}

#[test]
fn messages() {
    let service = service();
    let tool =
        json!({ "name": "Bash", "input_schema": { "properties": { "command": {}, "description": {} } } });
    let user = |text: &str| json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
    let said = json!({ "role": "user", "content": [
        { "type": "text", "text": "<system-reminder>the agent's own</system-reminder>" },
        { "type": "text", "text": "  hello" },
    ] });
    let body = json!({ "stream": true, "tools": [tool], "messages": [said] });
    assert!(post(&service, "/v1/messages?beta=true", &body).contains("\"OK \""));
    let body = json!({ "stream": true, "messages": [user("a title, please")] });
    assert!(post(&service, "/v1/messages", &body).contains("title"));
    let body = json!({ "stream": true, "tools": [tool], "messages": [said, user("[[tool touch x]]")] });
    let answer = post(&service, "/v1/messages", &body);
    assert!(answer.contains("tool_use") && answer.contains("touch x"), "{answer}");
    assert_eq!(turns(&service), ["  hello", "[[tool touch x]]"]);
}

#[test]
fn responses() {
    let service = service();
    let user = |text: &str| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] });
    let tool = json!({ "type": "function", "name": "exec_command", "parameters": { "properties": { "cmd": { "type": "string" }, "sandbox_permissions": {} } } });
    let context = user("<environment_context>here</environment_context>");
    let body = json!({ "stream": true, "tools": [tool], "input": [context, user("one")] });
    assert!(post(&service, "/v1/responses", &body).contains("response.completed"));
    let body =
        json!({ "stream": true, "tools": [tool], "input": [context, user("one"), user("[[tool ls]]")] });
    let answer = post(&service, "/v1/responses", &body);
    assert!(answer.contains("function_call") && answer.contains("require_escalated"), "{answer}");
    let result = json!({ "type": "function_call_output", "call_id": "call_2", "output": "files" });
    let body = json!({ "stream": true, "tools": [tool], "input": [context, user("one"), user("[[tool ls]]"), result] });
    let answer = post(&service, "/v1/responses", &body);
    assert!(!answer.contains("function_call") && answer.contains("OK "), "{answer}");
    assert_eq!(turns(&service), ["one", "[[tool ls]]"]);
}

#[test]
fn chat_completions() {
    let service = service();
    let tool = json!({ "type": "function", "function": { "name": "bash", "parameters": { "properties": { "command": {} } } } });
    let user = json!({ "role": "user", "content": "[[slow 0.3]]" });
    let began = Instant::now();
    let body = json!({ "stream": true, "tools": [tool], "messages": [user] });
    assert!(post(&service, "/v1/chat/completions", &body).contains("[DONE]"));
    assert!(began.elapsed() >= Duration::from_millis(300));
    let title = json!({ "role": "system", "content": "You are a title generator." });
    let body = json!({ "stream": true, "messages": [title, user] });
    post(&service, "/v1/chat/completions", &body);
    assert_eq!(turns(&service), ["[[slow 0.3]]"]);
}

#[test]
fn generate_content() {
    let service = service();
    let schema = json!({ "type": "OBJECT", "properties": { "score": { "type": "INTEGER" } } });
    let said = json!([{ "role": "user", "parts": [{ "text": "<session_context>" }, { "text": "hi" }] }]);
    let body = json!({ "contents": said, "generationConfig": { "responseJsonSchema": schema } });
    let answer = post(&service, "/v1beta/models/small:generateContent", &body);
    assert!(answer.contains(r#"{\"score\":1}"#), "{answer}");
    assert!(turns(&service).is_empty(), "a side question");
    let tools = json!([{ "functionDeclarations": [{ "name": "run_shell_command" }] }]);
    let body = json!({ "contents": said, "tools": tools });
    let answer = post(&service, "/v1beta/models/large:streamGenerateContent?alt=sse", &body);
    assert!(answer.contains("STOP"), "{answer}");
    assert_eq!(turns(&service), ["hi"]);
}

#[test]
fn an_answer_that_nobody_waits_for_is_a_cut() {
    let service = service();
    let body =
        json!({ "stream": true, "tools": [{}], "messages": [{ "role": "user", "content": "[[slow 60]]" }] });
    let mut stream = TcpStream::connect(service.url().trim_start_matches("http://")).unwrap();
    let body = body.to_string();
    write!(stream, "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    assert!(service.wait(Duration::from_secs(10), |record| record.turns.len() == 1));
    drop(stream);
    assert!(service.wait(Duration::from_secs(10), |record| record.cut == 1));
    assert_eq!(service.times("[[slow 60]]"), 1);
}
