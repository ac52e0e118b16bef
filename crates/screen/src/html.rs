//! A capture as an element of a page: text is escaped, looks are inline styles, and only harmless links are links.

use std::fmt::Write as _;

use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::color::Colors;

use crate::capture::Piece;
use crate::colour;
use crate::style::Style;

pub(crate) fn write(pieces: &[Piece<'_>], colors: &Colors) -> String {
    let colour = |index: usize| colour::hex(colors[index].unwrap_or_else(|| colour::constant(index)));
    let mut out = String::new();
    let (fg, bg) = (colour(colour::DYNAMIC), colour(colour::DYNAMIC + 1));
    let _ = write!(
        out,
        "<pre class=\"wharf-screen\" style=\"color:{fg};background:{bg};font-family:monospace\">"
    );
    for piece in pieces {
        for (style, text) in piece.runs() {
            run(&mut out, &style, &text, colors);
        }
        out.push('\n');
    }
    out.push_str("</pre>\n");
    out
}

fn run(out: &mut String, style: &Style, text: &str, colors: &Colors) {
    let link = style.safe_link();
    if let Some(uri) = link {
        out.push_str("<a rel=\"noopener noreferrer nofollow\" href=\"");
        escape(out, uri);
        out.push_str("\">");
    }
    let css = css(style, colors);
    if css.is_empty() {
        escape(out, text);
    } else {
        let _ = write!(out, "<span style=\"{css}\">");
        escape(out, text);
        out.push_str("</span>");
    }
    if link.is_some() {
        out.push_str("</a>");
    }
}

fn css(style: &Style, colors: &Colors) -> String {
    let mut css = String::new();
    let (fg, bg) = style.grounds(colors);
    if let Some(fg) = fg {
        let _ = write!(css, "color:{};", colour::hex(fg));
    }
    if let Some(bg) = bg {
        let _ = write!(css, "background:{};", colour::hex(bg));
    }
    for (flag, rule) in [
        (Flags::BOLD, "font-weight:bold;"),
        (Flags::DIM, "opacity:.67;"),
        (Flags::ITALIC, "font-style:italic;"),
    ] {
        if style.flags.contains(flag) {
            css.push_str(rule);
        }
    }
    let lines = [(Flags::ALL_UNDERLINES, "underline"), (Flags::STRIKEOUT, "line-through")];
    let lines: Vec<_> =
        lines.iter().filter(|(flag, _)| style.flags.intersects(*flag)).map(|line| line.1).collect();
    if !lines.is_empty() {
        let _ = write!(css, "text-decoration:{};", lines.join(" "));
    }
    css
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
}
