//! The colours that a terminal without a user has: constants, unless the program itself has set others.

use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

/// The first sixteen.
const BASE: [u32; 16] = [
    0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5, 0x7f_7f7f,
    0xff_0000, 0x00_ff00, 0xff_ff00, 0x5c_5cff, 0xff_00ff, 0x00_ffff, 0xff_ffff,
];
/// Their names.
pub(crate) const NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "bright-black",
    "bright-red",
    "bright-green",
    "bright-yellow",
    "bright-blue",
    "bright-magenta",
    "bright-cyan",
    "bright-white",
];
const FOREGROUND: u32 = 0xe5_e5e5;
const BACKGROUND: u32 = 0x00_0000;

/// The index of the colour of text, after which those of the background and the cursor follow.
pub(crate) const DYNAMIC: usize = NamedColor::Foreground as usize;

/// The constant behind an index of the palette, or behind 256, 257 and 258: text, background, cursor.
pub(crate) fn constant(index: usize) -> Rgb {
    let number = match index {
        0..16 => BASE[index],
        16..232 => {
            let level = |step: usize| if step == 0 { 0 } else { 55 + 40 * step as u32 };
            let at = index - 16;
            level(at / 36) << 16 | level(at / 6 % 6) << 8 | level(at % 6)
        }
        232..256 => (8 + 10 * (index as u32 - 232)) * 0x01_0101,
        _ if index == DYNAMIC + 1 => BACKGROUND,
        _ => FOREGROUND,
    };
    Rgb { r: (number >> 16) as u8, g: (number >> 8) as u8, b: number as u8 }
}

/// The place of a colour in the palette, unless it is given by value.
pub(crate) fn index(colour: Color) -> Option<usize> {
    match colour {
        Color::Named(named) => Some(named as usize),
        Color::Indexed(index) => Some(index.into()),
        Color::Spec(_) => None,
    }
}

/// Reads a colour as programs set it: `rgb:r/g/b` or `#rgb`, with one to four digits each.
pub(crate) fn parse(text: &[u8]) -> Option<Rgb> {
    let text = str::from_utf8(text).ok()?;
    let parts: Vec<&str> = if let Some(list) = text.strip_prefix("rgb:") {
        list.split('/').collect()
    } else {
        let digits = text.strip_prefix('#').filter(|digits| digits.is_ascii())?;
        let each = digits.len() / 3;
        if each == 0 || !digits.len().is_multiple_of(3) {
            return None;
        }
        (0..3).map(|part| &digits[part * each..(part + 1) * each]).collect()
    };
    let [r, g, b] = parts[..] else { return None };
    Some(Rgb { r: channel(r)?, g: channel(g)?, b: channel(b)? })
}

/// One to four digits of a channel, scaled to eight bits.
fn channel(digits: &str) -> Option<u8> {
    if !(1..=4).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let most = (1_u32 << (4 * digits.len())) - 1;
    let value = u32::from_str_radix(digits, 16).ok()?;
    Some((value * 255 / most) as u8)
}

/// The form of an answer to a question for a colour.
pub(crate) fn answer(colour: Rgb) -> String {
    let Rgb { r, g, b } = colour;
    format!("rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}")
}

/// `#rrggbb`.
pub(crate) fn hex(colour: Rgb) -> String {
    format!("#{:02x}{:02x}{:02x}", colour.r, colour.g, colour.b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_in_every_form() {
        let red = Rgb { r: 255, g: 0, b: 0 };
        for text in ["rgb:f/0/0", "rgb:ff/00/00", "rgb:ffff/0000/0000", "#f00", "#ff0000", "#ffff00000000"] {
            assert_eq!(parse(text.as_bytes()), Some(red), "{text}");
        }
        for text in ["", "#", "#ff", "rgb:", "rgb:f/0", "rgb:fffff/0/0", "rgb:+1/0/0", "red", "#é0"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_palette_is_the_usual_one() {
        assert_eq!(hex(constant(1)), "#cd0000");
        assert_eq!(hex(constant(16)), "#000000");
        assert_eq!(hex(constant(231)), "#ffffff");
        assert_eq!(hex(constant(255)), "#eeeeee");
        assert_eq!(answer(constant(257)), "rgb:0000/0000/0000");
    }
}
