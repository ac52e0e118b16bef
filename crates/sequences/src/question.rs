//! The table of the questions that programs ask a terminal.
//!
//! The screen model answers those that are [`TerminalQuestion::Answered`], and the watch over unattended sessions looks for them. A
//! filter of old output drops every question, because the user's terminal may answer any.

use crate::csi::Csi;

/// Which terminals answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalQuestion {
    /// The screen model answers it, if what is asked for exists.
    Answered,
    /// Only other terminals do.
    Foreign,
}

/// Whether a control character asks for an answer.
pub fn control_question(byte: u8) -> Option<TerminalQuestion> {
    // ENQ asks for the answerback, which programs could have set.
    (byte == 0x05).then_some(TerminalQuestion::Foreign)
}

/// Whether an escape sequence does, by what follows `ESC`.
pub fn escape_question(body: &[u8]) -> Option<TerminalQuestion> {
    // Which terminal this is.
    (body == b"Z").then_some(TerminalQuestion::Answered)
}

/// Whether a control sequence does.
pub fn csi_question(csi: &Csi<'_>) -> Option<TerminalQuestion> {
    use TerminalQuestion::{Answered, Foreign};
    match (csi.marker, csi.intermediates, csi.action) {
        // Attributes, status, modes, terminal parameters, version, the kitty keyboard's flags, graphics.
        (0 | b'>' | b'=', b"", b'c')
        | (0 | b'?', b"", b'n')
        | (0 | b'?', b"$", b'p')
        | (0, b"", b'x')
        | (b'>', b"", b'q')
        | (b'?', b"", b'u' | b'S') => Some(Answered),
        // xterm's key settings.
        (b'?', b"", b'm') => Some(if csi.number(0) == 4 { Answered } else { Foreign }),
        // The window's state, place, sizes and titles.
        (0, b"", b't') => matches!(csi.number(0), 11 | 13..=16 | 18..=21).then_some(Answered),
        // `CSI > n` switches a key setting off.
        (b'>', b"", b'n') => None,
        (_, b"", b'c' | b'n' | b'x')
        // What else xterm and its forebears report: modes, presentation, checksums, the locator, colours.
        | (_, b"$", b'p' | b'u' | b'w')
        | (_, b"&", b'u')
        | (_, b"*", b'y')
        | (_, b"'", b'|')
        | (_, b"#", b'R') => Some(Foreign),
        _ => None,
    }
}

/// Whether an operating system command does, by what stands between its introducer and its end.
pub fn osc_question(body: &[u8]) -> Option<TerminalQuestion> {
    let mut fields = body.split(|byte| *byte == b';');
    let number = fields.next().unwrap_or_default();
    // Colours, and whether the terminal takes a program's status.
    if matches!(number, b"4" | b"10" | b"11" | b"12" | b"7501") && fields.clone().any(|field| field == b"?") {
        return Some(TerminalQuestion::Answered);
    }
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse::<u32>().ok());
    let colours = matches!(number, Some(4 | 5 | 10..=19));
    (colours && fields.any(|field| field.starts_with(b"?"))).then_some(TerminalQuestion::Foreign)
}

/// Whether a device control string does: for settings (DECRQSS) and for capabilities (XTGETTCAP).
pub fn dcs_question(body: &[u8]) -> Option<TerminalQuestion> {
    (body.starts_with(b"$q") || body.starts_with(b"+q")).then_some(TerminalQuestion::Answered)
}
