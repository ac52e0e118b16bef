//! What a terminal should never be told, and too much of it: `terminal titles|questions|flood`.

use std::io::Write;
use std::time::Duration;

use super::Outcome;

/// Titles, notes, the clipboard, a device's answers: each of them with what would type on a terminal that echoes it.
const TITLES: &str = "\u{1b}]0;owned\u{7}\u{1b}]2;\u{202e}owned\u{1b}\\\u{1b}]52;c;b3duZWQ=\u{7}\u{1b}]9;owned\u{7}\u{9d}0;owned\u{9c}\u{1b}]7;file://\u{1b}[31m/\u{7}";

/// Questions that a terminal would answer into somebody's input.
const QUESTIONS: &str = "\u{1b}[c\u{1b}[>c\u{1b}[6n\u{1b}[5n\u{1b}[21t\u{1b}[18t\u{1b}]10;?\u{7}\u{1b}]4;0;?\u{7}\u{1b}P$qm\u{1b}\\\u{1b}[?1$p\u{5}";

pub(super) fn print(words: &[String]) -> Result<Outcome, String> {
    let [manner] = words else { return Err("terminal titles|questions|flood".to_owned()) };
    let mut out = std::io::stdout();
    let once =
        |out: &mut std::io::Stdout, text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let mut outcome = Outcome::default();
    match manner.as_str() {
        "titles" => outcome.note(manner, once(&mut out, TITLES)),
        "questions" => outcome.note(manner, once(&mut out, QUESTIONS)),
        "flood" => {
            std::thread::spawn(move || {
                let piece =
                    [TITLES, QUESTIONS, "\u{1b}[65535;65535H\u{1b}[65535L\u{1b}[?1049h\u{1b}[?1049l\u{1b}c"]
                        .concat()
                        .repeat(200);
                // As much as keeps a screen busy, and leaves the machine to the others.
                while out.write_all(piece.as_bytes()).is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            outcome.did.push(manner.clone());
        }
        other => return Err(format!("there is no manner {other:?}")),
    }
    Ok(outcome)
}
