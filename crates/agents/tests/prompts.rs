//! Shells and language prompts: what stands at the cursor, and who owns the terminal.

use wharf_agents::{Look, Profiles};
use wharf_model::{ChoiceKind, Source, State};

/// The state of a terminal whose last row is this, with the cursor behind it.
fn state(agent: &str, row: &str, look: Look<'_>) -> Option<(State, Source)> {
    let rows = ["some output".to_owned(), row.trim_end().to_owned(), String::new()];
    let profile = Profiles::built_in().get(agent).expect(agent);
    let look = Look { rows: &rows, cursor: (1, row.chars().count()), ..look };
    profile.decide(&profile.recognise(&look)).map(|finding| (finding.state, finding.source))
}

fn plain(agent: &str, row: &str) -> Option<State> {
    state(agent, row, Look::default()).map(|(state, _)| state)
}

#[test]
fn a_prompt_at_the_cursor_is_rest() {
    for (agent, row) in [
        ("python", ">>> "),
        ("python", ">>> half a li"),
        ("python", "In [3]: "),
        ("node", "> "),
        ("aider", "> "),
        ("aider", "ask> "),
        ("aider", "architect multi> "),
    ] {
        assert_eq!(plain(agent, row), Some(State::Idle), "{agent}: {row:?}");
    }
}

#[test]
fn a_prompt_for_the_rest_of_something_is_no_rest() {
    let rows = [
        ("python", "... ", false),
        ("python", "...     half a li", false),
        ("python", "   ...: ", false),
        ("python", "   ...:     ", false),
        ("node", "... ", false),
        ("node", "| ", false),
        ("gdb", ">", true),
        ("gdb", "  >silent", true),
        ("sqlite", "   ...> ", false),
        ("sqlite", "(x1...> ", false),
        ("psql", "my_db-# ", false),
        ("psql", "db'> ", false),
        ("psql", "db-*# ", false),
        ("shell", "> ", true),
        ("shell", "dquote> ", true),
        ("shell", "for cmdsubst> ", true),
        ("shell", "              ", true),
    ];
    for (agent, row, own) in rows {
        let seen = |own| {
            let look = Look { foreground: own, ..Look::default() };
            state(agent, row, look).map(|(state, _)| state)
        };
        assert_eq!(seen(Some(true)), Some(State::Asking), "{agent}: {row:?}");
        assert_eq!(seen(Some(false)) != Some(State::Asking), own, "{agent}: {row:?} of a child");
    }
    for (agent, row) in [
        ("gdb", "(gdb) "),
        ("gdb", "(gdb) p x > "),
        ("sqlite", "sqlite> "),
        ("psql", "my-db=# "),
        ("psql", "db=*> "),
        ("shell", "$ "),
        ("shell", "prod> "),
        ("shell", "$ echo a > "),
        ("shell", ""),
    ] {
        let look = Look { foreground: Some(true), ..Look::default() };
        let seen = state(agent, row, look).map(|(state, _)| state);
        assert_ne!(seen, Some(State::Asking), "{agent}: {row:?}");
    }
}

#[test]
fn a_prompt_is_not_work_as_well() {
    let rows = [">>>".to_owned()];
    let profile = Profiles::built_in().get("python").expect("python");
    let findings = profile.recognise(&Look { rows: &rows, cursor: (0, 4), ..Look::default() });
    assert_eq!(findings.len(), 1, "{findings:#?}");
}

#[test]
fn anything_else_there_is_work() {
    for (agent, row) in [
        ("python", ""),
        ("python", "computing 3 of 4"),
        ("python", " >>> quoted"),
        ("python", ">>>"),
        ("node", "listening on 80"),
        ("aider", "Here is the answer"),
        ("aider", "  █░   Waiting for the-model"),
    ] {
        assert_eq!(plain(agent, row), Some(State::Working), "{agent}: {row:?}");
    }
}

#[test]
fn a_draft_at_a_prompt_is_read() {
    let rows = [">>> print(1)".to_owned()];
    let profile = Profiles::built_in().get("python").expect("python");
    let look = Look { rows: &rows, cursor: (0, 12), ..Look::default() };
    assert_eq!(profile.composer(&look).expect("composer").text, "print(1)");
    let rows = [">>>".to_owned()];
    let look = Look { rows: &rows, cursor: (0, 4), ..Look::default() };
    assert!(profile.composer(&look).expect("composer").empty);
}

