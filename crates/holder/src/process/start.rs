//! The first request that a fresh holder gets: start a session, or take one over.

use std::borrow::Cow;
use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_log::{Mark, Retention, Writer};
use wharf_model::{Code, Failure, Home, Offset, ProcessIdentity, Size};

use super::caller_rights::{CallerRights, MAX_OUTSIDE};
use super::channel::{Channel, Theirs};
use super::command_watch::CommandWatch;
use super::ending::Ending;
use super::expected::as_expected;
use super::holder::{Holder, micros, now};
use super::input::Input;
use super::motd;
use super::nursery::ForkContext;
use super::record;
use crate::frame::{Decoder, Header, Kind};
use crate::line::Line;
use crate::linux::cgroup::Group;
use crate::linux::events::{self, Events};
use crate::linux::origin::Outside;
use crate::linux::spawn::{self, Child, Command};
use crate::linux::tree::{Foreign, Tree};
use crate::linux::{self, own, proc};
use crate::wire::{self, Resume, Start, StartedReply};

/// What a holder has ready before it knows for which session, so that a start need not wait for it.
struct Ready {
    holder: ProcessIdentity,
    signals: OwnedFd,
    events: Events,
    terminal: Option<(Channel, Theirs)>,
    /// Where we sit at a terminal that another program holds: that terminal, and the socket to that program.
    pane_terminal: Option<OwnedFd>,
    link: Option<OwnedFd>,
}

impl Ready {
    fn prepare(context: &ForkContext) -> io::Result<Self> {
        own::subreaper(true)?;
        Ok(Self {
            holder: proc::identity(std::process::id() as i32, &context.boot)?,
            signals: events::signals()?,
            events: Events::new()?,
            // The start itself will say why there is none.
            terminal: Channel::tty(Size::default()).ok(),
            pane_terminal: None,
            link: None,
        })
    }
}

/// Waits for the first request, does it, and holds the session to its end.
pub(super) fn serve(connection: UnixStream, context: &ForkContext) -> io::Result<()> {
    serve_in(connection, context, None)
}

/// The same, perhaps at a terminal that another program holds.
pub(super) fn serve_in(
    connection: UnixStream,
    context: &ForkContext,
    pane_terminal: Option<OwnedFd>,
) -> io::Result<()> {
    let mut ready = Ready::prepare(context)?;
    ready.pane_terminal = pane_terminal;
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
            start(&payload, ready, context, &connection)
        }
        Some(Kind::Resume) => resume(&payload, passed, ready, context).map(|holder| (holder, None)),
        _ => Err(Failure::unsupported(format!("frame {} at first", header.kind), "a holder")),
    };
    drop(payload);
    match made {
        Ok((mut holder, follow)) => {
            holder.watch()?;
            let (kinds, fds): (Vec<_>, Vec<_>) = holder.duplicates().into_iter().unzip();
            let json = serde_json::to_vec(&StartedReply { descriptors: kinds, ..holder.started.clone() })?;
            let head = Header::new(Kind::Ack, header.seq, json.len()).encode();
            let told = linux::send(connection.as_fd(), &[IoSlice::new(&head), IoSlice::new(&json)], &fds);
            match told {
                Ok(_) => {
                    let asker = holder.welcome(connection, CallerRights::ASKER)?;
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

/// Starts a session. Also says from where on the asker is sent its output, without asking for it again.
fn start(
    payload: &[u8],
    ready: Ready,
    context: &ForkContext,
    asker: &UnixStream,
) -> Result<(Holder, Option<Offset>), Failure> {
    still_wanted(asker)?;
    let [control, ticket, argv, env] = wire::split_sections(payload).map_err(bad_frame)?;
    let start: Start = serde_json::from_slice(control).map_err(bad_frame)?;
    start.expected.iter().try_for_each(as_expected)?;
    let home = start.home.as_path().to_owned();
    let fresh = make(&home).map_err(|e| Failure::system(format!("cannot make {}", home.display()), &e))?;
    let env = at_home(env, start.place_home);
    let made = begin(&start, home.clone(), [ticket, argv, &env], ready, context, asker);
    if made.is_err() {
        clear(&home, start.run, fresh);
    }
    Ok((made?, start.follow))
}

/// A command's variables with the `HOME` that our place gave us, where that is wanted and they have none. An engine looks it
/// up in the image's own list of users, as whoever runs there.
pub(super) fn at_home(env: &[u8], wanted: bool) -> Cow<'_, [u8]> {
    if !wanted || env.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"HOME=")) {
        return env.into();
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).unwrap_or_else(|| "/".into());
    [env, b"HOME=", home.as_encoded_bytes(), b"\0"].concat().into()
}

/// Makes a session's directory. Whether the session is new there.
fn make(home: &Path) -> io::Result<bool> {
    match fs::create_dir(home) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(!home.join(Home::TICKET).exists()),
        Err(_) => fs::create_dir_all(home).map(|()| true),
    }
}

