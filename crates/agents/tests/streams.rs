//! Streams of JSON that agents print when they run without a terminal.

use std::sync::LazyLock;

use proptest::prelude::*;
use wharf_agents::{Profiles, StreamJson, Told};
use wharf_model::{State, Text};

const CLAUDE: &str = r#"{"type":"system","subtype":"init","session_id":"abc","model":"m","tools":[]}
{"type":"assistant","message":{"content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3}},"session_id":"abc"}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a\nb","is_error":false}]}}
{"type":"new_kind","x":1}
warning: not json

{"type":"assistant","message":{"content":[{"type":"text","text":"Two files."}]}}
{"type":"result","subtype":"success","is_error":false,"result":"Two files.","num_turns":2,"duration_ms":10,"total_cost_usd":0.5,"usage":{"output_tokens":7}}
"#;

const CODEX: &str = r#"{"type":"thread.started","thread_id":"xyz"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"i0","type":"command_execution","command":"ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"i0","type":"command_execution","command":"ls","aggregated_output":"a","status":"completed"}}
{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"One file."}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2}}
"#;

static PROFILES: LazyLock<Profiles> = LazyLock::new(Profiles::built_in);

fn stream(agent: &str) -> StreamJson {
    StreamJson::new(PROFILES.get(agent).expect(agent))
}

fn kinds(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.kind.as_str()).collect()
}

#[test]
fn claude_tells_everything() {
    let told = stream("claude").feed(CLAUDE.as_bytes());
    assert_eq!(
        kinds(&told),
        [
            "session.started",
            "assistant",
            "tool.started",
            "tool.ended",
            "other",
            "other",
            "assistant",
            "turn.ended",
            "usage",
        ]
    );
    assert_eq!(told[0].conversation(), Some("abc"));
    assert_eq!(told[2].data["input"]["command"], "ls");
    assert_eq!(told[3].data["output"], "a\nb");
    assert_eq!(told[4].data["x"], 1, "an unknown kind is kept whole");
    assert_eq!(told[5].data["text"], "warning: not json");
    assert_eq!(told[7].answer(), Some("Two files."));
    assert_eq!(told[7].state, Some(State::Idle));
    assert_eq!(told[8].data["cost"], 0.5);
}

#[test]
fn codex_tells_everything() {
    let told = stream("codex").feed(CODEX.as_bytes());
    assert_eq!(
        kinds(&told),
        ["session.started", "turn.started", "tool.started", "tool.ended", "assistant", "turn.ended", "usage"]
    );
    assert_eq!(told[4].answer(), Some("One file."));
}

#[test]
fn a_last_line_without_an_end_counts() {
    let mut stream = stream("codex");
    assert_eq!(stream.feed(CODEX.trim_end().as_bytes()).len(), 5);
    assert_eq!(kinds(&stream.finish()), ["turn.ended", "usage"]);
    assert!(stream.finish().is_empty());
}

#[test]
fn a_line_of_megabytes_is_cut_and_said() {
    let text = "x".repeat(5 << 20);
    let line = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n{CODEX}"
    );
    let told = stream("claude").feed(line.as_bytes());
    assert_eq!(told[0].kind, "assistant");
    assert_eq!(told[0].data["cut"], 4 << 20);
    assert_eq!(told[0].answer().map(str::len), Some(1 << 20));
    assert_eq!(told.len(), 7, "what follows is not lost");
}

#[test]
fn a_command_line_says_whether_there_is_a_stream() {
    let profiles = Profiles::built_in();
    let streams = |line: &str| {
        let argv: Vec<Text> = line.split(' ').map(Text::from).collect();
        profiles.for_argv(&argv).streams(&argv)
    };
    assert!(streams("claude -p hi --output-format stream-json --verbose"));
    assert!(streams("claude -p hi --output-format=stream-json"));
    assert!(streams("codex exec --json hi"));
    assert!(!streams("claude -p hi"));
    assert!(!streams("ls --json"));
}

proptest! {
    #[test]
    fn any_pieces_give_the_same_facts(cuts in proptest::collection::vec(0..CLAUDE.len(), 0..20)) {
        let whole = stream("claude").feed(CLAUDE.as_bytes());
        let mut cuts = cuts;
        cuts.extend([0, CLAUDE.len()]);
        cuts.sort_unstable();
        let mut stream = stream("claude");
        let told: Vec<Told> =
            cuts.windows(2).flat_map(|cut| stream.feed(&CLAUDE.as_bytes()[cut[0]..cut[1]])).collect();
        prop_assert_eq!(told, whole);
    }

    #[test]
    fn no_bytes_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut stream = stream("claude");
        stream.feed(&bytes);
        stream.feed(b"\n");
        prop_assert_eq!(stream.feed(CODEX.as_bytes()).len(), 6);
    }
}
