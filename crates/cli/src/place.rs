//! Where the instance and its sessions are, found without a daemon.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wharf_model::{Code, ExitRecord, Failure, Home, Name, SessionId, Ticket};

/// Where this user's instance lives.
pub(crate) fn home() -> Result<Home, Failure> {
    Ok(Home::resolve(|name| std::env::var_os(name))?)
}

/// The directory of a session, by its name or its id.
pub(crate) fn session(home: &Home, key: &str) -> Result<PathBuf, Failure> {
    let name: Name = key.parse()?;
    let missing = || {
        Failure::new(Code::NotFound, format!("there is no session {:?}", name.as_str()))
            .hint("`wharf ls` lists the sessions")
    };
    match fs::read_link(home.name(&name)) {
        // The link is relative to the directory of names.
        Ok(target) => {
            let dir = target.file_name().map(|id| home.sessions().join(id));
            return dir.filter(|dir| dir.is_dir()).ok_or_else(missing);
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => {
            return Err(Failure::system(
                format_args!("cannot look up the session {:?}", name.as_str()),
                &error,
            ));
        }
    }
    let id: SessionId = key.parse().map_err(|_| missing())?;
    Some(home.session(&id)).filter(|dir| dir.is_dir()).ok_or_else(missing)
}

/// How the session ended, once it has.
pub(crate) fn exit(session: &Path) -> Result<Option<ExitRecord>, Failure> {
    read(&session.join(Home::EXIT))
}

/// The session's ticket, once it is written.
pub(crate) fn ticket(session: &Path) -> Result<Option<Ticket>, Failure> {
    read(&session.join(Home::TICKET))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::system(format_args!("cannot read {}", path.display()), &error)),
    };
    let read = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::new(Code::Internal, format!("cannot read {}: {error}", path.display())))?;
    Ok(Some(read))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn sessions_are_found_by_name_and_by_id() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let id = SessionId::new(wharf_model::Millis(1), 2);
        fs::create_dir_all(home.session(&id)).unwrap();
        fs::create_dir_all(home.names()).unwrap();
        symlink(format!("../sessions/{id}"), home.names().join("demo")).unwrap();
        symlink("../sessions/0000000000000000", home.names().join("dangling")).unwrap();
        assert_eq!(session(&home, "demo").unwrap(), home.session(&id));
        assert_eq!(session(&home, id.as_str()).unwrap(), home.session(&id));
        for (key, code) in [
            ("dem", Code::NotFound),
            ("dangling", Code::NotFound),
            ("../demo", Code::InvalidName),
            ("", Code::InvalidName),
        ] {
            assert_eq!(session(&home, key).unwrap_err().code, code, "{key:?}");
        }
        assert_eq!(exit(&home.session(&id)).unwrap(), None);
    }

    #[test]
    fn an_instance_that_never_was_has_no_sessions() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(session(&Home::below(root.path()), "demo").unwrap_err().code, Code::NotFound);
    }
}
