//! The terminal's signals in the words of events and profiles.

use serde_json::{Value, json};
use wharf_screen::{
    ProgressReport, ProgressState, PromptMark, ShellPhase, Signal, StatusReport, StatusState,
};

/// What an event says of a signal: its kind and data.
pub(crate) fn event(signal: &Signal) -> Option<(&'static str, Value)> {
    Some(match signal {
        Signal::Title(title) => ("title", json!({ "title": title })),
        Signal::Bell => ("bell", Value::Null),
        Signal::Directory(directory) => ("directory", json!({ "directory": directory })),
        Signal::Notification { title, body } => ("notification", json!({ "title": title, "body": body })),
        Signal::Progress(progress) => ("progress", json!(progress)),
        Signal::Prompt(PromptMark::PromptStart) => ("prompt.started", Value::Null),
        Signal::Prompt(PromptMark::InputStart) => ("input.started", Value::Null),
        Signal::Prompt(PromptMark::OutputStart) => ("command.started", Value::Null),
        Signal::Prompt(PromptMark::Done { exit }) => ("command.ended", json!({ "exit": exit })),
        Signal::Status(status) => ("status", json!(status)),
        Signal::Clipboard(clipboard) => {
            let size = clipboard.size;
            ("clipboard.refused", json!({ "read": clipboard.read, "size": size }))
        }
        Signal::Link(link) => ("link", json!({ "link": link })),
        // They are on the screen, and come with every full-screen program.
        Signal::AltScreen(_) | Signal::Cleared => return None,
    })
}

/// An OSC 9;4 as profiles match it: `1;40`.
pub(crate) fn progress(progress: Option<ProgressReport>) -> Option<String> {
    let progress = progress?;
    let state = match progress.state {
        ProgressState::Normal => 1,
        ProgressState::Error => 2,
        ProgressState::Indeterminate => 3,
        ProgressState::Paused => 4,
    };
    Some(progress.percent.map_or_else(|| state.to_string(), |percent| format!("{state};{percent}")))
}

/// An OSC 7501 as profiles match it: `blocked:kind=permission`.
pub(crate) fn status(status: Option<&StatusReport>) -> Option<String> {
    let status = status?;
    let state = match status.state {
        StatusState::Idle => "idle",
        StatusState::Working => "working",
        StatusState::Blocked => "blocked",
        StatusState::Done => "done",
        StatusState::Error => "error",
    };
    Some(status.kind.as_ref().map_or_else(|| state.to_owned(), |kind| format!("{state}:kind={kind}")))
}

/// An OSC 133 as profiles match it: `D;0`.
pub(crate) fn shell_phase(phase: Option<ShellPhase>) -> Option<String> {
    Some(match phase? {
        ShellPhase::Prompt => "A".to_owned(),
        ShellPhase::Input => "B".to_owned(),
        ShellPhase::Running => "C".to_owned(),
        ShellPhase::Done { exit: None } => "D".to_owned(),
        ShellPhase::Done { exit: Some(code) } => format!("D;{code}"),
    })
}
