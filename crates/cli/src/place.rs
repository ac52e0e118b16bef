//! Where the instance and its sessions are, found without a daemon.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wharf_boundary::SessionDir;
use wharf_model::{Code, ExitRecord, Failure, Home, Name, SessionId, Ticket};

/// Where this user's instance lives. A place that is another's, or that others could replace, is refused before anything
/// there is believed.
pub(crate) fn home() -> Result<Home, Failure> {
    let home = named_home()?;
    wharf_api::check_ours(home.state())?;
    Ok(home)
}

/// The same, whoever's it is.
pub(crate) fn named_home() -> Result<Home, Failure> {
    Ok(Home::resolve(|name| std::env::var_os(name))?)
}

/// The directory of a session, by its name or its id.
pub(crate) fn session(home: &Home, key: &str) -> Result<PathBuf, Failure> {
    let name: Name = key.parse()?;
    let missing = || {
        let hint = Name::hint_of(&in_groups(home, &name));
        Failure::new(Code::NotFound, format!("there is no session {:?}", name.as_str()))
            .hint(hint.unwrap_or_else(|| "`wharf ls` lists the sessions".to_owned()))
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

/// The names of this word in groups, in order.
fn in_groups(home: &Home, word: &Name) -> Vec<Name> {
    let links = fs::read_dir(home.names()).into_iter().flatten().filter_map(Result::ok);
    let names = links.filter_map(|link| Home::name_of(&link.file_name()));
    let mut names: Vec<Name> = names.filter(|name| name != word && name.word() == word.as_str()).collect();
    names.sort();
    names
}

/// How the session ended, once it has.
pub(crate) fn exit(session: &Path) -> Result<Option<ExitRecord>, Failure> {
    let path = session.join(Home::EXIT);
    parse(&path, SessionDir::open(session).and_then(|session| session.read_exit()))
}

/// The session's ticket, once it is written.
pub(crate) fn ticket(session: &Path) -> Result<Option<Ticket>, Failure> {
    let path = session.join(Home::TICKET);
    parse(&path, SessionDir::open(session).and_then(|session| session.read_ticket().map(Some)))
}

/// Whether the session has ended, whatever its record says.
pub(crate) fn has_exit(session: &Path) -> bool {
    SessionDir::open(session).is_ok_and(|session| session.has_exit())
}

fn parse<T: serde::de::DeserializeOwned>(
    path: &Path,
    read: io::Result<Option<Vec<u8>>>,
) -> Result<Option<T>, Failure> {
    let bytes = match read {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
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
            ("team/demo", Code::NotFound),
            ("../demo", Code::InvalidName),
            ("team/../demo", Code::InvalidName),
            ("team/..", Code::InvalidName),
            ("team:api", Code::InvalidName),
            ("", Code::InvalidName),
        ] {
            assert_eq!(session(&home, key).unwrap_err().code, code, "{key:?}");
        }
        assert_eq!(exit(&home.session(&id)).unwrap(), None);
    }

    #[test]
    fn a_name_in_a_group_is_found_and_told_to_whom_lacks_the_group() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::below(root.path());
        let id = SessionId::new(wharf_model::Millis(1), 2);
        fs::create_dir_all(home.session(&id)).unwrap();
        fs::create_dir_all(home.names()).unwrap();
        for file in ["team:api", "other:api", "api:other", "team:apis"] {
            symlink(format!("../sessions/{id}"), home.names().join(file)).unwrap();
        }
        assert_eq!(session(&home, "team/api").unwrap(), home.session(&id));
        let failure = session(&home, "api").unwrap_err();
        assert_eq!(failure.code, Code::NotFound);
        assert_eq!(failure.hint.as_deref(), Some("there are other/api, team/api"));
        assert_eq!(session(&home, "apis").unwrap_err().hint.as_deref(), Some("there is team/apis"));
        let hint = session(&home, "nosuch/api").unwrap_err().hint;
        assert_eq!(hint.as_deref(), Some("`wharf ls` lists the sessions"));
    }

    #[test]
    fn an_instance_that_never_was_has_no_sessions() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(session(&Home::below(root.path()), "demo").unwrap_err().code, Code::NotFound);
    }
}
