//! Hooks go into an agent's settings and come out again, and nothing else of them changes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use wharf_agents::{Profile, Profiles, hooks};
use wharf_model::{Code, Text};

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("tempdir"))
    }

    fn path(&self, file: &str) -> PathBuf {
        // The system's directory for such things may be a link.
        self.0.path().canonicalize().expect("path").join(file)
    }

    fn lookup(&self) -> impl Fn(&str) -> Option<String> + use<> {
        let home = self.0.path().display().to_string();
        move |name| (name == "HOME").then(|| home.clone())
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("parent")).expect("dirs");
        fs::write(path, text).expect("write");
    }

    fn get(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect(file)
    }
}

fn profile(name: &str) -> Arc<Profile> {
    Profiles::built_in().get(name).expect(name)
}

fn command(agent: &str) -> Vec<String> {
    ["/opt/a b/wharf", "hook", agent].map(str::to_owned).to_vec()
}

#[test]
fn into_a_file_and_out_again() {
    let mine = "{\n    \"model\": \"opus\",\n    \"n\": 1.50,\n    \"hooks\": {\n        \"Stop\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }]\n    }\n}\n";
    for (agent, file) in [("claude", ".claude/settings.json"), ("gemini", ".gemini/settings.json")] {
        let (home, profile) = (Home::new(), profile(agent));
        home.put(file, mine);
        assert!(!hooks::status(&profile, &home.lookup()).expect("status").installed);
        let done = hooks::install(&profile, &home.lookup(), &command(agent)).expect("install");
        assert!(done.changed && done.installed);
        assert_eq!(done.file, home.path(file));
        let settings: Value = serde_json::from_str(&home.get(file)).expect("json");
        let events = settings["hooks"].as_object().expect("hooks");
        let wanted = &profile.hooks.as_ref().expect("rules").events;
        assert!(wanted.iter().all(|event| events.contains_key(&event.name)), "{settings:#}");
        assert!(home.get(file).contains(&format!("'/opt/a b/wharf' hook {agent}")), "{settings:#}");
        assert!(home.get(file).contains("say done"));
        assert!(hooks::status(&profile, &home.lookup()).expect("status").installed);
        let again = hooks::install(&profile, &home.lookup(), &command(agent)).expect("again");
        assert!(!again.changed, "twice is once");
        let gone = hooks::remove(&profile, &home.lookup()).expect("remove");
        assert!(gone.changed && !gone.installed);
        assert_eq!(home.get(file), mine, "to the byte");
        assert!(!hooks::remove(&profile, &home.lookup()).expect("remove").changed);
    }
}

#[test]
fn claude_is_given_only_names_that_it_knows() {
    const KNOWN_EVENTS: [&str; 8] = [
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PermissionRequest",
        "Notification",
        "Stop",
    ];
    let events = &profile("claude").hooks.as_ref().expect("rules").events.clone();
    assert!(events.iter().all(|event| KNOWN_EVENTS.contains(&event.name.as_str())), "{events:?}");
}

#[test]
fn codex_has_one_program_to_call() {
    let (home, codex) = (Home::new(), profile("codex"));
    home.put(".codex/config.toml", "# mine\nmodel = \"x\"\n\n[projects.\"/a\"]\ntrust_level = \"trusted\"\n");
    let before = home.get(".codex/config.toml");
    hooks::install(&codex, &home.lookup(), &command("codex")).expect("install");
    let table: toml::Table = toml::from_str(&home.get(".codex/config.toml")).expect("toml");
    assert_eq!(table["notify"][0].as_str(), Some("/opt/a b/wharf"));
    hooks::remove(&codex, &home.lookup()).expect("remove");
    assert_eq!(home.get(".codex/config.toml"), before);

    home.put(".codex/config.toml", "notify = [\"mine\"]\n");
    let failure = hooks::install(&codex, &home.lookup(), &command("codex")).expect_err("taken");
    assert_eq!(failure.code, Code::Refused);
    assert!(failure.message.contains("mine"), "{failure}");
    assert_eq!(home.get(".codex/config.toml"), "notify = [\"mine\"]\n");
}

#[test]
fn a_file_that_does_not_parse_is_left_alone() {
    let home = Home::new();
    home.put(".claude/settings.json", "{ // mine\n}");
    for done in [
        hooks::install(&profile("claude"), &home.lookup(), &command("claude")),
        hooks::remove(&profile("claude"), &home.lookup()),
    ] {
        let failure = done.expect_err("broken");
        assert_eq!(failure.code, Code::Invalid);
        assert!(failure.message.contains("settings.json"), "{failure}");
    }
    assert_eq!(home.get(".claude/settings.json"), "{ // mine\n}");
}

