//! Checks that the programs which a spec requires are in the session's PATH.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Access, access};
use wharf_model::{Code, Failure, Text};

use crate::Result;

/// Refuses a start where a program that it needs is not in the session's PATH.
pub(crate) fn check(require: &[Text], env: &[(Text, Text)], dir: &Path) -> Result<()> {
    if require.is_empty() {
        return Ok(());
    }
    let path = env.iter().find(|(name, _)| name.as_bytes() == b"PATH").map(|(_, value)| value.as_bytes());
    let path = path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    match require.iter().find(|program| !found(program, path, dir)) {
        None => Ok(()),
        Some(missing) => {
            let missing = missing.lossy();
            Err(Failure::new(Code::MissingRequirement, format!("{missing:?} is not in the session's PATH"))
                .hint(format!("install {missing}, or set PATH with -e PATH=…")))
        }
    }
}

fn found(program: &Text, path: &[u8], dir: &Path) -> bool {
    let runs = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if program.as_bytes().contains(&b'/') {
        return runs(&dir.join(program.as_path()));
    }
    // An empty part of PATH is the directory that the command runs in.
    path.split(|byte| *byte == b':')
        .any(|part| runs(&dir.join(OsStr::from_bytes(part)).join(program.as_path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_in_the_sessions_own_path() {
        let env = |path: &str| vec![(Text::from("PATH"), Text::from(path))];
        let dir = Path::new("/");
        assert!(check(&["sh".into()], &env("/nowhere:/bin"), dir).is_ok());
        assert!(check(&["/bin/sh".into()], &env(""), dir).is_ok());
        let missing = check(&["sh".into(), "no-such".into()], &env("/bin"), dir).unwrap_err();
        assert_eq!(missing.code, Code::MissingRequirement);
        assert!(missing.message.contains("no-such"));
        assert!(check(&["sh".into()], &env("/nowhere"), dir).is_err());
        assert!(
            check(&["passwd".into()], &env("/etc"), dir).is_err(),
            "a file that cannot be run counts for nothing"
        );
    }
}
