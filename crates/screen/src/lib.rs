//! The terminal model: a screen that is rebuilt from a session's output. It does no I/O.

mod ansi;
mod capture;
mod changes;
mod checkpoint;
mod colour;
mod csi;
mod glyph;
mod heard;
mod html;
mod json;
mod modes;
mod notes;
mod osc;
mod place;
mod queries;
mod reading;
mod repaint;
mod report;
mod row;
mod scanner;
mod screen;
mod signal;
mod style;
mod terminal;

pub use capture::{Format, What};
pub use changes::Changes;
pub use heard::Heard;
pub use modes::{Modes, Mouse, MouseEncoding};
pub use queries::Queries;
pub use row::Row;
pub use screen::Screen;
pub use signal::{Clipboard, Mark, Progress, ProgressState, ShellPhase, Signal, Status, StatusState};
