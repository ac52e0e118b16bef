//! Defines the requests to a session's observer: captures, changes and repaints.

use tokio::sync::oneshot;
use wharf_model::Offset;
use wharf_screen::{Format, What};

use crate::observe::view::ScreenChanges;

/// What is asked of an observer, each with the way to answer.
pub(crate) enum Request {
    /// The screen as text.
    Capture(What, Format, oneshot::Sender<String>),
    /// What changed on it.
    Since(Option<String>, oneshot::Sender<ScreenChanges>),
    /// What paints it on another terminal, and where in the log to go on from.
    Repaint(oneshot::Sender<(Vec<u8>, Offset)>),
}
