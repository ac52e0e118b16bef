//! What a session prints reaches a terminal raw only where somebody asked for that.

use crate::place::{COMMAND_TIMEOUT, Place, at};

at! { no_control_of_a_session_reaches_a_page:
    docker = Place::new(Container(Docker)),
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
        &["run", "-b", "\u{1b}[31m\u{202e}", "--", "true"],
    ];
    for page in pages {
        let ran = place.within(COMMAND_TIMEOUT, page);
        for (face, text) in [("output", &ran.out), ("errors", &ran.err)] {
            let raw = |shown: char| matches!(shown, '\u{1b}' | '\u{7}' | '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            let found = text.find(raw);
            assert!(found.is_none(), "{page:?} puts a control into its {face}: {text:?}");
        }
    }
    place.clear();
}
