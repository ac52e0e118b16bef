//! Sessions that run though no directory speaks of them, as after the state was restored from an older backup: found by
//! their holders, and by the marks that their commands carry.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use wharf_holder::linux::proc;
use wharf_model::{Millis, Name, ProcessIdentity, SessionId, Spec, Text, Ticket};

/// What a holder's process is called.
const HOLDER: &str = "wharf-holder\n";
/// The most of a process's variables or arguments that is looked at.
const MAX_LOOKED_AT: u64 = 4 << 20;

/// The sessions of an instance that run on this host and are none of these.
pub(crate) fn find(sessions: &Path, known: &HashSet<SessionId>) -> io::Result<Vec<Ticket>> {
    let boot = proc::boot()?;
    let holders = proc::pids()?.into_iter().filter(|pid| is_holder(*pid));
    let found = holders.filter_map(|holder| of_holder(sessions, known, holder, &boot));
    Ok(found.collect())
}

fn is_holder(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == HOLDER) && proc::is_kin(pid)
}

/// The session that a process holds. Its command is the first of its children that carries the session's marks.
fn of_holder(sessions: &Path, known: &HashSet<SessionId>, holder: i32, boot: &str) -> Option<Ticket> {
    let holder = proc::identity(holder, boot).ok()?;
    let children = proc::children(holder.pid).ok()?.into_iter();
    let mut commands: Vec<ProcessIdentity> =
        children.filter_map(|child| proc::identity(child, boot).ok()).collect();
    commands.sort_by_key(|command| command.start);
    let state = sessions.parent()?;
    let marked = |command: ProcessIdentity| Some((Marks::of(command.pid, state)?, command));
    let (marks, command) = commands.into_iter().find_map(marked)?;
    if known.contains(&marks.id) {
        return None;
    }
    let argv = words(&look(command.pid, "cmdline")?);
    let dir = fs::read_link(format!("/proc/{}/cwd", command.pid)).ok()?;
    let name: Name = marks.name.parse().ok()?;
    let mut spec = Spec::new(argv, Text::from(dir.as_path()));
    spec.group = name.group();
    spec.tty = fs::read_link(format!("/proc/{}/fd/0", command.pid))
        .is_ok_and(|input| input.as_os_str().as_bytes().starts_with(b"/dev/pts/"));
    let began = fs::metadata(format!("/proc/{}", command.pid)).and_then(|meta| meta.modified());
    let began = began.map(Millis::from).ok()?;
    let dir = sessions.join(marks.id.as_str());
    let first = Ticket::new(marks.id, began, name, "local", dir.as_path(), marks.token, spec);
    Some(Ticket { started: began, holder: Some(holder), command: Some(command), ..first })
}

/// By what a command is known to be a session's.
struct Marks {
    id: SessionId,
    name: String,
    token: String,
}

impl Marks {
    fn of(pid: i32, state: &Path) -> Option<Self> {
        let environ = look(pid, "environ")?;
        let get = |name: &[u8]| {
            let mut variables = environ.split(|byte| *byte == 0);
            variables.find_map(|variable| variable.strip_prefix(name)?.strip_prefix(b"="))
        };
        let text = |name: &[u8]| String::from_utf8(get(name)?.to_vec()).ok();
        if get(b"WHARF_STATE")? != state.as_os_str().as_bytes() {
            return None;
        }
        Some(Self {
            id: text(b"WHARF_SESSION_ID")?.parse().ok()?,
            name: text(b"WHARF_SESSION")?,
            token: text(b"WHARF_TOKEN")?,
        })
    }
}

fn look(pid: i32, what: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/{what}")).ok()?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_LOOKED_AT), &mut bytes).ok()?;
    Some(bytes)
}

fn words(line: &[u8]) -> Vec<Text> {
    let line = line.strip_suffix(b"\0").unwrap_or(line);
    line.split(|byte| *byte == 0).map(Text::from).collect()
}
