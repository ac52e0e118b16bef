//! What the real programs write on disk, read as it grows. The samples were written by them, and cut.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use wharf_agents::{AgentTranscript, Profile, Profiles, Told, hooks};

const ID: &str = "11111111-2222-4333-8444-555555555555";

/// A home directory, and the place of one transcript in it.
struct Home {
    dir: TempDir,
    profile: Arc<Profile>,
    file: PathBuf,
}

impl Home {
    fn new(agent: &str, file: &str) -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = dir.path().join(file);
        fs::create_dir_all(file.parent().expect("parent")).expect("dirs");
        Self { profile: Profiles::built_in().get(agent).expect(agent), dir, file }
    }

    fn watch(&self, conversation: Option<&str>, since: SystemTime) -> AgentTranscript {
        self.watch_in("/project", conversation, since)
    }

    fn watch_in(&self, dir: &str, conversation: Option<&str>, since: SystemTime) -> AgentTranscript {
        let home = self.dir.path().display().to_string();
        let lookup = move |name: &str| (name == "HOME").then(|| home.clone());
        AgentTranscript::watch(&self.profile, &lookup, Path::new(dir), conversation, since)
            .expect("a transcript")
    }

    fn append(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file).expect("open");
        file.write_all(bytes).expect("write");
    }
}

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Polls until nothing is missing: a new file is looked for now and then, not at every call.
fn poll_until(transcript: &mut AgentTranscript, count: usize) -> Vec<Told> {
    let deadline = SystemTime::now() + Duration::from_secs(10);
    let mut told = transcript.poll();
    while told.len() < count {
        assert!(SystemTime::now() < deadline, "only {told:#?}");
        std::thread::yield_now();
        told.extend(transcript.poll());
    }
    told
}

/// A line for each fact that matters to a sender.
fn lines(told: &[Told]) -> Vec<String> {
    told.iter()
        .filter(|told| told.kind != "usage")
        .map(|told| {
            let text = told.prompt().or_else(|| told.answer()).or_else(|| told.data["reason"].as_str());
            let name = told.data["name"].as_str().filter(|_| told.kind.starts_with("tool")).or(text);
            let name: String = name.unwrap_or_default().chars().take(30).collect();
            let state = told.state.map_or(String::new(), |state| format!(" [{}]", state.as_str()));
            format!("{} {}{state}", told.kind, name.trim()).trim().replace("  ", " ")
        })
        .collect()
}

#[test]
fn claude_writes_every_turn() {
    let home = Home::new("claude", &format!(".claude/projects/-project/{ID}.jsonl"));
    let mut transcript = home.watch(Some(ID), SystemTime::UNIX_EPOCH);
    assert_eq!(transcript.poll(), []);
    home.append(&sample("claude.jsonl"));
    let told = poll_until(&mut transcript, 15);
    assert_eq!(
        lines(&told),
        [
            "turn.started hello one [working]",
            "assistant OK 1",
            "turn.ended [idle]",
            "turn.started run it [[tool touch granted-1] [working]",
            "tool.started Bash",
            "tool.ended",
            "assistant OK 2",
            "turn.ended [idle]",
            "turn.started long [[slow 20]] go [working]",
            "message.queued queued one",
            "assistant word1 word2 word3 word4 word5",
            "turn.ended [Request interrupted by user] [idle]",
            "turn.started queued one [working]",
            "assistant OK 4",
            "turn.ended [idle]",
        ]
    );
    assert_eq!(transcript.conversation(), Some(ID));
    assert_eq!(transcript.poll(), [], "once");
}

#[test]
fn codex_writes_every_turn() {
    let home = Home::new("codex", ".codex/sessions/2026/11/15/rollout-2026-11-15T13-05-02-x.jsonl");
    let mut transcript = home.watch(None, SystemTime::UNIX_EPOCH);
    home.append(&sample("codex.jsonl"));
    let told = poll_until(&mut transcript, 10);
    assert_eq!(
        lines(&told),
        [
            "turn.started hello one [working]",
            "assistant OK 1",
            "turn.ended OK 1 [idle]",
            "turn.started run it [[tool touch granted-1] [working]",
            "tool.started exec_command",
            "tool.ended",
            "assistant OK 2",
            "turn.ended OK 2 [idle]",
            "turn.started long [[slow 20]] go [working]",
            "turn.ended interrupted [idle]",
        ]
    );
    assert!(told.iter().any(|told| told.kind == "usage" && told.data["tokens"]["output_tokens"] == 5));
    assert!(transcript.conversation().expect("an id").starts_with("01a1df4f"));
}

#[test]
fn gemini_writes_every_turn() {
    let home = Home::new("gemini", ".gemini/tmp/project/chats/session-2026-11-15T13-04-ef0ff038.jsonl");
    fs::write(home.dir.path().join(".gemini/tmp/project/.project_root"), "/project").expect("root");
    let mut transcript = home.watch(None, SystemTime::UNIX_EPOCH);
    home.append(&sample("gemini.jsonl"));
    let told = poll_until(&mut transcript, 9);
    assert_eq!(
        lines(&told),
        [
            "turn.started hello one [working]",
            "assistant OK 1",
            "turn.started run it [[tool touch granted-1] [working]",
            "tool.started run_shell_command",
            "tool.ended run_shell_command",
            "assistant OK 2",
            "turn.started long [[slow 20]] go [working]",
            "turn.ended Request cancelled. [idle]",
        ]
    );
    // One of another project is another session's.
    let mut other = home.watch_in("/elsewhere", None, SystemTime::UNIX_EPOCH);
    assert_eq!(other.poll(), []);
}

