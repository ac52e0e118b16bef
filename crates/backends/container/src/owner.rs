//! Says whose a container is: several may use one engine, and what is not beyond doubt ours is left alone.

pub(crate) mod ended_sessions;
pub(crate) mod failed_starts;
pub(crate) mod leftover_report;
pub(crate) mod lost_tickets;
pub(crate) mod orphaned_containers;

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use wharf_model::{Failure, Name, SessionId, Ticket};

use crate::engine::inspect::Found;
use crate::ticket_data::is_kept;

/// The label with the id of the install.
const INSTALL: &str = "wharf.install";
/// The longest install id that is read, in bytes.
const MAX_INSTALL_ID_LEN: u64 = 64;
/// The label with the id of the install's host.
const HOST: &str = "wharf.host";
/// The label with the id of that host's boot.
const BOOT: &str = "wharf.boot";
/// The label with the session's id.
const SESSION: &str = "wharf.session";
/// The fingerprint of a container that sessions share. The label's name is older.
const SHARED: &str = "wharf.berth";
/// The label with the number of the run.
const RUN: &str = "wharf.run";
/// The label with the session's name at its start.
const NAME: &str = "wharf.name";
/// The label that says whether the container stays after its end.
const KEPT: &str = "wharf.kept";
/// All of these. An image can bring along any others.
const ALL: [&str; 8] = [INSTALL, HOST, BOOT, SESSION, SHARED, RUN, NAME, KEPT];
/// The prefix of all of these. Users cannot set labels that begin with it.
const OURS: &str = "wharf.";

/// An install on a host. One directory may be seen by two hosts, and one engine by two installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    install: String,
    host: String,
    boot: String,
}

impl Owner {
    /// The owner for an instance's directory. The first caller gives the install its id.
    pub(crate) fn of_this_install(state: &Path) -> Result<Self, Failure> {
        let path = state.join("install");
        let install = install_id(&path)
            .map_err(|error| Failure::system(format!("cannot read or write {}", path.display()), &error))?;
        let boot = wharf_holder::linux::proc::boot();
        let boot = boot.map_err(|error| Failure::system("cannot tell one boot from another", &error))?;
        Ok(Self { install, host: host(), boot })
    }

