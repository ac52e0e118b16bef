//! One dev shell, captured once.

use std::ffi::OsString;

use wharf_backend::Progress;

use crate::Result;
use crate::cache::Entry;
use crate::dev_shell::DevShell;
use crate::flake::Flake;
use crate::program::{Around, Program};

/// What came of a capture.
pub(crate) enum Captured {
    /// The shell.
    Shell(Box<DevShell>),
    /// Nix cannot tell what is in it, and this is why.
    Not(String),
}

/// The shell of an entry: from before, or captured now.
pub(crate) async fn capture(
    entry: &Entry,
    flake: &Flake,
    program: &Program,
    around: Around<'_>,
    progress: &Progress,
) -> Result<Captured> {
    if let Some(shell) = entry.load() {
        return Ok(Captured::Shell(Box::new(shell)));
    }
    if !prints(&program.version) {
        return Ok(Captured::Not(format!("nix {} cannot print a dev shell", program.version)));
    }
    let _turn = entry.turn(progress).await?;
    if let Some(shell) = entry.load() {
        return Ok(Captured::Shell(Box::new(shell)));
    }
    progress.tell(format!("capturing the dev shell of {}", flake.name()));
    let args: [OsString; 5] = [
        "print-dev-env".into(),
        "--json".into(),
        "--profile".into(),
        entry.profile().into(),
        flake.reference().into(),
    ];
    let json = program.ask(around, flake.dir(), &args, progress).await?;
    let shell: DevShell = match serde_json::from_slice(&json) {
        Ok(shell) => shell,
        Err(error) => {
            return Ok(Captured::Not(format!("nix {} prints it in another form: {error}", program.version)));
        }
    };
    entry.save(&json, &shell)?;
    if let Some(cache) = entry.dir.parent() {
        crate::cache::clear(cache);
    }
    Ok(Captured::Shell(Box::new(shell)))
}

/// Whether a nix of this version prints dev shells as JSON: 2.5 and later do.
fn prints(version: &str) -> bool {
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    (major, minor) >= (2, 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ones_are_told_from_new_ones() {
        for (version, can) in
            [("2.8.0", true), ("2.26.1", true), ("3.0pre1", true), ("2.3.16", false), ("", false)]
        {
            assert_eq!(prints(version), can, "{version}");
        }
    }
}