#[test]
fn settings_that_a_session_can_write_lead_nowhere_else() {
    let home = Home::new();
    home.put("precious", "precious");
    home.put(".claude/settings.json", "{}");
    // The names that a session can guess for a new text, while it is not yet in its place.
    let beside = format!(".claude/.settings.json.wharf-{}", std::process::id());
    std::os::unix::fs::symlink(home.path("precious"), home.path(&beside)).expect("link");
    hooks::install(&profile("claude"), &home.lookup(), &command("claude")).expect("install");
    assert_eq!(home.get("precious"), "precious", "a planted link is not written through");
    let settings = home.path(".claude/settings.json");
    assert!(home.get(".claude/settings.json").contains("wharf"));
    fs::remove_file(&settings).expect("remove");
    assert!(std::process::Command::new("mkfifo").arg(&settings).status().expect("mkfifo").success());
    let (done, answer) = std::sync::mpsc::channel();
    let lookup = home.lookup();
    std::thread::spawn(move || done.send(hooks::status(&profile("claude"), &lookup)));
    let answer = answer.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for ever");
    assert!(answer.is_err(), "{answer:?}");
    fs::remove_file(&settings).expect("remove");
    std::os::unix::fs::symlink("/dev/zero", &settings).expect("link");
    hooks::status(&profile("claude"), &home.lookup()).expect_err("a device is no text");
}

#[test]
fn links_and_permissions_stay() {
    let (home, claude) = (Home::new(), profile("claude"));
    home.put("dotfiles/claude.json", "{}\n");
    fs::set_permissions(home.path("dotfiles/claude.json"), fs::Permissions::from_mode(0o600)).expect("mode");
    fs::create_dir_all(home.path(".claude")).expect("dir");
    symlink(home.path("dotfiles/claude.json"), home.path(".claude/settings.json")).expect("link");
    hooks::install(&claude, &home.lookup(), &command("claude")).expect("install");
    assert!(fs::symlink_metadata(home.path(".claude/settings.json")).expect("link").is_symlink());
    let mode = fs::metadata(home.path("dotfiles/claude.json")).expect("file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(home.get("dotfiles/claude.json").contains("hook claude"));
    let left: Vec<_> = fs::read_dir(home.path("dotfiles")).expect("dir").collect();
    assert_eq!(left.len(), 1, "nothing is left beside it");
}

#[test]
fn a_variable_says_where_the_settings_are() {
    let home = Home::new();
    let place = home.path("elsewhere");
    let lookup = move |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| place.display().to_string());
    let done = hooks::install(&profile("claude"), &lookup, &command("claude")).expect("install");
    assert_eq!(done.file, home.path("elsewhere/settings.json"));
    let failure = hooks::install(&profile("claude"), &|_| None, &command("claude")).expect_err("nowhere");
    assert_eq!(failure.code, Code::Invalid);
    let failure = hooks::status(&profile("aider"), &home.lookup()).expect_err("none");
    assert_eq!(failure.code, Code::Unsupported);
}

#[test]
fn a_session_gets_hooks_by_arguments() {
    let claude = profile("claude");
    let words = claude.session_hooks(&command("claude"), &[]);
    assert_eq!(words[0], "--settings");
    let settings: Value = serde_json::from_str(&words[1]).expect("json");
    assert_eq!(settings["hooks"]["Stop"][0]["hooks"][0]["command"], "'/opt/a b/wharf' hook claude");
    for extra in [&["--settings", "mine.json"][..], &["--settings={}"], &["mcp", "list"]] {
        let extra: Vec<Text> = extra.iter().map(|word| Text::from(*word)).collect();
        assert!(claude.session_hooks(&command("claude"), &extra).is_empty(), "{extra:?}");
    }
    assert!(profile("codex").session_hooks(&command("codex"), &[]).is_empty());
}

#[test]
fn opencode_gets_a_file_of_its_own() {
    let (home, opencode) = (Home::new(), profile("opencode"));
    let file = ".config/opencode/plugin/wharf.js";
    hooks::install(&opencode, &home.lookup(), &command("opencode")).expect("install");
    assert!(home.get(file).contains(r#"const command = ["/opt/a b/wharf","hook","opencode"]"#));
    assert!(!hooks::install(&opencode, &home.lookup(), &command("opencode")).expect("again").changed);
    assert!(hooks::remove(&opencode, &home.lookup()).expect("remove").changed);
    assert!(!home.path(file).exists());
    home.put(file, "export const Mine = 1");
    let failure = hooks::install(&opencode, &home.lookup(), &command("opencode")).expect_err("another's");
    assert_eq!(failure.code, Code::Refused);
    assert!(!hooks::remove(&opencode, &home.lookup()).expect("remove").changed);
    assert_eq!(home.get(file), "export const Mine = 1");
}
