//! The protocols that agents speak. Each reads a request as [`Asked`] and writes a [`Plan`] in its own shape.

mod anthropic;
mod chat;
mod gemini;
mod plan;
mod responses;

use std::io;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::http::{self, Request};
use super::server::Shared;
use super::stream::Events;

use self::plan::{Asked, Plan};

/// One protocol.
struct Dialect {
    name: &'static str,
    /// What a request says.
    read: fn(&Value) -> Asked,
    /// A streamed answer.
    stream: fn(&mut Events<'_>, &Plan) -> io::Result<()>,
    /// An answer in one piece.
    whole: fn(&Plan) -> Value,
}

const ANTHROPIC: Dialect =
    Dialect { name: "anthropic", read: anthropic::read, stream: anthropic::stream, whole: anthropic::whole };
const RESPONSES: Dialect =
    Dialect { name: "responses", read: responses::read, stream: responses::stream, whole: responses::whole };
const CHAT: Dialect = Dialect { name: "chat", read: chat::read, stream: chat::stream, whole: chat::whole };
const GEMINI: Dialect =
    Dialect { name: "gemini", read: gemini::read, stream: gemini::stream, whole: gemini::whole };

/// Answers one request.
pub(super) fn serve(stream: &TcpStream, shared: &Shared, request: &Request) -> io::Result<()> {
    let path = request.path.split('?').next().unwrap_or_default();
    let body = || serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let fixed = |value: Value| http::answer(stream, "200 OK", "application/json", &value.to_string());
    if path.ends_with("/messages/count_tokens") {
        return fixed(json!({ "input_tokens": 10 }));
    }
    if path.ends_with(":countTokens") {
        return fixed(json!({ "totalTokens": 10 }));
    }
    if request.method == "GET" && path.ends_with("/models") {
        return fixed(json!({ "object": "list", "data": [], "models": [] }));
    }
    let body = body();
    let asked_to_stream = body["stream"].as_bool() == Some(true);
    if path.ends_with("/v1/messages") {
        converse(&ANTHROPIC, stream, shared, &body, asked_to_stream)
    } else if path.ends_with("/responses") {
        converse(&RESPONSES, stream, shared, &body, asked_to_stream)
    } else if path.ends_with("/chat/completions") {
        converse(&CHAT, stream, shared, &body, asked_to_stream)
    } else if path.ends_with(":streamGenerateContent") {
        converse(&GEMINI, stream, shared, &body, true)
    } else if path.ends_with(":generateContent") {
        converse(&GEMINI, stream, shared, &body, false)
    } else {
        http::answer(
            stream,
            "404 Not Found",
            "application/json",
            r#"{"error":{"message":"no such thing here"}}"#,
        )
    }
}

fn converse(
    dialect: &Dialect,
    stream: &TcpStream,
    shared: &Shared,
    body: &Value,
    streams: bool,
) -> io::Result<()> {
    let asked = (dialect.read)(body);
    let plan = {
        let mut record = shared.record();
        if asked.side {
            record.side(dialect.name);
        } else {
            record.users(dialect.name, &asked.users);
            record.results(dialect.name, &asked.results);
        }
        Plan { id: shared.number(), ..Plan::of(&asked, record.turns.len()) }
    };
    if !streams {
        return http::answer(stream, "200 OK", "application/json", &(dialect.whole)(&plan).to_string());
    }
    http::begin_events(stream)?;
    let mut events = Events { to: stream, ended: &shared.ended };
    let told = (dialect.stream)(&mut events, &plan);
    if told.is_err() && !asked.side {
        shared.record().cut(dialect.name);
    }
    told
}
