//! The profile of the fake agents is one that Wharf takes, and it tells the fake's states apart.

use wharf_agents::{Look, Profiles};
use wharf_model::State;
use wharf_testing::fake;

fn state(rows: &[&str], cursor: (usize, usize), title: &str) -> Option<State> {
    let home = tempfile::tempdir().expect("a directory");
    fake::install_profile(home.path()).expect("a profile");
    let profiles = Profiles::load(Some(&home.path().join(".config/wharf")), None).expect("profiles");
    let profile = profiles.get(fake::NAME).expect("the fake");
    let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
    let look = Look { rows: &rows, cursor, title, ..Look::default() };
    profile.decide(&profile.recognise(&look)).map(|finding| finding.state)
}

#[test]
fn each_state_is_known() {
    let rule = "─".repeat(40);
    assert_eq!(state(&["fake agent", &rule, ">"], (2, 2), "fake"), Some(State::Idle));
    assert_eq!(state(&["GOT 1: \"x\"", &rule, "> a draft", "  of two"], (3, 8), "fake"), Some(State::Idle));
    let working = ["GOT 1: \"x\"", "⠙ working… (esc to interrupt)", &rule, ">"];
    assert_eq!(state(&working, (3, 2), "⠙ fake"), Some(State::Working));
    let asking = [&rule, "Do you want to proceed?", "  x", "❯ 1. Yes", "  2. No"];
    assert_eq!(state(&asking, (4, 7), "fake"), Some(State::Asking));
}
