//! Loading: what comes with Wharf, what a user adds, what a project changes.

use std::fs;
use std::path::Path;

use wharf_agents::Profiles;
use wharf_model::{Code, Failure, Text};

fn put(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().expect("parent")).expect("dirs");
    fs::write(path, text).expect("write");
}

fn user(text: &str) -> Result<Profiles, Failure> {
    let dir = tempfile::tempdir().expect("tempdir");
    put(dir.path(), "profiles/mine.toml", text);
    Profiles::load(Some(dir.path()), None)
}

fn project(text: &str) -> Result<Profiles, Failure> {
    let dir = tempfile::tempdir().expect("tempdir");
    put(dir.path(), "wharf.toml", text);
    fs::create_dir_all(dir.path().join("deep/inside")).expect("dirs");
    Profiles::load(None, Some(&dir.path().join("deep/inside")))
}

fn argv(line: &str) -> Vec<Text> {
    line.split(' ').map(Text::from).collect()
}

#[test]
fn those_that_come_with_wharf() {
    let profiles = Profiles::built_in();
    let names: Vec<&str> = profiles.names().collect();
    assert_eq!(
        names,
        ["aider", "claude", "codex", "gemini", "generic", "node", "opencode", "python", "shell"]
    );
    for profile in profiles.iter() {
        assert!(!profile.title.is_empty(), "{}", profile.name);
        assert!(
            profile.env.strips("CLAUDECODE"),
            "{}: the generic profile is under every other",
            profile.name
        );
        assert!(profile.rules.contains_key("status-idle"), "{}", profile.name);
    }
    assert!(!profiles.get("claude").expect("claude").env.strips("CLAUDE_CODE_USE_BEDROCK"));
}

#[test]
fn a_command_line_finds_its_profile() {
    let profiles = Profiles::built_in();
    for (line, name) in [
        ("codex --yolo", "codex"),
        ("/opt/bin/claude -p hi", "claude"),
        ("npx @openai/codex", "codex"),
        ("npx -y @google/gemini-cli@latest", "gemini"),
        ("node /x/bin/claude", "claude"),
        ("node /x/bundle/gemini.js", "gemini"),
        ("env FOO=1 codex", "codex"),
        ("uvx aider-chat", "aider"),
        ("bunx opencode-ai", "opencode"),
        ("bash -l", "shell"),
        ("-zsh", "shell"),
        ("node", "node"),
        ("node server.js", "node"),
        ("python3", "python"),
        ("vim claude", "generic"),
        ("", "generic"),
    ] {
        assert_eq!(profiles.for_argv(&argv(line)).name, name, "{line}");
        assert_eq!(Profiles::is_known_agent(&argv(line)), profiles.for_argv(&argv(line)).attend, "{line}");
    }
    assert_eq!(profiles.for_argv(&[]).name, "generic");
}

#[test]
fn an_agent_is_known_without_reading_its_profile() {
    for profile in Profiles::built_in().iter() {
        for program in &profile.programs {
            assert_eq!(Profiles::is_known_agent(&argv(program)), profile.attend, "{program}");
        }
    }
    assert!(!Profiles::is_known_agent(&argv("some-program")));
    assert!(!Profiles::is_known_agent(&[]));
}

#[test]
fn a_user_adds_one_and_builds_it_on_another() {
    let profiles =
        user("base = \"codex\"\ntitle = \"Mine\"\nprograms = [\"my-codex\"]\n[keys]\ninterrupt = [\"C-c\"]")
            .expect("loads");
    let mine = profiles.for_argv(&argv("my-codex"));
    assert_eq!((mine.name.as_str(), mine.title.as_str()), ("mine", "Mine"));
    assert_eq!(mine.keys.interrupt, ["C-c"]);
    assert!(mine.questions.contains_key("permission"), "from codex");
    assert_eq!(profiles.for_argv(&argv("codex")).name, "codex", "whose own it stays");
    assert_eq!(profiles.get("codex").expect("codex").keys.interrupt, ["Escape"]);
}

#[test]
fn a_user_changes_one_that_comes_with_wharf() {
    let profiles =
        user("name = \"claude\"\n[rule.input-box]\noff = true\nstate = \"idle\"\nin = \"composer\"")
            .expect("loads");
    let claude = profiles.get("claude").expect("claude");
    assert!(claude.rules["input-box"].off);
    assert_eq!(claude.title, "Claude Code", "the rest stays");
}

#[test]
fn a_project_changes_one_for_itself() {
    let profiles = project("[agents.claude]\nkeys.newline = \"M-Enter\"\n[other]\nx = 1").expect("loads");
    assert_eq!(profiles.get("claude").expect("claude").keys.newline.as_deref(), Some("M-Enter"));
}

#[test]
fn a_project_decides_neither_programs_nor_files() {
    for text in [
        "[agents.claude]\nlaunch.argv = [\"evil\"]",
        "[agents.claude]\nlaunch.args = [\"--dangerously-skip-permissions\"]",
        "[agents.claude.env.set]\nLD_PRELOAD = \"evil.so\"",
        "[agents.claude]\nprograms = [\"ls\"]",
        "[agents.claude.hooks]\nfile = \"~/.bashrc\"\nstyle = \"file\"\ncontents = \"evil\"",
    ] {
        let failure = project(text).expect_err(text);
        assert_eq!(failure.code, Code::Forbidden, "{text}");
        assert!(failure.message.contains("wharf.toml"), "{failure}");
        assert!(failure.hint.is_some());
    }
}

#[test]
fn a_bad_profile_says_where_it_is_bad() {
    for (text, line, word) in [
        ("title = 1", 1, "string"),
        ("title = \"x\"\n\n[rule.a]\nstate = \"idle\"\nin = \"screen\"\nmatch = '['", 6, "bad pattern"),
        ("title = \"x\"\nnonsense = 1", 2, "nonsense"),
        ("[rule.a]\nstate = \"sleeping\"\nin = \"screen\"", 2, "sleeping"),
        ("[rule.a]\nstate = \"idle\"\nin = \"screen\"\nregion = \"middle\"", 4, "no region"),
        ("a = \"", 1, "string"),
    ] {
        let failure = user(text).expect_err(text);
        assert_eq!(failure.code, Code::Invalid);
        assert!(failure.message.contains(&format!("mine.toml, line {line}: ")), "{failure}");
        assert!(failure.message.contains(word), "{failure}");
        assert!(failure.hint.is_some());
    }
    let failure = user("[keys]\nsubmit = \"Entre\"").expect_err("no key");
    assert!(failure.message.contains("\"Entre\" names no key"), "{failure}");
    let failure = user("base = \"nobody\"").expect_err("no base");
    assert!(failure.message.contains("nobody"), "{failure}");
    let failure = user("base = \"mine\"").expect_err("a circle");
    assert!(failure.message.contains("circle"), "{failure}");
    let failure = Profiles::built_in().named("clude").expect_err("no such agent");
    assert_eq!(failure.code, Code::NotFound);
    assert!(failure.hint.expect("hint").contains("claude"));
}
