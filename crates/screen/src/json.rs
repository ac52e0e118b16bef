//! A capture as data.

use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::color::Colors;
use serde::Serialize;
use wharf_model::Size;

use crate::capture::Piece;
use crate::style::{self, Style};
use crate::{Modes, Screen};

#[derive(Serialize)]
struct Capture<'a> {
    size: Size,
    title: &'a str,
    modes: Modes,
    lines: Vec<Captured>,
}

#[derive(Serialize)]
struct Captured {
    text: String,
    /// Where the alternate screen begins.
    #[serde(skip_serializing_if = "is_false")]
    marker: bool,
    runs: Vec<Run>,
}

#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct Run {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bg: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    bold: bool,
    #[serde(skip_serializing_if = "is_false")]
    dim: bool,
    #[serde(skip_serializing_if = "is_false")]
    italic: bool,
    #[serde(skip_serializing_if = "is_false")]
    underline: bool,
    #[serde(skip_serializing_if = "is_false")]
    inverse: bool,
    #[serde(skip_serializing_if = "is_false")]
    hidden: bool,
    #[serde(skip_serializing_if = "is_false")]
    strike: bool,
    /// As the program gave it: whoever makes a link of it decides whether it is safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}

pub(crate) fn write(screen: &Screen, pieces: &[Piece<'_>]) -> String {
    let colors = screen.terminal.term.colors();
    let lines = pieces
        .iter()
        .map(|piece| Captured {
            text: piece.text(),
            marker: matches!(piece, Piece::Marker),
            runs: piece.runs().into_iter().map(|(style, text)| run(&style, text, colors)).collect(),
        })
        .collect();
    let capture = Capture { size: screen.size(), title: screen.title(), modes: screen.modes(), lines };
    let mut text = serde_json::to_string(&capture).expect("strings, numbers and switches are JSON");
    text.push('\n');
    text
}

fn run(style: &Style, text: String, colors: &Colors) -> Run {
    let plain = Style::default();
    let has = |flag| style.flags.intersects(flag);
    Run {
        text,
        fg: (style.fg != plain.fg).then(|| style::name(style.fg, colors)),
        bg: (style.bg != plain.bg).then(|| style::name(style.bg, colors)),
        bold: has(Flags::BOLD),
        dim: has(Flags::DIM),
        italic: has(Flags::ITALIC),
        underline: has(Flags::ALL_UNDERLINES),
        inverse: has(Flags::INVERSE),
        hidden: has(Flags::HIDDEN),
        strike: has(Flags::STRIKEOUT),
        link: style.link.as_ref().map(|link| link.uri().to_owned()),
    }
}
