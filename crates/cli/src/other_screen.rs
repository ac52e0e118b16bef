//! Switches the user's terminal to its alternate screen, and back when dropped.

use crate::output;
use crate::trouble::Trouble;

/// The terminal's second screen for as long as this lives.
pub(crate) struct OtherScreen;

impl OtherScreen {
    pub(crate) fn enter() -> Result<Self, Trouble> {
        output::raw(b"\x1b[?1049h\x1b[?25l")?;
        Ok(Self)
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
        let _ = output::raw(b"\x1b[?25h\x1b[?1049l");
    }
}
