//! Tests agents on the command line: conversations, inherited marks, prompts, retries, hooks.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Ran, Wharf, until};

/// Puts a program called `claude` into the home, which first says how it was called; gives the words that start it.
fn claude(wharf: &Wharf, script: &str) -> [String; 4] {
    let bin = wharf.home().join("bin");
    std::fs::create_dir(&bin).expect("a fresh home");
    let text = format!("#!/bin/sh\necho \"<$*>\"\n{script}\nexec cat\n");
    std::fs::write(bin.join("claude"), text).expect("a program");
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = std::env::var("PATH").expect("a path");
    ["-e".to_owned(), format!("PATH={}:{path}", bin.display()), "--agent".to_owned(), "claude".to_owned()]
}

fn events(wharf: &Wharf, name: &str) -> Vec<Value> {
    let text = wharf.ok(&["events", name, "--json"]);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_conversation_is_resumed_copied_or_begun_and_a_restart_goes_on_with_it() {
    // Its program is this host's.
    let wharf = Wharf::on_this_host();
    let turn = r#"{"hook_event_name":"UserPromptSubmit","prompt":"hello"}"#;
    let script = format!("read -r x; {} hook claude '{turn}'; echo told", env!("CARGO_BIN_EXE_wharf"));
    let words = claude(&wharf, &script);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let start = |name: &str, more: &[&str]| {
        wharf.ok(&[&["run", "-d", "--name", name], &words[..], more].concat());
        wharf.until_log(name, ">");
        let log = String::from_utf8_lossy(&wharf.log(name)).into_owned();
        log.trim().trim_matches(['<', '>']).to_owned()
    };
    assert_eq!(start("resumed", &["--resume", "abc"]), "--resume abc");
    assert_eq!(start("latest", &["--continue", "--", "--model", "x"]), "--continue --model x");
    let copy = start("copy", &["--fork", "abc"]);
    assert!(copy.starts_with("--resume abc --fork-session --session-id "), "{copy}");
    let first = start("new", &[]);
    let id = first.strip_prefix("--session-id ").unwrap().to_owned();
    assert_eq!(wharf.json(&["show", "new", "--json"])["conversation"], id.as_str());
    assert_ne!(copy.rsplit(' ').next(), Some(id.as_str()));
    wharf.ok(&["write", "new", "\n"]);
    wharf.until_log("new", "told");
    wharf.ok(&["restart", "-t", "1", "new"]);
    wharf.until_log("new", &format!("<--resume {id}>"));
}

#[test]
fn a_session_that_is_restarted_before_its_first_turn_shows_the_conversation_that_it_has() {
    // Its program is this host's.
    let wharf = Wharf::on_this_host();
    let words = claude(&wharf, "");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    wharf.ok(&[&["run", "-d", "--name", "a"], &words[..]].concat());
    for run in 1..=3 {
        let called = || {
            let log = String::from_utf8_lossy(&wharf.log("a")).into_owned();
            let lines = log.lines().filter_map(|line| line.split("--session-id ").nth(1)).map(str::trim);
            lines.map(|id| id.trim_end_matches('>').to_owned()).collect::<Vec<_>>()
        };
        assert!(until(|| called().len() == run), "it was called {:?}", called());
        let shown = wharf.json(&["show", "a", "--json"]);
        assert_eq!(shown["conversation"].as_str(), called().last().map(String::as_str), "in run {run}");
        let argv = shown["argv"].as_array().expect("a command line").iter();
        assert!(argv.clone().any(|word| *word == shown["conversation"]), "{argv:?} in run {run}");
        wharf.ok(&["restart", "-t", "1", "a"]);
    }
}

#[test]
fn what_an_agent_around_it_left_is_not_inherited() {
    // Its program is this host's.
    let wharf = Wharf::on_this_host();
    let words = claude(&wharf, "echo \"nested=$CLAUDECODE.\"");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for (name, more, shows) in
        [("plain", &[][..], "nested=."), ("asked", &["-e", "CLAUDECODE=2"], "nested=2.")]
    {
        let mut command = wharf.command(&[&["run", "-d", "--name", name], more, &words[..]].concat());
        let started: Ran = command.env("CLAUDECODE", "1").output().unwrap().into();
        assert_eq!(started.code, 0, "{started:#?}");
        wharf.until_log(name, shows);
    }
}

#[test]
fn marks_of_an_agent_around_it_reach_no_command_that_nobody_gave_them_to() {
    let wharf = Wharf::on_this_host();
    let shows = "echo \"mark=$CLAUDECODE. other=$KEPT. agent=$GEMINI_CLI.\"";
    for (name, more, shown) in [
        ("plain", &[][..], "mark=. other=yes. agent=."),
        ("passed", &["-e", "CLAUDECODE"], "mark=1. other=yes. agent=."),
        ("set", &["-e", "GEMINI_CLI=2"], "mark=. other=yes. agent=2."),
    ] {
        let mut command =
            wharf.command(&[&["run", "-d", "--name", name], more, &["--", "sh", "-c", shows]].concat());
        command.env("CLAUDECODE", "1").env("GEMINI_CLI", "1").env("KEPT", "yes");
        let started: Ran = command.output().unwrap().into();
        assert_eq!(started.code, 0, "{started:#?}");
        wharf.until_log(name, shown);
    }
}

#[test]
fn a_prompt_in_a_file_is_the_agents_first_message() {
    // Its program is this host's.
    let wharf = Wharf::on_this_host();
    let bin = wharf.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = "#!/bin/sh\nwhile printf 'ready> '; read -r line; do echo \"got <$line>\"; done\n";
    std::fs::write(bin.join("lines"), program).unwrap();
    std::fs::set_permissions(bin.join("lines"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let profiles = wharf.home().join(".config/wharf/profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    let path = bin.join("lines").display().to_string();
    for (name, way) in [("lines", "prompt = 'message'"), ("deaf", "")] {
        let profile = format!(
            "name = '{name}'\nprograms = ['lines']\nattend = true\n[launch]\nargv = ['{path}']\n{way}\n\
             [rule.ready]\nstate = 'idle'\nin = 'screen'\nregion = 'bottom:1'\nmatch = '^ready>'\n"
        );
        std::fs::write(profiles.join(format!("{name}.toml")), profile).unwrap();
    }
    std::fs::write(wharf.home().join("prompt"), "do the first thing\n").unwrap();
    for agent in ["lines", "deaf"] {
        wharf.ok(&["run", "-d", "--name", agent, "--agent", agent, "--prompt-file", "prompt"]);
    }
    wharf.until_log("lines", "got <do the first thing>");
    let messages = || wharf.json(&["messages", "lines", "--json"]);
    assert!(until(|| messages()[0]["status"] == "confirmed"), "{}", messages());
    // It is the first of the conversation, and not of each run.
    wharf.ok(&["restart", "-t", "1", "lines"]);
    wharf.ok(&["send", "lines", "second"]);
    wharf.until_log("lines", "got <second>");
    let log = String::from_utf8_lossy(&wharf.log("lines")).into_owned();
    assert_eq!(log.matches("got <do the first thing>").count(), 1, "{log}");
    // A profile that does not say how gets nothing typed.
    assert_eq!(wharf.json(&["messages", "deaf", "--json"]), Value::Array(Vec::new()));
}

#[test]
fn a_turn_that_failed_is_begun_once_more_and_only_such_a_one() {
    // Its program is this host's.
    let wharf = Wharf::on_this_host();
    let program = wharf.home().join("flaky");
    let text = "#!/bin/sh\nwhile printf 'ready> '; read -r line; do\n\
                case $line in (fail) echo 'API Error: 529';; (*) echo \"did <$line>\";; esac; done\n";
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let profiles = wharf.home().join(".config/wharf/profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    let profile = format!(
        "name = 'flaky'\nprograms = ['flaky']\nattend = true\n[launch]\nargv = ['{}']\n\
         [rule.ready]\nstate = 'idle'\nin = 'screen'\nregion = 'bottom:1'\nmatch = '^ready>'\n\
         [retry]\nfailed = '^API Error'\nnewer = '^did <'\ntext = 'go on'\ncompact = '/compact'\n",
        program.display()
    );
    std::fs::write(profiles.join("flaky.toml"), profile).unwrap();
    wharf.ok(&["run", "-d", "--name", "one", "--agent", "flaky"]);
    wharf.ok(&["send", "one", "work", "--wait=idle"]);
    let refused = wharf.run(&["retry", "one"]);
    assert!(refused.code != 0 && refused.err.contains("--force"), "{refused:#?}");
    wharf.ok(&["send", "one", "fail"]);
    wharf.until_log("one", "API Error");
    wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "20"]);
    let receipt = wharf.json(&["retry", "one", "--compact", "--json"]);
    assert_eq!(receipt["status"], "confirmed", "{receipt}");
    wharf.until_log("one", "did <go on>");
    let log = String::from_utf8_lossy(&wharf.log("one")).into_owned();
    assert!(log.find("did </compact>") < log.find("did <go on>"), "{log}");
    let told = wharf.ok(&["events", "one", "--kind", "retry", "--json"]);
    assert!(told.lines().count() == 1 && told.contains("API Error: 529"), "{told}");
    // What came after a failure shows that it is past; and who insists is not asked.
    let idle = || wharf.ok(&["wait", "one", "--until", "idle", "--timeout", "20"]);
    idle();
    let refused = wharf.run(&["retry", "one"]);
    assert!(refused.code != 0 && refused.err.contains("--force"), "{refused:#?}");
    wharf.ok(&["retry", "one", "--force"]);
    // A profile that says nothing of it has none.
    wharf.start("shell", &[], &["sh"]);
    assert_eq!(wharf.run(&["retry", "shell", "--force"]).code, 6);
}

#[test]
fn a_session_that_has_ended_is_started_again_and_goes_on_with_its_conversation() {
    // Its program is this host's.
    let wharf = Wharf::on_this_host();
    let program = wharf.home().join("flaky");
    let text = "#!/bin/sh\necho \"called <$*>\"\nwhile printf 'ready> '; read -r line; do\n\
                [ \"$line\" = die ] && exit 3; echo \"did <$line>\"; done\n";
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let profiles = wharf.home().join(".config/wharf/profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    for (name, resume) in [("flaky", "resume = ['--again', '{id}']"), ("forgets", "")] {
        let profile = format!(
            "name = '{name}'\nprograms = ['{name}']\nattend = true\n[launch]\nargv = ['{}']\nassign = ['--new', '{{id}}']\n\
             {resume}\n[rule.ready]\nstate = 'idle'\nin = 'screen'\nregion = 'bottom:1'\nmatch = '^ready>'\n\
             [retry]\nfailed = '^API Error'\nnewer = '^did <'\ntext = 'go on'\n",
            program.display()
        );
        std::fs::write(profiles.join(format!("{name}.toml")), profile).unwrap();
        wharf.ok(&["run", "-d", "--name", name, "--agent", name]);
        wharf.ok(&["send", name, "work", "--wait=idle"]);
        wharf.ok(&["write", name, "die\r"]);
        assert_eq!(wharf.run(&["wait", name, "--timeout", "20"]).code, 3);
    }
    let id = wharf.json(&["show", "flaky", "--json"])["conversation"].as_str().unwrap().to_owned();
    let log = || String::from_utf8_lossy(&wharf.log("flaky")).into_owned();
    assert!(log().contains(&format!("called <--new {id}>")), "{}", log());
    // Nobody has to insist: that it has ended shows that its turn did not.
    let receipt = wharf.json(&["retry", "flaky", "--json"]);
    assert_eq!(receipt["status"], "confirmed", "{receipt}");
    wharf.until_log("flaky", "did <go on>");
    let text = log();
    let again = text.find(&format!("called <--again {id}>")).unwrap_or_else(|| panic!("{text}"));
    assert!(text.find("did <work>") < Some(again) && Some(again) < text.find("did <go on>"), "{text}");
    let shown = wharf.json(&["show", "flaky", "--json"]);
    assert_eq!((&shown["run"], &shown["conversation"]), (&2.into(), &id.into()), "{shown}");
    let told = wharf.ok(&["events", "flaky", "--kind", "retry", "--json"]);
    assert!(told.lines().count() == 1 && told.contains("its session had ended"), "{told}");
    // One whose agent cannot resume is left as it is.
    let refused = wharf.run(&["retry", "forgets"]);
    assert!(refused.code == 4 && refused.err.contains("cannot be gone on with"), "{refused:#?}");
    assert_eq!(wharf.json(&["show", "forgets", "--json"])["run"], 1);
}

#[test]
fn what_an_agent_writes_down_becomes_events() {
    // Its record is this host's.
    let wharf = Wharf::on_this_host();
    let line =
        |about: &str| format!("{{\"timestamp\":\"$now\",\"cwd\":\"$PWD\",\"sessionId\":\"$2\",{about}}}");
    let lines = [
        line(r#""type":"user","message":{"role":"user","content":"run it"}"#),
        line(
            r#""type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"output_tokens":5}}"#,
        ),
        line(r#""type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"files"}]}"#),
        line(r#""type":"assistant","message":{"content":[{"type":"text","text":"two files"}],"stop_reason":"end_turn"}"#),
    ]
    .join("\n");
    let script = format!(
        "mkdir -p ~/.claude/projects/x; now=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)\n\
         cat > ~/.claude/projects/x/$2.jsonl <<END\n{lines}\nEND"
    );
    let words = claude(&wharf, &script);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    wharf.ok(&[&["run", "-d", "--name", "one"], &words[..]].concat());
    let told = || {
        let all = events(&wharf, "one");
        let record = all.iter().filter(|event| event["source"] == "record" && event["kind"] != "usage");
        record.map(|event| event["kind"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let expected = ["turn.started", "tool.started", "tool.ended", "assistant"];
    assert!(until(|| told().starts_with(&expected.map(str::to_owned))), "{:#?}", events(&wharf, "one"));
    let all = events(&wharf, "one");
    let of = |kind: &str| &all.iter().find(|event| event["kind"] == kind).unwrap()["data"];
    assert_eq!(
        (&of("turn.started")["prompt"], &of("tool.started")["name"]),
        (&"run it".into(), &"Bash".into())
    );
}

#[test]
fn agents_are_listed_and_launched_by_their_profile() {
    let wharf = Wharf::new();
    let agents = wharf.json(&["agents", "--json"]);
    let names: Vec<&str> =
        agents.as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    for name in ["claude", "codex", "gemini", "opencode", "aider", "shell", "python", "node", "generic"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert!(wharf.ok(&["agents"]).contains("NAME"));

    let ran = wharf.run(&["run", "-d", "--agent", "no-such-agent"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    wharf.ok(&["run", "-d", "--name", "py", "--agent", "python", "--", "-q"]);
    let session = wharf.json(&["show", "py", "--json"]);
    assert_eq!(session["agent"], "python", "{session}");
    wharf.ok(&["send", "py", "print(6 * 7)"]);
    wharf.until_log("py", "\n42");
    assert_eq!(wharf.run(&["run", "-d", "--resume", "x"]).code, 2, "only an agent has conversations");
}

#[test]
fn hooks_come_and_go_and_nothing_else_does() {
    let wharf = Wharf::new();
    let settings = wharf.home().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let own = "{\n  \"model\": \"mine\",\n  \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]}\n}\n";
    std::fs::write(&settings, own).unwrap();
    let state =
        |json: serde_json::Value| (json["installed"].as_bool().unwrap(), json["changed"].as_bool().unwrap());
    assert_eq!(state(wharf.json(&["hook", "status", "claude", "--json"])), (false, false));
    assert_eq!(state(wharf.json(&["hook", "install", "claude", "--json"])), (true, true));
    assert_eq!(state(wharf.json(&["hook", "install", "claude", "--json"])), (true, false));
    let with = std::fs::read_to_string(&settings).unwrap();
    assert!(with.contains(" hook claude") && with.contains("\"mine\""), "{with}");
    assert_eq!(state(wharf.json(&["hook", "remove", "claude", "--json"])), (false, true));
    let after = std::fs::read_to_string(&settings).unwrap();
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(json(&after), json(own));
    assert_eq!(wharf.run(&["hook", "install", "shell"]).code, 6);
    assert_eq!(wharf.run(&["hook", "install", "no-such-agent"]).code, 3);
}
