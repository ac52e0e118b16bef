use crate::support::Wharf;

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
