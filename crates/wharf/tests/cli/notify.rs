//! Tests that notification rules run their command on the chosen changes.

use serde_json::Value;

use crate::support::{Wharf, until};

#[test]
fn chosen_changes_are_told_to_a_command() {
    let wharf = Wharf::new();
    let config = wharf.home().join(".config/wharf");
    std::fs::create_dir_all(&config).unwrap();
    let notes = wharf.home().join("notes");
    let rule = format!(
        "[[notify]]\non = ['exited']\nname = 'told*'\ncommand = ['sh', '-c', 'cat >> $0; echo >> $0; test $1 = told-one', '{}', '{{name}}']\n",
        notes.display()
    );
    std::fs::write(config.join("config.toml"), rule).unwrap();
    wharf.start("other", &[], &["true"]);
    wharf.start("told-one", &[], &["sh", "-c", "exit 3"]);
    let read = || std::fs::read_to_string(&notes).unwrap_or_default();
    assert!(until(|| read().contains("told-one")), "{}", read());
    let lines = read();
    assert_eq!(lines.lines().count(), 1, "{lines}");
    let told: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!((&told["event"]["kind"], &told["event"]["state"]), (&"state".into(), &"exited".into()));
    assert_eq!((&told["session"]["name"], &told["session"]["exit"]["code"]), (&"told-one".into(), &3.into()));
    let checks = wharf.json(&["doctor", "--json"]);
    assert!(checks.as_array().unwrap().iter().any(|check| check["name"] == "notify" && check["ok"] == true));
}
