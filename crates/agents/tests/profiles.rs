//! Loading: what comes with Wharf, what a user adds, what a project changes.

use std::fs;
use std::path::Path;

use wharf_agents::{Look, Profiles, ProjectFile, PromptWay};
use wharf_model::{Code, Failure, Ignored, Text};

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

/// What a project's file makes of the profiles, and what of it is ignored.
fn project(text: &str, trusted: bool) -> (Profiles, Vec<Ignored>) {
    let dir = tempfile::tempdir().expect("tempdir");
    put(dir.path(), "wharf.toml", text);
    fs::create_dir(dir.path().join(".git")).expect("a repository");
    fs::create_dir_all(dir.path().join("deep/inside")).expect("dirs");
    let file = ProjectFile::find(&dir.path().join("deep/inside"), None).expect("there").expect("ours");
    let project = Profiles::consider(None, &file, trusted).expect("considered");
    assert_eq!((project.trusted, &project.sha256), (trusted, &file.sha256));
    (Profiles::load(None, Some(&project)).expect("loads"), project.ignored)
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
        [
            "aider", "claude", "codex", "gdb", "gemini", "generic", "node", "opencode", "psql", "python",
            "shell", "sqlite"
        ]
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
fn every_agent_takes_a_prompt_as_its_first_message() {
    for name in ["aider", "claude", "codex", "gemini", "opencode"] {
        let agent = Profiles::built_in().get(name).expect(name);
        assert_eq!(agent.launch.prompt, Some(PromptWay::Message), "{name}");
    }
    for name in ["generic", "node", "python", "shell"] {
        let prompt = Profiles::built_in().get(name).and_then(|profile| profile.launch.prompt);
        assert_eq!(prompt, None, "{name} has no conversation to begin");
    }
}

#[test]
fn claude_is_told_to_go_on_after_a_failed_turn_and_can_be_compacted() {
    let retry = &Profiles::built_in().get("claude").expect("claude").retry;
    assert_eq!(retry.compact.as_deref(), Some("/compact"));
    assert_eq!(retry.text, "The last turn failed before it was done. Go on where it stopped.");
    let failed = retry.failed.as_ref().expect("it knows a failed turn");
    for row in ["● API Error: 529 overloaded", "  ⎿ Context limit reached · /compact", "Prompt is too long"]
    {
        assert!(failed.is_match(row), "{row}");
    }
    assert!(!failed.is_match("● The API answers with an error"));
}

#[test]
fn only_codexs_update_is_answered_at_the_start_and_by_skipping_it() {
    let profiles = Profiles::built_in();
    let declared: Vec<(&str, &str)> = profiles
        .iter()
        .flat_map(|profile| profile.questions.iter().map(move |(name, asked)| (profile, name, asked)))
        .filter(|(_, _, asked)| asked.answer.is_some())
        .map(|(profile, name, _)| (profile.name.as_str(), name.as_str()))
        .collect();
    assert_eq!(declared, [("codex", "update")]);
    let update = &profiles.get("codex").expect("codex").questions["update"];
    let answer = update.answer.as_ref().expect("a choice is declared");
    assert!(update.startup && answer.is_match("Skip"));
    for other in ["Update now", "Skip until next version", "Yes", "Trust this folder"] {
        assert!(!answer.is_match(other), "{other}");
    }
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
        ("node server.js", "generic"),
        ("python3", "python"),
        ("python3 -q", "python"),
        ("python3 script.py", "generic"),
        ("python3 -m module", "generic"),
        ("env python3 x.py", "generic"),
        ("python3 -m IPython", "python"),
        ("python3 -m aider", "aider"),
        ("python3 node.py", "generic"),
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
fn a_trusted_project_changes_one_for_itself() {
    let text = "[agents.claude]\nkeys.newline = \"M-Enter\"\n[other]\nx = 1";
    let newline = |profiles: &Profiles| profiles.get("claude").expect("claude").keys.newline.clone();
    let (profiles, ignored) = project(text, true);
    assert_eq!((newline(&profiles).as_deref(), ignored), (Some("M-Enter"), Vec::new()));
    let (profiles, ignored) = project(text, false);
    assert_eq!(newline(&profiles), newline(&Profiles::built_in()));
    assert_eq!(ignored[0].setting, "agents.claude.keys.newline");
    assert!(ignored[0].why.contains("not trusted"), "{ignored:?}");
}

#[test]
fn an_untrusted_project_only_adds_care() {
    let text = "[agents.claude]\nkeys.pause = 700\nkeys.interrupt = [\"1\"]\n\
                [agents.claude.rule.mine]\nstate = \"asking\"\nin = \"screen\"\nmatch = 'Really'\n\
                [agents.claude.question.permission]\ntitle = 'x'\ndeny_keys = [\"1\"]\n\
                [agents.claude.rule.menu]\nstate = \"asking\"\nin = \"screen\"\noff = true\n\
                [agents.generic.rule.menu]\nstate = \"asking\"\nin = \"title\"\nunless = '.*'\n\
                [agents.fresh]\nlaunch.argv = [\"evil\"]";
    let (profiles, ignored) = project(text, false);
    let (claude, before) = (profiles.get("claude").expect("claude"), Profiles::built_in().get("claude"));
    let before = before.expect("claude");
    assert_eq!(claude.keys.pause, 700);
    assert!(claude.rules.contains_key("mine"));
    assert_eq!(claude.keys.interrupt, before.keys.interrupt);
    assert_eq!(claude.questions["permission"].deny_keys, before.questions["permission"].deny_keys);
    assert!(!claude.rules["menu"].off && claude.rules["menu"].unless.is_none());
    assert!(profiles.get("fresh").is_none());
    let mut settings: Vec<&str> = ignored.iter().map(|ignored| ignored.setting.as_str()).collect();
    settings.sort_unstable();
    assert_eq!(
        settings,
        [
            "agents.claude.keys.interrupt",
            "agents.claude.question.permission",
            "agents.claude.rule.menu",
            "agents.fresh",
            "agents.generic.rule.menu",
        ]
    );
}

#[test]
fn a_project_that_is_wrong_counts_for_nothing_and_is_no_failure() {
    for text in ["agents = [", "[agents.claude]\nnonsense = 1", "[agents.claude.rule.x]\nstate = \"tired\""] {
        let (_, ignored) = project(text, true);
        assert_eq!(ignored[0].setting, "*", "{text}");
        let (_, ignored) = project(text, false);
        assert_eq!(ignored.len(), 1, "{text}");
    }
}

#[test]
fn a_pattern_beyond_its_budget_is_named() {
    let failure = user("[rule.huge]\nstate = \"idle\"\nin = \"screen\"\nmatch = '(\\w{1,200}){1,200}'")
        .expect_err("huge");
    assert!(failure.message.contains("mine.toml, line 4") && failure.message.contains("size"), "{failure}");
    let many = (0..200)
        .map(|n| format!("[rule.r{n}]\nstate = \"idle\"\nin = \"title\"\n"))
        .collect::<Vec<_>>()
        .concat();
    let failure = user(&many).expect_err("many");
    assert!(failure.message.contains("more than 128"), "{failure}");
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

/// What a dialog at the start may be about that only a person answers.
const PERSONAL: [&str; 20] = [
    "trust",
    "login",
    "Log in",
    "LOG IN",
    "Sign in",
    "sign-in",
    "permission",
    "Permissions",
    "allow",
    "Approve",
    "API key",
    "password",
    "token",
    "credentials",
    "account",
    "bypass",
    "dangerously",
    "accept",
    "I agree",
    "consent",
];

#[test]
fn a_dialog_at_the_start_that_only_a_person_answers_has_no_declared_answer() {
    // Dialogs that differ in what the profile calls them, which is one word. Of the two choices, the one that begins with `Go` is
    // declared.
    let names: Vec<&str> = PERSONAL.into_iter().filter(|word| !word.contains(' ')).chain(["tour"]).collect();
    let dialog = |(number, name): (usize, &&str)| {
        format!(
            "[question.{name}]\ntitle = '^({number}: .*\\?)$'\ntop = '^=+$'\n\
             choice = '^ *(?P<n>\\d)\\. (?P<label>.*)$'\nanswer = '^Go'\nstartup = true\n"
        )
    };
    let dialogs: String = names.iter().enumerate().map(dialog).collect();
    let profiles = user(&format!("name = 'starter'\n{dialogs}")).expect("it loads");
    let profile = profiles.get("starter").expect("it is there");
    let asked = |name: &str, title: &str, detail: &str, choice: &str| {
        let number = names.iter().position(|known| *known == name).expect("a name");
        let title = format!("{number}: {title}");
        let rows = ["====", detail, &title, " 1. Later", choice].map(str::to_owned);
        let question = profile.question(&Look { rows: &rows, cursor: (4, 0), ..Look::default() });
        let question = question.unwrap_or_else(|| panic!("no question in {rows:?}"));
        assert_eq!((question.name.as_str(), question.declared), (name, Some(1)), "{question:#?}");
        question.startup_choice()
    };
    let (name, title, detail, choice) = ("tour", "Begin now?", "A short tour.", " 2. Go on");
    assert_eq!(asked(name, title, detail, choice), Some(1));
    // One word of it anywhere is enough.
    for word in PERSONAL {
        assert_eq!(asked(name, &format!("Begin with {word}?"), detail, choice), None, "{word} in the title");
        assert_eq!(
            asked(name, title, &format!("About {word} of yours."), choice),
            None,
            "{word} in the detail"
        );
        assert_eq!(asked(name, title, detail, &format!(" 2. Go with {word}")), None, "{word} in a choice");
        if names.contains(&word) {
            assert_eq!(asked(word, title, detail, choice), None, "{word} as the name");
        }
    }
}

#[test]
fn no_profile_that_comes_with_wharf_declares_an_answer_about_trust() {
    let profiles = Profiles::built_in();
    for name in profiles.names() {
        let profile = profiles.get(name).expect("it is listed");
        for (called, asked) in &profile.questions {
            let personal =
                called.contains("trust") || called.contains("permission") || called.contains("login");
            assert!(!personal || asked.answer.is_none(), "{name}: {called}");
        }
    }
}
