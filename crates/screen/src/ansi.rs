//! A capture with the sequences that colour it, and none that do anything else.

use crate::capture::Piece;
use crate::style::Style;

pub(crate) fn write(pieces: &[Piece<'_>]) -> String {
    let plain = Style::default();
    let mut out = String::new();
    for piece in pieces {
        let mut styled = false;
        for (style, text) in piece.runs() {
            let looks = Style { link: None, ..style.clone() };
            if looks != plain || styled {
                out.push_str(&style.sequence());
                styled = looks != plain;
            }
            match style.safe_link() {
                Some(uri) => {
                    out.push_str("\x1b]8;;");
                    out.push_str(uri);
                    out.push_str("\x1b\\");
                    out.push_str(&text);
                    out.push_str("\x1b]8;;\x1b\\");
                }
                None => out.push_str(&text),
            }
        }
        if styled {
            out.push_str("\x1b[0m");
        }
        out.push('\n');
    }
    out
}
