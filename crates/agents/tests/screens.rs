//! The rules of the profiles against screens of the real programs.
//!
//! `tests/screens/AGENT/STATE-WHAT.txt` is a screen as it was seen, row by row; the first word of its name is the state
//! that it shows. `looks` says what stood in the title and where the cursor was.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use wharf_agents::{Look, Profile, Profiles};
use wharf_model::{ChoiceKind, State};

static ALL: LazyLock<Profiles> = LazyLock::new(Profiles::built_in);

/// One recorded screen.
struct Seen {
    agent: String,
    name: String,
    rows: Vec<String>,
    cursor: (usize, usize),
    title: String,
    profile: Arc<Profile>,
}

impl Seen {
    fn look(&self) -> Look<'_> {
        Look { rows: &self.rows, cursor: self.cursor, title: &self.title, ..Look::default() }
    }

    fn decided(&self, look: &Look<'_>) -> Option<State> {
        self.profile.decide(&self.profile.recognise(look)).map(|finding| finding.state)
    }

    fn state(&self) -> State {
        match self.name.split('-').next() {
            Some("idle") => State::Idle,
            Some("working") => State::Working,
            Some("asking") => State::Asking,
            _ => panic!("{} names no state", self.name),
        }
    }

    fn is(&self, word: &str) -> bool {
        self.name.split('-').any(|own| own == word)
    }

    fn about(&self, look: &Look<'_>) -> String {
        let screen = self.rows.join("\n");
        format!("{}/{}: {:#?}\n{}", self.agent, self.name, self.profile.recognise(look), screen.trim_end())
    }
}

fn every() -> Vec<Seen> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens");
    let mut all = Vec::new();
    for agent in std::fs::read_dir(root).expect("screens") {
        let dir = agent.expect("agent").path();
        let agent = dir.file_name().expect("name").to_string_lossy().into_owned();
        let profile = ALL.get(&agent).expect("a profile for every agent that was seen");
        let looks = std::fs::read_to_string(dir.join("looks")).expect("looks");
        for line in looks.lines() {
            let (name, rest) = line.split_once(": ").expect("a name");
            let (title, cursor) = rest.rsplit_once("|cursor ").expect("a cursor");
            let rows = rows(&dir.join(format!("{name}.txt")));
            let cursor = cursor.split('|').next().expect("a cursor");
            // Where nobody noted it, it stood behind the last text.
            let cursor = cursor.split_once(',').map_or_else(
                || {
                    let last = rows.iter().rposition(|row| !row.is_empty()).expect("some text");
                    (last, rows[last].chars().count() + 1)
                },
                |(row, column)| (row.parse().expect("row"), column.parse().expect("column")),
            );
            let (agent, profile) = (agent.clone(), Arc::clone(&profile));
            all.push(Seen { agent, name: name.to_owned(), rows, cursor, title: title.to_owned(), profile });
        }
    }
    assert!(all.len() > 60, "{} screens", all.len());
    all
}

fn rows(path: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.split('\n').map(str::to_owned).collect()
}

#[test]
fn every_state_is_told() {
    for seen in every() {
        let look = seen.look();
        assert_eq!(seen.decided(&look), Some(seen.state()), "{}", seen.about(&look));
    }
}

#[test]
fn the_screen_alone_tells_where_titles_are_off() {
    for seen in every() {
        // While an answer streams, only Codex's title tells.
        if seen.agent == "codex" && seen.state() == State::Working && seen.name != "working-silent" {
            continue;
        }
        let look = Look { title: "", ..seen.look() };
        assert_eq!(seen.decided(&look), Some(seen.state()), "{}", seen.about(&look));
    }
}

#[test]
fn the_composer_is_read() {
    for seen in every() {
        let look = seen.look();
        let composer = seen.profile.composer(&look);
        if seen.state() == State::Asking || (seen.agent == "aider" && seen.state() == State::Working) {
            assert_eq!(composer, None, "{}", seen.about(&look));
            continue;
        }
        let composer = composer.unwrap_or_else(|| panic!("no composer: {}", seen.about(&look)));
        let expected = match seen.name.as_str() {
            "idle-draft" => Some("hello draft"),
            "idle-draft-two-lines" => Some("two\nlines"),
            "working-draft" => Some("draft while working"),
            "idle-at-menu" => Some("see @"),
            "idle-slash-menu" => Some("/"),
            name if name.starts_with("idle-pasted") => None,
            _ => Some(""),
        };
        if let Some(expected) = expected {
            assert_eq!(composer.text, expected, "{}", seen.about(&look));
            assert_eq!(composer.empty, expected.is_empty(), "{}", seen.about(&look));
            assert!(!composer.collapsed, "{}", seen.about(&look));
        } else {
            assert!(!composer.empty, "{}", seen.about(&look));
            // Aider shows everything.
            assert_eq!(composer.collapsed, seen.agent != "aider", "{}", seen.about(&look));
        }
    }
}

