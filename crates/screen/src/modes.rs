//! Lists the terminal modes that a program has set: paste, mouse, keys, cursor.

use serde::{Deserialize, Serialize};

/// How a program wants its input, and where its cursor is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "a terminal's modes are switches")]
pub struct Modes {
    /// Pasted text is to be bracketed (2004).
    pub bracketed_paste: bool,
    /// The alternate screen is shown (1049, 1047, 47).
    pub alternate: bool,
    /// Arrow keys send application sequences (1).
    pub application_cursor: bool,
    /// The keypad sends application sequences.
    pub application_keypad: bool,
    /// Which mouse events are wanted.
    pub mouse: Mouse,
    /// How mouse events are written.
    pub mouse_encoding: MouseEncoding,
    /// Gaining and losing focus are to be reported (1004).
    pub focus: bool,
    /// The flags of the kitty keyboard protocol.
    pub kitty: u8,
    /// The level of xterm's modifyOtherKeys.
    pub modify_other_keys: u8,
    /// The cursor is shown (25).
    pub cursor_visible: bool,
    /// The cursor's row and column, from 0.
    pub cursor: (u16, u16),
    /// The program is in the middle of an update that is to be shown at once (2026).
    pub synchronized: bool,
    /// Text runs on into the next row (7).
    pub wrap: bool,
}

/// Which mouse events a program wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mouse {
    /// None.
    #[default]
    Off,
    /// Presses (9).
    Press,
    /// Presses and releases (1000).
    Click,
    /// Also motion with a button held (1002).
    Drag,
    /// Also all other motion (1003).
    Motion,
}

/// How mouse events are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MouseEncoding {
    /// As three bytes.
    #[default]
    Bytes,
    /// As three characters (1005).
    Utf8,
    /// As numbers (1006).
    Sgr,
    /// As numbers, the way of urxvt (1015).
    Urxvt,
    /// As numbers, in pixels (1016).
    Pixels,
}