/// Says no where the asker has closed its side of the connection.
fn still_wanted(asker: &UnixStream) -> Result<(), Failure> {
    let mut fds = [PollFd::new(asker, PollFlags::RDHUP)];
    let hung_up = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0);
    if hung_up { Err(gone()) } else { Ok(()) }
}

/// Waits until it is known whether a command runs, as long as the asker does: a directory that hangs keeps nobody who was given up.
fn await_outcome(child: &Child, asker: &UnixStream) -> Result<(), Failure> {
    let gate = child.gate();
    let mut fds = [PollFd::new(&gate, PollFlags::IN), PollFd::new(asker, PollFlags::RDHUP)];
    rustix::io::retry_on_intr(|| poll(&mut fds, None))
        .map_err(|error| Failure::system("cannot wait for the command's start", &error.into()))?;
    if fds[0].revents().is_empty() { Err(gone()) } else { Ok(()) }
}

fn gone() -> Failure {
    Failure::new(Code::Unreachable, "whoever asked for the session is gone")
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
    context: &ForkContext,
    asker: &UnixStream,
) -> Result<Holder, Failure> {
    let system = |what: &'static str| move |error: io::Error| Failure::system(what, &error);
    let Ready { holder, signals, events, terminal, pane_terminal, link } = ready;
    let mut log = open_log(&home, start)?;
    let (channel, theirs) = match (pane_terminal, link, terminal) {
        (Some(pane_terminal), Some(link), _) => Channel::pane(pane_terminal, link)?,
        _ if !start.tty => Channel::pipes()?,
        (.., Some(terminal)) => terminal,
        (.., None) => Channel::tty(start.size)?,
    };
    if start.tty {
        channel.resize(start.size).map_err(system("cannot set the terminal's size"))?;
    }
    let listener = listen(&home)?;
    let tree = Tree {
        group: Group::create(&context.cgroups, &group_name(&home, start.run), &start.limits)?,
        foreign: None,
        guest: false,
    };
    let (umask, room) = (start.umask.unwrap_or(context.umask), context.cgroups.are_own());
    let channels = start
        .channel
        .then(wharf_boundary::channel::pair)
        .transpose()
        .map_err(system("cannot make the session's channel"))?;
    let command = Command {
        argv,
        env,
        dir: spawn::c_path(start.dir.as_bytes())?,
        stdio: theirs.raw(),
        control_terminal: start.tty,
        cgroup: tree.group.birthplace(),
        umask,
        descriptors: start.descriptors,
        channel: channels.as_ref().map(|(_, inside)| inside.as_raw_fd()),
    };
    // Before the command is forked, so that it stands before all of its output.
    if let Some(motd) = &start.motd {
        log.append(&motd::lines_of(motd.as_bytes(), start.tty)).map_err(system("cannot write the log"))?;
    }
    let ran = command.fork().and_then(|mut child| {
        tree.group.join(child.pid).map_err(system("cannot put the command into its cgroup"))?;
        let started = StartedReply {
            holder,
            command: proc::identity(child.pid, &context.boot).map_err(system("cannot identify a process"))?,
            scope: tree.group.scope(),
            started: now(),
            descriptors: Vec::new(),
        };
        // From the ticket on it can be found, so this is the last moment to say no.
        still_wanted(asker)?;
        record::write_ticket(
            &home,
            ticket,
            &started.holder,
            &started.command,
            &started.scope,
            started.started,
        )
        .map_err(system("cannot write the ticket"))?;
        child.release();
        await_outcome(&child, asker)?;
        Ok((started, child.outcome()?.1))
    });
    drop(theirs);
    // A child that never ran is gone and reaped by now, so its cgroup can go too.
    let (started, pidfd) = ran.inspect_err(|_| tree.group.remove())?;
    let parts =
        Parts { events, signals, listener, channel, channels, log, tree, pidfd, started, umask, room };
    Ok(assemble(start, home, parts))
}

