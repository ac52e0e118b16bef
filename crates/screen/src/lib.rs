//! The terminal model: a screen that is rebuilt from a session's output. It does no I/O.
//!
//! A [`Screen`] is fed output in pieces of any size, and says at once what else was in it: [`Signal`]s for the
//! session's events, and the answers to the questions that programs ask their terminal. What stands on it can be taken
//! as text ([`Screen::capture`]), painted on another terminal ([`Screen::repaint`]), watched by what changes
//! ([`Screen::since`]), and put aside for the next daemon ([`Screen::checkpoint`]). What holds for any output at all:
//!
//! - However it is cut into pieces, the screen, the signals and the replies are the same.
//! - A repaint, shown on a fresh terminal, is the same screen with the same modes. It asks nothing.
//! - A screen restored from a checkpoint goes on as if nothing had been.
//! - No size loses text while the scrollback has room for it.
//! - Nothing that a program sends makes a screen grow beyond its cells, or is ever sent back as an answer.
//!
//! The grid, its reflow and what the standard sequences do to it are alacritty's; around it stand a scanner
//! that gives it whole sequences only, and the state that it keeps to itself. None of its types is public here.
//!
//! ```
//! use wharf_model::Size;
//! use wharf_screen::{Format, Screen, Signal, What};
//!
//! let mut screen = Screen::new(Size { cols: 40, rows: 4 }, 1000);
//! let heard = screen.feed(b"\x1b]2;at work\x07hello, \x1b[1mworld\x1b[m\r\n\x1b[6n");
//! assert_eq!(heard.signals[0].1, Signal::Title("at work".into()));
//! assert_eq!(heard.replies, b"\x1b[2;1R");
//! assert_eq!(screen.capture(What::Screen, Format::Plain), "hello, world\n");
//! ```

mod ansi;
mod area;
mod capture;
mod changes;
mod checkpoint;
mod colour;
mod csi;
mod edge;
mod glyph;
mod heard;
mod html;
mod json;
mod modes;
mod notes;
mod osc;
mod place;
mod reading;
mod rectangle;
mod repaint;
mod replies;
mod row;
mod screen;
mod sides;
mod signal;
mod span;
mod style;
mod terminal;
mod within;

pub use capture::{Format, What};
pub use changes::Changes;
pub use heard::Heard;
pub use modes::{Modes, Mouse, MouseEncoding};
pub use row::TerminalRow;
pub use screen::Screen;
pub use signal::{
    Clipboard, ProgressReport, ProgressState, PromptMark, ShellPhase, Signal, StatusReport, StatusState,
};
