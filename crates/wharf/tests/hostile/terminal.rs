//! What a session prints reaches a terminal raw only where somebody asked for that.

use crate::place::{COMMAND_TIMEOUT, Place, at};
use crate::support::{Pty, Ran};

/// What sets a terminal's title, and colours what follows; what turns the direction of writing.
const CONTROLS: &str = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";

at! { no_control_of_a_session_reaches_a_page:
    docker = Place::new(Container(Docker)),
    podman = Place::new(Container(Podman)),
    sandbox = Place::new(Sandbox),
    local = Place::new(Local),
}

fn no_control_of_a_session_reaches_a_page(place: &Place) {
    place.attack(
        "evil",
        &["-e", "SHOWN=\u{1b}]0;owned\u{7}\u{202e}", "-l", "what=\u{1b}[31m\u{9b}31m"],
        &["terminal", "titles", "+", "terminal", "questions", "+", "speak", "flood"],
    );
    // `env` is exact in a pipe: a program reads it. What it shows to a terminal is tried with the other verbs.
    let pages: &[&[&str]] = &[
        &["ls"],
        &["ls", "--json"],
        &["show", "evil"],
        &["show", "evil", "--json"],
        &["explain", "evil"],
        &["events", "evil"],
        &["events", "evil", "--json"],
        &["capture", "evil"],
        &["capture", "evil", "--json"],
        &["stats", "evil"],
        &["logs", "evil", "--plain"],
        &["show", "\u{1b}]0;owned\u{7}"],
        &["show", "--\u{1b}]0;owned\u{7}"],
        &["show", "--\u{9b}31m\u{202e}", "--json"],
        &["run", "-b", "\u{1b}[31m\u{202e}", "--", "true"],
    ];
    for page in pages {
        must_be_clean(page, &place.within(COMMAND_TIMEOUT, page));
    }
    place.clear();
}

/// Neither output nor errors have a character that a terminal would act on.
#[track_caller]
fn must_be_clean(page: &[&str], ran: &Ran) {
    for (face, text) in [("output", &ran.out), ("errors", &ran.err)] {
        let raw = |shown: char| matches!(shown, '\u{1b}' | '\u{7}' | '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let found = text.find(raw);
        assert!(found.is_none(), "{page:?} puts a control into its {face}: {text:?}");
    }
}

at! { no_name_in_a_clone_reaches_a_terminal_raw:
    local = Place::new(Local),
}

fn no_name_in_a_clone_reaches_a_terminal_raw(place: &Place) {
    let name = format!("clone{CONTROLS}");
    place.make_dir(&name);
    place.make_dir(&format!("{name}/.git"));
    place.write(
        &format!("{name}/wharf.toml"),
        &format!("# {CONTROLS}\n[agents.claude.keys]\nsubmit = \"1\"\n"),
    );
    let dir = place.text(&name);
    let pages: &[(&[&str], &str)] = &[
        (&["run", "-d", "--name", "one", "-b", "local", "-w", &dir, "--", "sleep", "600"], "trust"),
        // Nobody can be asked, so it is shown and refused.
        (&["trust", &dir], "never trusted before"),
        (&["trust", &dir, "--yes"], "is trusted"),
        (&["trust", &dir], "is trusted already"),
        (&["trust", "ls"], "clone"),
        (&["trust", "ls", "--json"], "clone"),
        (&["show", "one"], "clone"),
        (&["show", "one", "--json"], "clone"),
        (&["trust", "revoke", &dir], "not trusted any more"),
    ];
    for (page, told) in pages {
        let ran = place.within(COMMAND_TIMEOUT, page);
        assert!(ran.out.contains(told) || ran.err.contains(told), "{page:?}: {ran:#?}");
        must_be_clean(page, &ran);
    }
    place.clear();
}

at! { variables_of_a_session_are_text_on_a_terminal:
    local = Place::new(Local),
}

fn variables_of_a_session_are_text_on_a_terminal(place: &Place) {
    let shown = format!("SHOWN={CONTROLS}");
    place.ok(&["run", "-d", "--name", "one", "-b", "local", "-e", &shown, "--", "sleep", "600"]);
    let mut pty = Pty::spawn(place.command(&["env", "one"]), (200, 50));
    let text = pty.until("SHOWN=");
    assert_eq!((pty.end(), text.contains("\u{1b}]0;")), (0, false), "{text:?}");
    let text = pty.shown();
    assert!(!text.contains("\u{1b}]0;") && !text.contains('\u{202e}'), "{text:?}");
    place.clear();
}
