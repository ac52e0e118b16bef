//! The first request that a fresh holder gets: start a session, or take one over.

use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_log::{Mark, Retention, Writer};
use wharf_model::{Code, Failure, Home, Offset, ProcessIdentity, Size};

use super::channel::{Channel, Theirs};
use super::ending::Ending;
use super::holder::{Holder, micros, now};
use super::input::Input;
use super::nursery::Nest;
use super::record;
use crate::frame::{Decoder, Header, Kind};
use crate::linux::cgroup::Group;
use crate::linux::events::{self, Events};
use crate::linux::spawn::{self, Command};
use crate::linux::tree::Tree;
use crate::linux::{self, own, proc};
use crate::wire::{self, Resume, Start, Started};

/// What a holder has ready before it knows for which session, so that a start need not wait for it.
struct Ready {
    holder: ProcessIdentity,
    signals: OwnedFd,
    events: Events,
    terminal: Option<(Channel, Theirs)>,
    /// Where we sit at a terminal that another program holds: that terminal, and the socket to that program.
    seat: Option<OwnedFd>,
    link: Option<OwnedFd>,
}

impl Ready {
    fn prepare(nest: &Nest) -> io::Result<Self> {
        own::subreaper(true)?;
        Ok(Self {
            holder: proc::identity(std::process::id() as i32, &nest.boot)?,
            signals: events::signals()?,
            events: Events::new()?,
            // The start itself will say why there is none.
            terminal: Channel::tty(Size::default()).ok(),
            seat: None,
            link: None,
        })
    }
}

/// Waits for the first request, does it, and holds the session to its end.
pub(super) fn serve(connection: UnixStream, nest: &Nest) -> io::Result<()> {
    serve_in(connection, nest, None)
}

/// The same, perhaps at a terminal that another program holds.
pub(super) fn serve_in(connection: UnixStream, nest: &Nest, seat: Option<OwnedFd>) -> io::Result<()> {
    let mut ready = Ready::prepare(nest)?;
    ready.seat = seat;
    let (mut frames, mut passed, mut buffer) = (Decoder::default(), Vec::new(), [0_u8; 4 << 10]);
    let (header, payload) = loop {
        match linux::receive(&connection, &mut buffer, &mut passed)? {
            // A spare that nobody needs any more.
            0 => return Ok(()),
            n => frames.push(&buffer[..n]),
        }
        if let Some((header, payload)) = frames.next()? {
            break (header, payload.to_vec());
        }
    };
    drop(frames);
    let made = match Kind::known(header.kind) {
        Some(Kind::Start) => {
            ready.link = passed.pop();
            start(&payload, ready, nest, &connection)
        }
        Some(Kind::Resume) => resume(&payload, passed, ready, nest),
        _ => Err(Failure::unsupported(format!("frame {} at first", header.kind), "a holder")),
    };
    let follow = follows(header, &payload);
    drop(payload);
    match made {
        Ok(mut holder) => {
            holder.watch()?;
            let (kinds, fds): (Vec<_>, Vec<_>) = holder.duplicates().into_iter().unzip();
            let json = serde_json::to_vec(&Started { descriptors: kinds, ..holder.started.clone() })?;
            let head = Header::new(Kind::Ack, header.seq, json.len()).encode();
            let told = linux::send(connection.as_fd(), &[IoSlice::new(&head), IoSlice::new(&json)], &fds);
            match told {
                Ok(_) => {
                    let asker = holder.welcome(connection)?;
                    if let Some((peer, from)) = holder.peer(asker).zip(follow) {
                        peer.read_from(from);
                    }
                }
                Err(_) if header.kind == Kind::Start as u8 => holder.abandon(),
                // A session that was taken over is there all the same, and will be found.
                Err(_) => {}
            }
            holder.hold()
        }
        Err(failure) => {
            let json = serde_json::to_vec(&failure)?;
            let head = Header::new(Kind::Error, header.seq, json.len()).encode();
            linux::send(connection.as_fd(), &[IoSlice::new(&head), IoSlice::new(&json)], &[])?;
            Ok(())
        }
    }
}

fn start(payload: &[u8], ready: Ready, nest: &Nest, asker: &UnixStream) -> Result<Holder, Failure> {
    let gone = || Failure::new(Code::Unreachable, "whoever asked for the session is gone");
    if hung_up(asker) {
        return Err(gone());
    }
    let [control, ticket, argv, env] = wire::split_sections(payload).map_err(bad_frame)?;
    let start: Start = serde_json::from_slice(control).map_err(bad_frame)?;
    let home = start.home.as_path().to_owned();
    let fresh = make(&home).map_err(|e| Failure::system(format!("cannot make {}", home.display()), &e))?;
    let still_wanted = || if hung_up(asker) { Err(gone()) } else { Ok(()) };
    let made = begin(&start, home.clone(), [ticket, argv, env], ready, nest, still_wanted);
    if made.is_err() {
        clear(&home, start.run, fresh);
    }
    made
}

