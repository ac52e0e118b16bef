//! Where a session finds what Wharf reads of it.

use std::path::{Path, PathBuf};

/// The directory with the holder's socket, the exit record and the log: the room in a container, on this host the session's directory.
pub(super) fn room() -> Result<PathBuf, String> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if let Some(room) = variable("HOSTILE_ROOM") {
        return Ok(room);
    }
    let events = variable("WHARF_EVENTS").filter(|path| path.starts_with("/run/wharf"));
    if let Some(room) = events.as_deref().and_then(Path::parent) {
        return Ok(room.to_owned());
    }
    let far = Path::new("/run/wharf/room");
    if far.is_dir() {
        return Ok(far.to_owned());
    }
    let (state, id) = (variable("WHARF_STATE"), variable("WHARF_SESSION_ID"));
    let home = state.zip(id).map(|(state, id)| state.join("sessions").join(id));
    home.ok_or_else(|| "this is no session of Wharf".to_owned())
}

/// The paths that a word means below the room: itself, or all whose ending it names, as in `log/*.idx`.
pub(super) fn targets(word: &str) -> Result<Vec<PathBuf>, String> {
    let room = room()?;
    let Some((dir, ending)) = word.split_once('*') else { return Ok(vec![room.join(word)]) };
    let dir = room.join(dir);
    let entries = std::fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect())
}

/// Takes away whatever has a path.
pub(super) fn clear(path: &Path) {
    if std::fs::remove_file(path).is_err() {
        let _ = std::fs::remove_dir_all(path);
    }
}