fn resume(
    payload: &[u8],
    passed: Vec<OwnedFd>,
    ready: Ready,
    context: &ForkContext,
) -> Result<Holder, Failure> {
    let system = |what: &'static str| move |error: io::Error| Failure::system(what, &error);
    let [control, ticket] = wire::split_sections(payload).map_err(bad_frame)?;
    let Resume { start, mut started } = serde_json::from_slice(control).map_err(bad_frame)?;
    let home = start.home.as_path().to_owned();
    let mut kept: Vec<_> = started.descriptors.iter().copied().zip(passed).collect();
    let mut take = |what: wire::Duplicate| {
        kept.iter().position(|(kind, _)| *kind == what).map(|at| kept.swap_remove(at).1)
    };
    let pidfd =
        take(wire::Duplicate::Command).ok_or_else(|| Failure::new(Code::Invalid, "no pidfd was passed"))?;
    let channels = take(wire::Duplicate::ChannelOutside).zip(take(wire::Duplicate::ChannelInside));
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
    // Whatever the holder before us left without a parent is ours to end.
    let door = context.door.as_ref().filter(|_| !start.guest).and_then(|door| door.try_clone().ok());
    let orphans = door.map(|door| linux::Orphans::new(door, &holder, &started.holder));
    // Asked at once, so that they are known as ours when we are killed in our turn.
    let _ = orphans.as_ref().map(linux::Orphans::are_all_known);
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
        own::say(format_args!("cannot sign the ticket in {}: {error}", home.display()));
    }
    let foreign = Some(Foreign { command: started.command.clone(), token: start.token.clone(), orphans });
    let tree = Tree { group: Group::reopen(&started.scope), foreign, guest: start.guest };
    let (umask, room) = (start.umask.unwrap_or(context.umask), context.cgroups.are_own());
    let parts =
        Parts { events, signals, listener, channel, channels, log, tree, pidfd, started, umask, room };
    // Whether somebody had begun a line the holder before us knew.
    Ok(Holder { line: Line::unknown(), ..assemble(&start, home, parts) })
}

/// What a holder is made of.
struct Parts {
    events: Events,
    signals: OwnedFd,
    listener: std::os::unix::net::UnixListener,
    channel: Channel,
    channels: Option<(OwnedFd, OwnedFd)>,
    log: Writer,
    tree: Tree,
    pidfd: OwnedFd,
    started: StartedReply,
    umask: u32,
    room: bool,
}

fn assemble(start: &Start, home: PathBuf, parts: Parts) -> Holder {
    let Parts { events, signals, listener, channel, channels, log, tree, pidfd, started, umask, room } =
        parts;
    Holder {
        home,
        room,
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
        forsaken: Vec::new(),
        peers: Vec::new(),
        outside: Outside::new(MAX_OUTSIDE),
        next_peer: 0,
        input: Input::default(),
        direct_input: None,
        ending: Ending::new(),
        last_input: None,
        line: Line::default(),
        told_line: (None, false),
        told_input: None,
        full: None,
        dropped: 0,
        command_watch: CommandWatch::default(),
        unreaped: None,
        scratch: Vec::new(),
        sink_watched: false,
        closing_input: false,
        deaf: None,
        through: start.through.clone(),
        channels,
        enter: start.enter.clone(),
        place_home: start.place_home,
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
