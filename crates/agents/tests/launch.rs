//! How an agent is launched, with a conversation of its own, an old one, or a copy.

use wharf_agents::Profiles;
use wharf_model::{Code, Conversation, Text};

/// Without a server that sessions share.
const CODEX: &str = "codex -c features.daemon_auto_start=false";
const FRESH: &str = "01234567-89ab-4def-8123-456789abcdef";

fn launch(
    agent: &str,
    conversation: &Conversation,
    extra: &[&str],
) -> Result<(String, Option<String>), Code> {
    let profile = Profiles::built_in().get(agent).expect(agent);
    let extra: Vec<Text> = extra.iter().map(|word| Text::from(*word)).collect();
    let launch = profile.launch(conversation, &extra, FRESH).map_err(|failure| failure.code)?;
    let words: Vec<_> = launch.argv.iter().map(Text::lossy).collect();
    Ok((words.join(" "), launch.conversation))
}

fn line(agent: &str, conversation: &Conversation, extra: &[&str]) -> String {
    launch(agent, conversation, extra).expect(agent).0
}

#[test]
fn a_new_conversation_gets_its_id_where_the_agent_can() {
    let (line, id) = launch("claude", &Conversation::New, &["--model", "x"]).expect("claude");
    assert_eq!(line, format!("claude --session-id {FRESH} --model x"));
    assert_eq!(id.as_deref(), Some(FRESH));
    assert_eq!(launch("codex", &Conversation::New, &[]), Ok((CODEX.into(), None)));
}

#[test]
fn a_conversation_that_the_sender_chose_is_left_to_him() {
    for extra in [&["--resume", "x"][..], &["-c"], &["--session-id=x"], &["mcp", "list"]] {
        let (line, id) = launch("claude", &Conversation::New, extra).expect("claude");
        assert_eq!(line, format!("claude {}", extra.join(" ")));
        assert_eq!(id, None);
    }
}

#[test]
fn an_old_one_goes_on() {
    let id = || "abc".to_owned();
    assert_eq!(line("claude", &Conversation::Resume(id()), &[]), "claude --resume abc");
    assert_eq!(line("claude", &Conversation::Continue, &[]), "claude --continue");
    assert_eq!(line("codex", &Conversation::Resume(id()), &["-m", "x"]), format!("{CODEX} resume abc -m x"));
    assert_eq!(line("codex", &Conversation::Continue, &[]), format!("{CODEX} resume --last"));
    assert_eq!(line("opencode", &Conversation::Resume(id()), &[]), "opencode --session abc");
    assert_eq!(line("gemini", &Conversation::Continue, &[]), "gemini --resume latest");
    assert_eq!(launch("claude", &Conversation::Resume(id()), &[]).expect("claude").1.as_deref(), Some("abc"));
}

#[test]
fn a_copy_has_an_id_of_its_own() {
    let fork = Conversation::Fork("abc".into());
    let (line, id) = launch("claude", &fork, &[]).expect("claude");
    assert_eq!(line, format!("claude --resume abc --fork-session --session-id {FRESH}"));
    assert_eq!(id.as_deref(), Some(FRESH));
    assert_eq!(launch("codex", &fork, &[]), Ok((format!("{CODEX} fork abc"), None)));
}

#[test]
fn what_an_agent_cannot_is_said() {
    assert_eq!(launch("aider", &Conversation::Resume("x".into()), &[]), Err(Code::Unsupported));
    assert_eq!(launch("generic", &Conversation::New, &[]), Err(Code::Invalid));
    assert_eq!(launch("claude", &Conversation::Resume("--evil".into()), &[]), Err(Code::Invalid));
    assert_eq!(launch("claude", &Conversation::Resume(String::new()), &[]), Err(Code::Invalid));
}