/// From where on the asker is sent output, without asking for it again.
fn follows(header: Header, payload: &[u8]) -> Option<Offset> {
    if header.kind != Kind::Start as u8 {
        return None;
    }
    let [control, ..] = wire::split_sections::<4>(payload).ok()?;
    serde_json::from_slice::<Start>(control).ok()?.follow
}

/// Makes a session's directory. Whether the session is new there.
fn make(home: &Path) -> io::Result<bool> {
    match fs::create_dir(home) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(!home.join(Home::TICKET).exists()),
        Err(_) => fs::create_dir_all(home).map(|()| true),
    }
}

/// Whether the other side of a connection is closed.
fn hung_up(connection: &UnixStream) -> bool {
    let mut fds = [PollFd::new(connection, PollFlags::RDHUP)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// After a start that failed, nothing is left of what was made for it. The log of earlier runs is, and so is
/// what the starter keeps in the directory.
fn clear(home: &Path, run: u32, made: bool) {
    let _ = fs::remove_file(home.join(Home::SOCKET));
    if run <= 1 {
        let _ = fs::remove_dir_all(home.join(Home::LOG));
        if made {
            let _ = fs::remove_file(home.join(Home::TICKET));
        }
        let _ = fs::remove_dir(home);
    }
}

fn begin(
    start: &Start,
    home: PathBuf,
    [ticket, argv, env]: [&[u8]; 3],
    ready: Ready,
    nest: &Nest,
    still_wanted: impl Fn() -> Result<(), Failure>,
) -> Result<Holder, Failure> {
    let system = |what: &'static str| move |error: io::Error| Failure::system(what, &error);
    let Ready { holder, signals, events, terminal, seat, link } = ready;
    let mut log = open_log(&home, start)?;
    let (channel, theirs) = match (seat, link, terminal) {
        (Some(seat), Some(link), _) => Channel::pane(seat, link)?,
        _ if !start.tty => Channel::pipes()?,
        (.., Some(terminal)) => terminal,
        (.., None) => Channel::tty(start.size)?,
    };
    if start.tty {
        channel.resize(start.size).map_err(system("cannot set the terminal's size"))?;
    }
    let listener = listen(&home)?;
    let tree = Tree {
        group: Group::create(&nest.cgroups, &group_name(&home, start.run), &start.limits)?,
        foreign: None,
        guest: false,
    };
    let umask = start.umask.unwrap_or(nest.umask);
    let command = Command {
        argv,
        env,
        dir: spawn::c_path(start.dir.as_bytes())?,
        stdio: theirs.raw(),
        control_terminal: start.tty,
        cgroup: tree.group.birthplace(),
        umask,
        descriptors: start.descriptors,
    };
    let ran = command.start(|pid| {
        tree.group.join(pid).map_err(system("cannot put the command into its cgroup"))?;
        let started = Started {
            holder,
            command: proc::identity(pid, &nest.boot).map_err(system("cannot identify a process"))?,
            scope: tree.group.scope(),
            started: now(),
            descriptors: Vec::new(),
        };
        // From the ticket on it can be found, so this is the last moment to say no.
        still_wanted()?;
        record::write_ticket(
            &home,
            ticket,
            &started.holder,
            &started.command,
            &started.scope,
            started.started,
        )
        .map_err(system("cannot write the ticket"))?;
        if let Some(motd) = &start.motd {
            log.append(motd.as_bytes()).map_err(system("cannot write the log"))?;
        }
        Ok(started)
    });
    drop(theirs);
    // A child that never ran is gone and reaped by now, so its cgroup can go too.
    let (started, pidfd) = ran.inspect_err(|_| tree.group.remove())?;
    Ok(assemble(start, home, Parts { events, signals, listener, channel, log, tree, pidfd, started, umask }))
}

fn resume(payload: &[u8], passed: Vec<OwnedFd>, ready: Ready, nest: &Nest) -> Result<Holder, Failure> {
    let system = |what: &'static str| move |error: io::Error| Failure::system(what, &error);
    let [control, ticket] = wire::split_sections(payload).map_err(bad_frame)?;
    let Resume { start, mut started } = serde_json::from_slice(control).map_err(bad_frame)?;
    let home = start.home.as_path().to_owned();
    let mut kept: Vec<_> = started.descriptors.iter().copied().zip(passed).collect();
    let at = kept.iter().position(|(kind, _)| *kind == wire::Duplicate::Command);
    let pidfd = at
        .map(|at| kept.swap_remove(at).1)
        .ok_or_else(|| Failure::new(Code::Invalid, "no pidfd was passed"))?;
    let Ready { holder, signals, events, .. } = ready;
    let channel = Channel::resume(kept).map_err(system("cannot take the terminal over"))?;
    let retention = retention(&start);
    let mut log = Writer::open(&home.join(Home::LOG), retention).map_err(system("cannot open the log"))?;
    if let Some(size) = channel.size() {
        // A holder that was killed before any output had only meant to note it.
        let _ = log.mark(Mark::Resize(size), micros());
    }
    if let Some(shown) = start.motd.as_ref().filter(|_| start.guest) {
        log.append(shown.as_bytes()).map_err(system("cannot write the log"))?;
    }
    let _ = fs::remove_file(home.join(Home::SOCKET));
    let listener = listen(&home)?;
    started.holder = holder;
    let signed = record::write_ticket(
        &home,
        ticket,
        &started.holder,
        &started.command,
        &started.scope,
        started.started,
    );
    if let Err(error) = signed {
        // A full disk is no reason to let go of the session: it is found by its socket all the same.
        eprintln!("wharf-holder: cannot sign the ticket in {}: {error}", home.display());
    }
    let foreign = Some((started.command.clone(), start.token.clone()));
    let tree = Tree { group: Group::reopen(&started.scope), foreign, guest: start.guest };
    let umask = start.umask.unwrap_or(nest.umask);
    Ok(assemble(&start, home, Parts { events, signals, listener, channel, log, tree, pidfd, started, umask }))
}

/// What a holder is made of.
struct Parts {
    events: Events,
    signals: OwnedFd,
    listener: std::os::unix::net::UnixListener,
    channel: Channel,
    log: Writer,
    tree: Tree,
    pidfd: OwnedFd,
    started: Started,
    umask: u32,
}

fn assemble(start: &Start, home: PathBuf, parts: Parts) -> Holder {
    let Parts { events, signals, listener, channel, log, tree, pidfd, started, umask } = parts;
    Holder {
        home,
        events,
        signals,
        listener: Some(listener),
        log,
        tree,
        command: started.command.clone(),
        pidfd,
        started,
        size: channel.size().unwrap_or(start.size.sane()),
        channel,
        umask,
        descriptors: start.descriptors,
        execs: Vec::new(),
        peers: Vec::new(),
        next_peer: 0,
        input: Input::default(),
        loan: None,
        ending: Ending::new(),
        last_input: None,
        told_input: None,
        full: None,
        dropped: 0,
        unreaped: None,
        scratch: Vec::new(),
        sink_watched: false,
        closing_input: false,
        deaf: None,
        through: start.through.clone(),
    }
}

fn retention(start: &Start) -> Retention {
    if start.log_size == 0 { Retention::default() } else { Retention::new(start.log_size) }
}

fn open_log(home: &Path, start: &Start) -> Result<Writer, Failure> {
    let open = || -> io::Result<Writer> {
        let mut log = Writer::open(&home.join(Home::LOG), retention(start))?;
        if start.tty {
            log.mark(Mark::Resize(start.size.sane()), micros())?;
        }
        if start.run > 1 {
            log.mark(Mark::Restart(start.run), micros())?;
        }
        Ok(log)
    };
    open().map_err(|error| Failure::system("cannot open the log", &error))
}

fn listen(home: &Path) -> Result<std::os::unix::net::UnixListener, Failure> {
    let path = home.join(Home::SOCKET);
    let bind = || -> io::Result<_> {
        let listener = match linux::bind(&path) {
            // Left by a holder of an earlier run, which is gone: its session is ours now.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                fs::remove_file(&path)?;
                linux::bind(&path)?
            }
            bound => bound?,
        };
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    bind().map_err(|error| Failure::system(format!("cannot listen at {}", path.display()), &error))
}

/// The cgroup's name: the session's id, which its directory is named by, the run, and us.
fn group_name(home: &Path, run: u32) -> String {
    let id = home.file_name().and_then(|name| name.to_str()).unwrap_or("session");
    format!("wharf-{id}-{run}-{}", std::process::id())
}

fn bad_frame(error: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Invalid, format!("the first frame is wrong: {error}"))
}

impl Theirs {
    fn raw(&self) -> [i32; 3] {
        match self {
            Self::Tty(slave) => [slave.as_raw_fd(); 3],
            Self::Pipes([input, output, error]) => [input.as_raw_fd(), output.as_raw_fd(), error.as_raw_fd()],
        }
    }
}
