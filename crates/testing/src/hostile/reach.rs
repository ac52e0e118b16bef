//! What can be reached from here that should not: `reach [secret PATH] [victim PATH] [socket PATH] [dir PATH]...`, and `type`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::{Outcome, system};

/// Tries everything once. `did` is what was possible: a test says which of that may be.
pub(super) fn look_around(words: &[String]) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    for pair in words.chunks(2) {
        let [what, path] = pair else { return Err("reach [secret|victim|socket|dir PATH]...".to_owned()) };
        let path = Path::new(path);
        match what.as_str() {
            "secret" => read_by_every_way(&mut outcome, path),
            "victim" => write_by_every_way(&mut outcome, path),
            "socket" => connect_by_every_way(&mut outcome, path),
            "dir" => {
                list(&mut outcome, path);
                let mine = path.join("hostile-was-here");
                outcome.note(format!("write in {}", path.display()), File::create(&mine));
                let _ = fs::remove_file(mine);
            }
            other => return Err(format!("there is no {other:?} to reach")),
        }
    }
    others_processes(&mut outcome);
    terminals(&mut outcome);
    privileges(&mut outcome);
    Ok(outcome)
}

/// Names what a directory shows.
fn list(outcome: &mut Outcome, path: &Path) {
    match fs::read_dir(path) {
        Ok(entries) => {
            let names: Vec<String> = entries
                .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
                .collect();
            outcome.did.push(format!("list {}: {}", path.display(), names.join(" ")));
        }
        Err(error) => outcome.failed.push(format!("list {}: {error}", path.display())),
    }
}

/// A path as other processes and the directory above would see it.
fn ways(path: &Path) -> Vec<PathBuf> {
    let inner = path.strip_prefix("/").unwrap_or(path);
    let mut ways = vec![path.to_owned(), Path::new("/proc/1/root").join(inner)];
    for pid in processes() {
        ways.push(PathBuf::from(format!("/proc/{pid}/root")).join(inner));
        for fd in
            fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok).take(64)
        {
            // A descriptor of a directory leads up from there.
            ways.push(fd.path().join("../../../../../../../../../..").join(inner));
        }
    }
    ways
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| *pid != std::process::id() as i32).take(256).collect()
}

fn read_by_every_way(outcome: &mut Outcome, path: &Path) {
    let mut refused = None;
    for way in ways(path) {
        // Never waits, whatever stands there.
        let opened =
            rustix::fs::open(&way, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
        let mut text = [0; 64];
        match opened.map_err(io::Error::from).and_then(|fd| File::from(fd).read(&mut text)) {
            Ok(_) => return outcome.did.push(format!("read {}", path.display())),
            Err(error) => refused = Some(error),
        }
    }
    outcome.failed.push(format!("read {}: {refused:?}", path.display()));
}

fn write_by_every_way(outcome: &mut Outcome, path: &Path) {
    for way in ways(path) {
        let written = File::options().append(true).open(&way).and_then(|mut file| file.write_all(b"owned"));
        if written.is_ok() {
            return outcome.did.push(format!("write {}", path.display()));
        }
    }
    outcome.failed.push(format!("write {}", path.display()));
}

fn connect_by_every_way(outcome: &mut Outcome, path: &Path) {
    let shown = path.display();
    outcome.note(
        format!("connect {shown}"),
        ways(path)
            .iter()
            .try_fold((), |(), way| match UnixStream::connect(way) {
                Ok(_) => Err(()),
                Err(_) => Ok(()),
            })
            .map_or(Ok(()), |()| Err(io::Error::other("refused"))),
    );
    // A pair is no connection to anybody, and one end of it can still be aimed.
    let paired = || -> io::Result<()> {
        let (one, _other) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::connect(&one, &SocketAddrUnix::new(path)?)?;
        Ok(())
    };
    outcome.note(format!("aim a pair at {shown}"), paired());
    let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"owned", path));
    outcome.note(format!("send to {shown}"), sent);
}

fn others_processes(outcome: &mut Outcome) {
    let above = std::os::unix::process::parent_id() as i32;
    for (who, pid) in [("the parent", above), ("the first process", 1)] {
        if pid <= 0 {
            continue;
        }
        outcome.note(format!("signal {who}"), system::may_signal(pid));
        outcome.note(format!("trace {who}"), system::trace(pid));
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        outcome.note(format!("open the memory of {who}"), memory);
    }
    let strangers = processes().into_iter().filter(|pid| system::may_signal(*pid).is_ok()).count();
    outcome.did.push(format!("{strangers} processes may be signalled"));
}

/// Terminals that are not this session's own.
fn terminals(outcome: &mut Outcome) {
    let own = rustix::termios::ttyname(io::stdin().as_fd(), Vec::new()).ok();
    let own = own.map(|name| name.to_string_lossy().into_owned());
    for entry in fs::read_dir("/dev/pts").into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_name() == "ptmx" || Some(path.display().to_string()) == own {
            continue;
        }
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::empty());
        outcome.note(format!("open the terminal {}", path.display()), opened.map_err(io::Error::from));
    }
}

fn privileges(outcome: &mut Outcome) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines() {
        let set = |name| {
            line.strip_prefix(name).is_some_and(|rest: &str| !rest.trim().trim_matches('0').is_empty())
        };
        if set("CapEff:") || set("CapPrm:") || set("CapInh:") || set("CapAmb:") {
            outcome.did.push(format!("capabilities {line}"));
        }
    }
    outcome.note("make users of its own", system::own_users());
    let device = Path::new("/tmp/hostile-device");
    let made =
        mknodat(CWD, device, FileType::BlockDevice, Mode::from_raw_mode(0o600), rustix::fs::makedev(8, 0));
    outcome.note("make a device", made.map_err(io::Error::from));
    let _ = fs::remove_file(device);
    for name in ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"] {
        outcome.note(format!("open {name} for writing"), File::options().write(true).open(name));
    }
}

/// Types at whoever called, by every terminal that it has: `type now`, and again and again: `type forever`.
pub(super) fn type_at_the_caller(words: &[String]) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    match words {
        [manner] if manner == "now" => outcome.note("push keys", push_keys()),
        [manner] if manner == "forever" => {
            std::thread::spawn(|| {
                loop {
                    // What it says of itself comes first.
                    std::thread::sleep(Duration::from_millis(300));
                    let _ = push_keys();
                }
            });
            outcome.did.push("push keys".to_owned());
        }
        _ => return Err("type now|forever".to_owned()),
    }
    Ok(outcome)
}

fn push_keys() -> io::Result<()> {
    let own = File::options().read(true).write(true).open("/dev/tty");
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    let mut terminals = vec![input.as_fd(), output.as_fd(), error.as_fd()];
    terminals.extend(own.as_ref().ok().map(AsFd::as_fd));
    let mut pushed = Err(io::Error::other("it has no terminal"));
    for terminal in terminals {
        let keys = b"owned\n".iter().try_for_each(|key| system::push_key(terminal, *key));
        pushed = pushed.or(keys);
    }
    pushed
}