#[test]
fn opencode_keeps_a_list_of_prompts() {
    let home = Home::new("opencode", ".local/state/opencode/prompt-history.jsonl");
    let entry = |text: &str| format!("{{\"input\":\"{text}\",\"parts\":[],\"mode\":\"normal\"}}\n");
    home.append((entry("old") + &entry("older")).as_bytes());
    let mut transcript = home.watch(None, SystemTime::now());
    assert_eq!(transcript.poll(), [], "what was there is not new");
    home.append(entry("first").as_bytes());
    assert_eq!(lines(&poll_until(&mut transcript, 1)), ["turn.started first"]);
    // Written anew, without its first entries: only the last is new, though the same text stood there before.
    fs::write(&home.file, entry("first") + &entry("old")).expect("write");
    assert_eq!(lines(&poll_until(&mut transcript, 1)), ["turn.started old"]);
    let pasted = "{\"input\":\"[Pasted ~2 lines] \",\"parts\":[{\"type\":\"text\",\"text\":\"a\\nb\"}],\"mode\":\"normal\"}\n";
    home.append(pasted.as_bytes());
    assert_eq!(poll_until(&mut transcript, 1)[0].prompt(), Some("a\nb"), "the text, not the word for it");
}

#[test]
fn any_pieces_give_the_same_facts() {
    let whole = sample("claude.jsonl");
    let home = Home::new("claude", &format!(".claude/projects/-project/{ID}.jsonl"));
    File::create(&home.file).expect("create");
    let mut transcript = home.watch(None, SystemTime::UNIX_EPOCH);
    let mut told = Vec::new();
    for piece in whole.chunks(97) {
        home.append(piece);
        told.extend(transcript.poll());
    }
    told.extend(transcript.poll());
    assert_eq!(lines(&told).len(), 15, "{:#?}", lines(&told));
}

#[test]
fn what_is_older_or_of_another_directory_is_left_out() {
    let home = Home::new("claude", &format!(".claude/projects/-project/{ID}.jsonl"));
    home.append(&sample("claude.jsonl"));
    let mut elsewhere = home.watch_in("/elsewhere", None, SystemTime::UNIX_EPOCH);
    assert_eq!(elsewhere.poll(), []);
    // Between the second turn's end and the third's start.
    let time: SystemTime = "2026-11-15T13:05:45Z".parse::<jiff::Timestamp>().expect("time").into();
    let mut later = home.watch(None, time);
    let told = later.poll();
    assert_eq!(lines(&told)[0], "turn.started long [[slow 20]] go [working]");
}

#[test]
fn broken_lines_cost_only_themselves() {
    let home = Home::new("claude", &format!(".claude/projects/-project/{ID}.jsonl"));
    let mut transcript = home.watch(Some(ID), SystemTime::UNIX_EPOCH);
    home.append(b"not json\n\n{\"half\": \n[1,2]\n\"x\"\n{\"type\":\"user\",\"cwd\":5}\n\xff\xfe\n");
    home.append(&sample("claude.jsonl"));
    assert_eq!(lines(&poll_until(&mut transcript, 15)).len(), 15);
}

fn hooked(agent: &str) -> Vec<Told> {
    let profile = Profiles::built_in().get(agent).expect(agent);
    let text = String::from_utf8(sample(&format!("{agent}-hooks.jsonl"))).expect("text");
    let payloads = text.lines().map(|line| serde_json::from_str(line).expect("json"));
    payloads.flat_map(|payload| hooks::translate(&profile, &payload)).collect()
}

#[test]
fn claude_calls_its_hooks() {
    let told = hooked("claude");
    assert_eq!(
        lines(&told),
        [
            "session.started",
            "turn.started hello one [working]",
            "turn.ended OK 1 [idle]",
            "turn.started run it [[tool touch granted-1] [working]",
            "tool.started Bash [working]",
            "permission.asked [asking]",
            "tool.ended Bash [working]",
            "turn.ended OK 2 [idle]",
            "turn.started long [[slow 20]] go [working]",
            "turn.started queued one [working]",
            "turn.ended OK 4 [idle]",
        ]
    );
    assert_eq!(told[0].conversation(), Some(ID));
    assert_eq!(told[5].data["input"]["command"], "touch granted-1");
    let profile = Profiles::built_in().get("claude").expect("claude");
    let other = hooks::translate(&profile, &serde_json::json!({ "hook_event_name": "New" }));
    assert_eq!(other[0].kind, "other");
}

#[test]
fn gemini_calls_its_hooks() {
    assert_eq!(
        lines(&hooked("gemini")),
        [
            "session.started",
            "turn.started hooked [working]",
            "turn.ended OK 1 1 [idle]",
            "turn.started run it [[tool touch granted-3] [working]",
            "tool.started run_shell_command [working]",
            "permission.asked [asking]",
            "tool.ended run_shell_command [working]",
            "turn.ended OK 2 2 [idle]",
        ]
    );
}

#[test]
fn opencode_calls_its_plugin() {
    assert_eq!(
        lines(&hooked("opencode")),
        [
            "session.started",
            "turn.started run it [[tool touch granted-3] [working]",
            "permission.asked [asking]",
            "permission.answered [working]",
            "tool.ended bash",
            "assistant OK 1",
            "turn.ended [idle]",
        ]
    );
}