#[test]
fn a_shell_rests_when_it_owns_its_terminal() {
    let owned = |own| Look { foreground: Some(own), ..Look::default() };
    assert_eq!(state("shell", "$ ", owned(true)), Some((State::Idle, Source::Process)));
    assert_eq!(state("shell", "", owned(false)), Some((State::Working, Source::Process)));
    assert_eq!(plain("shell", "$ "), None, "a prompt may look like anything");
}

#[test]
fn its_marks_tell_more_than_the_process() {
    let marked = |mark, own| Look { shell_phase: Some(mark), foreground: Some(own), ..Look::default() };
    assert_eq!(state("shell", "", marked("C", true)), Some((State::Working, Source::Terminal)));
    assert_eq!(state("shell", "$ ", marked("B", true)), Some((State::Idle, Source::Terminal)));
}

#[test]
fn what_runs_in_a_shell_may_ask() {
    let busy = Look { foreground: Some(false), shell_phase: Some("C"), ..Look::default() };
    for row in [
        "[sudo] password for me: ",
        "Enter passphrase for key '/x': ",
        "Do you want to continue? [Y/n] ",
        "Really? (yes/no) ",
    ] {
        assert_eq!(state("shell", row, busy), Some((State::Asking, Source::Screen)), "{row}");
    }
    for row in ["password: changed", "$ echo [y/n] x", "installing [y/n]..."] {
        assert_eq!(state("shell", row, busy).map(|(state, _)| state), Some(State::Working), "{row}");
    }
    let rows = ["Do you want to continue? [Y/n]".to_owned()];
    let look = Look { rows: &rows, cursor: (0, 31), ..busy };
    let question = Profiles::built_in().get("shell").expect("shell").question(&look).expect("a question");
    assert_eq!(question.choice(ChoiceKind::Allow).expect("yes").keys, ["y", "Enter"]);
    assert_eq!(question.named("no").expect("no").keys, ["n", "Enter"]);
    assert_eq!(question.named("1").expect("the first").label, "yes");
    assert_eq!(question.named("9"), None);
}

#[test]
fn any_program_may_say_what_it_does() {
    let says = |status| Look { status: Some(status), ..Look::default() };
    for (status, expected) in [
        ("idle", State::Idle),
        ("working", State::Working),
        ("state=working:app=x", State::Working),
        ("blocked:kind=permission", State::Asking),
    ] {
        assert_eq!(state("generic", "", says(status)), Some((expected, Source::Terminal)), "{status}");
    }
    let busy = Look { progress: Some("1;40"), ..Look::default() };
    assert_eq!(state("generic", "", busy), Some((State::Working, Source::Terminal)));
    assert_eq!(state("generic", "", Look { progress: Some("0"), ..Look::default() }), None);
    // What the program says of itself goes before what its screen looks like.
    let rows = ["Do you want to proceed?", "❯ 1. Yes", "  2. No"].map(str::to_owned);
    let claude = Profiles::built_in().get("claude").expect("claude");
    let look = Look { rows: &rows, status: Some("working"), ..Look::default() };
    let findings = claude.recognise(&look);
    assert_eq!(claude.decide(&findings).map(|finding| finding.state), Some(State::Working));
    assert!(findings.iter().any(|finding| finding.state == State::Asking), "and the rest is told, too");
}

#[test]
fn a_question_outranks_a_title() {
    let rows = ["Do you want to proceed?", "❯ 1. Yes", "  2. No"].map(str::to_owned);
    let claude = Profiles::built_in().get("claude").expect("claude");
    for title in ["⠂ Claude Code", "✳ Claude Code", ""] {
        let look = Look { rows: &rows, title, ..Look::default() };
        assert_eq!(claude.decide(&claude.recognise(&look)).map(|finding| finding.state), Some(State::Asking));
    }
}

#[test]
fn what_is_asked_about_is_not_taken_for_an_answer() {
    let rows = [
        "  Would you like to run the following command?",
        "",
        "  $ cat <<END",
        "  1. Yes, this is text",
        "  2. No, too",
        "  END",
        "",
        "› 1. Yes, proceed (y)",
        "  2. Yes, and don't ask again (p)",
        "  3. No, and tell Codex what to do differently (esc)",
        "",
        "  Press enter to confirm or esc to cancel",
    ]
    .map(str::to_owned);
    let codex = Profiles::built_in().get("codex").expect("codex");
    let question = codex.question(&Look { rows: &rows, ..Look::default() }).expect("a question");
    assert_eq!(question.choices.len(), 3, "{question:#?}");
    assert_eq!(question.selected, Some(0));
    assert!(question.detail.contains("1. Yes, this is text"), "{question:#?}");
}