    /// What a session's container carries: its user's labels, its name, and what says whose it is, which has the last word.
    pub(crate) fn labels(&self, ticket: &Ticket) -> HashMap<String, String> {
        let named = ticket.spec.labels.iter().filter(|(key, _)| !is_label(key));
        let mut all: HashMap<String, String> =
            named.map(|(key, value)| (key.clone(), value.clone())).collect();
        let pairs = [
            // Said either way: an image that was made of a container hands its labels on.
            (KEPT, is_kept(ticket).to_string()),
            (NAME, ticket.name.as_str().to_owned()),
            (INSTALL, self.install.clone()),
            (HOST, self.host.clone()),
            (BOOT, self.boot.clone()),
            (SESSION, ticket.id.as_str().to_owned()),
            (RUN, ticket.run.to_string()),
        ];
        all.extend(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)));
        all
    }

    /// The labels of a container that several sessions share.
    pub(crate) fn shared_labels(&self, fingerprint: &str) -> HashMap<String, String> {
        let pairs = [
            (INSTALL, self.install.as_str()),
            (HOST, self.host.as_str()),
            (BOOT, self.boot.as_str()),
            (SHARED, fingerprint),
        ];
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    /// Whether a container is the shared one with that fingerprint, and ours beyond doubt.
    pub(crate) fn owns_shared(&self, container: &Found, fingerprint: &str) -> bool {
        let is = |key: &str, value: &str| container.label(key) == Some(value);
        is(INSTALL, &self.install) && is(HOST, &self.host) && is(SHARED, fingerprint)
    }

    /// The fingerprint of a shared container that was made here.
    pub(crate) fn shared_fingerprint(&self, labels: &HashMap<String, String>) -> Option<String> {
        let label = |key: &str| labels.get(key).map(String::as_str);
        let ours = label(INSTALL) == Some(&self.install) && label(HOST) == Some(&self.host);
        label(SHARED).filter(|_| ours).map(str::to_owned)
    }

    /// What an image carries that is built here.
    pub(crate) fn build_labels(&self) -> HashMap<String, String> {
        [(INSTALL, &self.install), (HOST, &self.host)]
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .into()
    }

    /// Whether an image was built here, beyond doubt.
    pub(crate) fn built(&self, labels: &HashMap<String, String>) -> bool {
        // A container that was made into an image by hand carries a session too, and is somebody's work.
        !labels.contains_key(SESSION)
            && self.build_labels().iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    /// The install's id.
    pub(crate) fn install(&self) -> &str {
        &self.install
    }

    /// What selects all that is this install's, on whatever host.
    pub(crate) fn selector(&self) -> String {
        format!("{INSTALL}={}", self.install)
    }

    /// The session that a container was made for, where it was made here.
    pub(crate) fn session(&self, labels: &HashMap<String, String>) -> Option<SessionId> {
        let label = |key: &str| labels.get(key).map(String::as_str);
        let ours = label(INSTALL) == Some(&self.install) && label(HOST) == Some(&self.host);
        label(SESSION).filter(|_| ours)?.parse().ok()
    }

    /// Whether a container is that session's, beyond doubt.
    pub(crate) fn owns(&self, container: &Found, session: &SessionId) -> bool {
        let is = |key: &str, value: &str| container.label(key) == Some(value);
        is(INSTALL, &self.install) && is(HOST, &self.host) && is(SESSION, session.as_str())
    }
}

/// Whether an install has an id: without one no engine ever got a container of ours.
pub(crate) fn has_install_id(state: &Path) -> bool {
    read(&state.join("install")).is_ok_and(|mark| !mark.is_empty())
}

/// What the labels of a session's container tell of the session.
pub(crate) struct ToldByLabels {
    /// Its name at its start.
    pub(crate) name: Option<Name>,
    /// The number of its run.
    pub(crate) run: u32,
    /// Whether the container stays after its end.
    pub(crate) kept: bool,
}

/// Reads what the labels of a session's container tell.
pub(crate) fn told(container: &Found) -> ToldByLabels {
    ToldByLabels {
        name: container.label(NAME).and_then(|name| name.parse().ok()),
        run: container.label(RUN).and_then(|run| run.parse().ok()).unwrap_or(1),
        kept: container.label(KEPT) == Some("true"),
    }
}

/// Whether a container is the place of a session, whoever's.
pub(crate) fn is_any(container: &Found) -> bool {
    container.label(SESSION).is_some() || container.label(SHARED).is_some()
}

/// Whether a label is one of ours, by its name.
pub(crate) fn is_label(name: &str) -> bool {
    name.starts_with(OURS)
}

/// Whether a label is one of those that we set and read.
pub(crate) fn is_own_label(name: &str) -> bool {
    ALL.contains(&name)
}

/// Whether a container with these labels stays after its end.
pub(crate) fn stays(labels: &HashMap<String, String>) -> bool {
    labels.get(KEPT).is_some_and(|kept| kept == "true")
}

/// Whether a container is of that very run: the next one has the same name.
pub(crate) fn is_run(container: &Found, run: u32) -> bool {
    container.label(RUN).and_then(|label| label.parse().ok()) == Some(run)
}

/// An id of this host that stays when it is renamed. Hashed, because the machine's own id is not for others to read.
fn host() -> String {
    let read = |path: &str| fs::read_to_string(path).ok().filter(|text| !text.trim().is_empty());
    let id = read("/etc/machine-id").or_else(|| read("/proc/sys/kernel/hostname")).unwrap_or_default();
    // FNV-1a: the same in every version.
    let hash = id.trim().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// What a session's container is called. One name a session: the engine sees to it that there are never two.
pub(crate) fn container_name(session: &SessionId) -> String {
    format!("wharf-{session}")
}

/// Reads the install's id, or makes it. Of several that make it at once one wins, and the others read its id.
fn install_id(path: &Path) -> io::Result<String> {
    for _ in 0..2 {
        match read(path) {
            Ok(mark) if !mark.is_empty() => return Ok(mark),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let new = path.with_extension(format!("{}", u64::from_le_bytes(random)));
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(format!("{:016x}", u64::from_le_bytes(random)).as_bytes())?;
        // A link and not a rename: the first one stays.
        let linked = fs::hard_link(&new, path);
        fs::remove_file(&new)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    read(path)
}

/// The install's id. Anything but a regular file in its place is neither followed nor waited for.
fn read(path: &Path) -> io::Result<String> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let bytes = wharf_boundary::Dir::open(dir)?.read(name, MAX_INSTALL_ID_LEN)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_model::Millis;

    #[test]
    fn an_install_keeps_its_mark_and_is_told_from_another() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let owner = Owner::of_this_install(one.path()).unwrap();
        assert_eq!(Owner::of_this_install(one.path()).unwrap(), owner);
        let other = Owner::of_this_install(two.path()).unwrap();
        assert_ne!(other.install, owner.install);
        let id = SessionId::new(Millis(1), 7);
        let labels = serde_json::json!({ INSTALL: owner.install, HOST: owner.host, SESSION: id.as_str(), "other": "x" });
        let found: Found =
            serde_json::from_value(serde_json::json!({ "Config": { "Labels": labels } })).unwrap();
        assert!(owner.owns(&found, &id));
        assert!(!other.owns(&found, &id));
        assert!(!owner.owns(&found, &SessionId::new(Millis(1), 8)));
        let elsewhere = Owner { host: "elsewhere".to_owned(), ..owner };
        assert!(!elsewhere.owns(&found, &id));
        assert!(!elsewhere.owns(&Found::default(), &id));
        let found: Found =
            serde_json::from_value(serde_json::json!({ "Config": { "Labels": { RUN: "2" } } })).unwrap();
        assert!(is_run(&found, 2) && !is_run(&found, 1) && !is_run(&Found::default(), 1));
    }

    #[test]
    fn a_users_labels_stand_on_the_container_and_never_in_the_place_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let owner = Owner::of_this_install(dir.path()).unwrap();
        let id = SessionId::new(Millis(1), 7);
        let mut spec = wharf_model::Spec::new(["x"], "/");
        for (key, value) in
            [("team", "a"), (SESSION, "other"), (SHARED, "mark"), ("wharf.new", "x"), (NAME, "y")]
        {
            spec.labels.insert(key.to_owned(), value.to_owned());
        }
        let ticket = Ticket {
            id: id.clone(),
            name: "demo".parse().unwrap(),
            run: 3,
            backend: "docker".to_owned(),
            dir: "/x".into(),
            token: "t".to_owned(),
            created: Millis(1),
            started: Millis(0),
            holder: None,
            command: None,
            scope: wharf_model::Scope::default(),
            spec,
            private: None,
        };
        let labels = owner.labels(&ticket);
        let of = |key: &str| labels.get(key).map(String::as_str);
        assert_eq!((of("team"), of(NAME), of(SESSION)), (Some("a"), Some("demo"), Some(id.as_str())));
        assert_eq!((of(SHARED), of("wharf.new"), of(RUN)), (None, None, Some("3")));
        assert!(!stays(&labels));
    }

    #[test]
    fn what_is_no_mark_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("install");
        fs::write(dir.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("secret", &path).unwrap();
        assert!(install_id(&path).is_err());
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert!(install_id(&path).is_err());
    }

    #[test]
    fn many_at_once_agree_on_one_mark() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("install");
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || install_id(&path).unwrap())
            })
            .collect();
        let marks: Vec<String> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(marks.iter().all(|mark| *mark == marks[0] && mark.len() == 16), "{marks:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
