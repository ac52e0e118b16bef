//! How a cell looks.

use std::fmt::Write as _;

use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::term::color::Colors;
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

use crate::colour;

/// What of a cell's flags is a matter of looks.
const STYLE_FLAGS: Flags = Flags::INVERSE
    .union(Flags::BOLD)
    .union(Flags::ITALIC)
    .union(Flags::DIM)
    .union(Flags::HIDDEN)
    .union(Flags::STRIKEOUT)
    .union(Flags::ALL_UNDERLINES);

/// Which parameter switches each on.
const SWITCHES: [(Flags, &str); 11] = [
    (Flags::BOLD, "1"),
    (Flags::DIM, "2"),
    (Flags::ITALIC, "3"),
    (Flags::UNDERLINE, "4"),
    (Flags::DOUBLE_UNDERLINE, "4:2"),
    (Flags::UNDERCURL, "4:3"),
    (Flags::DOTTED_UNDERLINE, "4:4"),
    (Flags::DASHED_UNDERLINE, "4:5"),
    (Flags::INVERSE, "7"),
    (Flags::HIDDEN, "8"),
    (Flags::STRIKEOUT, "9"),
];

const PLAIN: Color = Color::Named(NamedColor::Foreground);
const BARE: Color = Color::Named(NamedColor::Background);

/// Colours, attributes and link of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) fg: Color,
    pub(crate) bg: Color,
    pub(crate) flags: Flags,
    pub(crate) underline: Option<Color>,
    pub(crate) link: Option<Hyperlink>,
}

impl Default for Style {
    fn default() -> Self {
        Self::of(&Cell::default())
    }
}

impl Style {
    pub(crate) fn of(cell: &Cell) -> Self {
        Self {
            fg: cell.fg,
            bg: cell.bg,
            flags: cell.flags & STYLE_FLAGS,
            underline: cell.underline_color(),
            link: cell.hyperlink(),
        }
    }

    /// Whether a cell has this style; cheaper than making one of it.
    pub(crate) fn fits(&self, cell: &Cell) -> bool {
        self.fg == cell.fg
            && self.bg == cell.bg
            && self.flags == cell.flags & STYLE_FLAGS
            && self.underline == cell.underline_color()
            && match (&self.link, cell.extra.is_some()) {
                (None, false) => true,
                _ => self.link == cell.hyperlink(),
            }
    }

    pub(crate) fn bare(&self) -> bool {
        self.bg == BARE
    }

    /// The sequence that switches exactly this on, whatever was on before. The link is not part of it.
    pub(crate) fn sequence(&self) -> String {
        let mut sequence = String::from("\x1b[0");
        for (_, parameter) in SWITCHES.iter().filter(|(flag, _)| self.flags.contains(*flag)) {
            let _ = write!(sequence, ";{parameter}");
        }
        if self.fg != PLAIN {
            ground(&mut sequence, self.fg, 30, 38);
        }
        if self.bg != BARE {
            ground(&mut sequence, self.bg, 40, 48);
        }
        if let Some(colour) = self.underline {
            ground(&mut sequence, colour, 0, 58);
        }
        sequence.push('m');
        sequence
    }

    /// The colours as shown: of text and of what is behind it; `None` where it is the terminal's own.
    pub(crate) fn grounds(&self, colors: &Colors) -> (Option<Rgb>, Option<Rgb>) {
        let mut fg = (self.fg != PLAIN).then(|| shown(self.fg, colors));
        let mut bg = (self.bg != BARE).then(|| shown(self.bg, colors));
        if self.flags.contains(Flags::INVERSE) {
            let front = bg.unwrap_or_else(|| shown(BARE, colors));
            bg = Some(fg.unwrap_or_else(|| shown(PLAIN, colors)));
            fg = Some(front);
        }
        if self.flags.contains(Flags::HIDDEN) {
            fg = Some(bg.unwrap_or_else(|| shown(BARE, colors)));
        }
        (fg, bg)
    }

    /// Where the link points, if a user may be sent there by a click.
    pub(crate) fn safe_link(&self) -> Option<&str> {
        let uri = self.link.as_ref()?.uri();
        is_safe(uri).then_some(uri)
    }
}

/// The name of a colour for programs: one of the sixteen, or its value.
pub(crate) fn name(color: Color, colors: &Colors) -> String {
    match colour::index(color) {
        Some(index @ 0..16) if colors[index].is_none() => colour::NAMES[index].to_owned(),
        _ => colour::hex(shown(color, colors)),
    }
}

fn shown(color: Color, colors: &Colors) -> Rgb {
    match color {
        Color::Spec(rgb) => rgb,
        Color::Named(_) | Color::Indexed(_) => {
            let index = colour::index(color).unwrap_or(colour::DYNAMIC);
            colors[index].unwrap_or_else(|| colour::constant(index))
        }
    }
}

fn ground(sequence: &mut String, color: Color, base: usize, extended: usize) {
    let _ = match color {
        Color::Named(named) if (named as usize) < 8 => write!(sequence, ";{}", base + named as usize),
        Color::Named(named) if (named as usize) < 16 => write!(sequence, ";{}", base + 52 + named as usize),
        Color::Named(_) => Ok(()),
        Color::Indexed(index) => write!(sequence, ";{extended};5;{index}"),
        Color::Spec(Rgb { r, g, b }) => write!(sequence, ";{extended};2;{r};{g};{b}"),
    };
}

/// Whether a link is of a kind that runs nothing.
fn is_safe(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else { return false };
    ["http", "https", "mailto", "ftp"].iter().any(|safe| scheme.eq_ignore_ascii_case(safe))
        && !uri.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_is_one_sequence() {
        assert_eq!(Style::default().sequence(), "\x1b[0m");
        let style = Style {
            fg: Color::Named(NamedColor::BrightRed),
            bg: Color::Indexed(200),
            flags: Flags::BOLD | Flags::UNDERCURL,
            underline: Some(Color::Spec(Rgb { r: 1, g: 2, b: 3 })),
            link: None,
        };
        assert_eq!(style.sequence(), "\x1b[0;1;4:3;91;48;5;200;58;2;1;2;3m");
    }

    #[test]
    fn only_harmless_links_are_safe() {
        for uri in ["https://a.b/c?d=e;f", "HTTP://x", "mailto:a@b"] {
            assert!(is_safe(uri), "{uri}");
        }
        for uri in ["javascript:alert(1)", " javascript:x", "data:text/html,x", "file:///etc/passwd", "x", ""]
        {
            assert!(!is_safe(uri), "{uri}");
        }
    }
}