#[test]
fn a_question_is_read_with_its_answers() {
    for seen in every() {
        let look = seen.look();
        let question = seen.profile.question(&look);
        if seen.state() != State::Asking {
            assert_eq!(question, None, "{}", seen.about(&look));
            continue;
        }
        let question = question.unwrap_or_else(|| panic!("no question: {}", seen.about(&look)));
        for kind in [ChoiceKind::Allow, ChoiceKind::Deny] {
            let choice = question.choice(kind).unwrap_or_else(|| panic!("no {kind:?} in {question:#?}"));
            assert!(!choice.keys.is_empty(), "{question:#?}");
        }
        assert_eq!(question.startup, seen.is("trust"), "{question:#?}");
        if seen.is("long") {
            assert!(question.detail.contains("file-with-a-long-name-11"), "{question:#?}");
        }
        if seen.name == "asking" {
            assert!(question.detail.contains("touch granted-1"), "{question:#?}");
            assert!(question.choice(ChoiceKind::Always).is_some(), "{question:#?}");
        }
    }
}

#[test]
fn what_the_conversation_quotes_is_no_state() {
    // The rows of a question and of a working line, quoted in an answer above an idle input box.
    let all = every();
    for seen in all.iter().filter(|seen| seen.name == "idle") {
        for other in all.iter().filter(|other| other.agent == seen.agent && other.state() != State::Idle) {
            let quoted = other.rows.iter().filter(|row| !row.trim().is_empty());
            let mut rows: Vec<String> = quoted.map(|row| format!("  {row}")).collect();
            let shift = rows.len();
            rows.extend(seen.rows.iter().cloned());
            let cursor = (seen.cursor.0 + shift, seen.cursor.1);
            for title in [seen.title.as_str(), ""] {
                let look = Look { rows: &rows, cursor, title, ..Look::default() };
                let told = seen.profile.recognise(&look);
                let state = seen.profile.decide(&told).map(|finding| finding.state);
                assert_eq!(state, Some(State::Idle), "{} quotes {}: {told:#?}", seen.agent, other.name);
            }
        }
    }
}

proptest! {
    /// Rows of anything, and pieces of real screens cut anywhere.
    #[test]
    fn no_screen_is_too_strange(
        rows in proptest::collection::vec("\\PC{0,40}|[─▀▄┃│❯›>●╹ ]{0,20}|(❯|›| >|┃|>>>)[ \u{a0}].{0,10}", 0..30),
        cursor in (0_usize..40, 0_usize..200),
        title in "\\PC{0,20}",
    ) {
        for profile in ALL.iter() {
            let look = Look { rows: &rows, cursor, title: &title, ..Look::default() };
            let findings = profile.recognise(&look);
            prop_assert_eq!(profile.decide(&findings).is_some(), !findings.is_empty());
            prop_assert!(findings.is_sorted_by(|a, b| a.weight >= b.weight));
            if let Some(composer) = profile.composer(&look) {
                prop_assert_eq!(composer.empty, composer.text.is_empty());
            }
            if let Some(question) = profile.question(&look) {
                prop_assert!(!question.choices.is_empty());
                prop_assert!(findings.iter().any(|finding| finding.state == State::Asking));
            }
        }
    }
}

#[test]
fn a_turn_that_failed_is_told_from_one_that_is_past() {
    let claude = ALL.get("claude").expect("built in");
    let failed = |said: &[&str]| {
        let frame = "─".repeat(60);
        let mut rows: Vec<String> = said.iter().map(|row| (*row).to_owned()).collect();
        rows.extend([frame.clone(), "❯\u{a0}".to_owned(), frame, "  ? for shortcuts".to_owned()]);
        let look = Look { cursor: (said.len() + 1, 2), rows: &rows, ..Look::default() };
        claude.failed_turn(&look)
    };
    let error = "  ⎿ \u{a0}Context limit reached · /compact or /clear to continue";
    assert_eq!(failed(&["❯ do it", error, "", "✻ Sautéed for 0s", ""]).as_deref(), Some(error.trim()));
    assert_eq!(
        failed(&["❯ do it", "● API Error: Request timed out", ""]).as_deref(),
        Some("● API Error: Request timed out")
    );
    assert_eq!(failed(&["❯ do it", error, "❯ once more", "● Done."]), None);
    assert_eq!(failed(&["❯ do it", "● Done.", ""]), None);
    assert_eq!(
        failed(&["❯ why does it say API Error?", "● It is this line:", "    print(\"API Error\")"]),
        None
    );
}
