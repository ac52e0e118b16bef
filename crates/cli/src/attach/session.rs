//! One attachment, from beginning to end.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wharf_holder::wire::ANSWERS;
use wharf_holder_client::client::{Client, Event};
use wharf_model::{Code, ExitRecord, Failure, Home, Offset, Size};

use super::geometry::Say;
use super::input::{Input, Typed};
use super::options::{Begin, Options};
use super::paint::{Painting, painting};
use super::reach::{Reached, reach};
use super::screen::Screen;
use super::tail;
use crate::output;
use crate::selection::ending;
use crate::signals::Signals;
use crate::terminal::{self, RawMode};
use crate::trouble::{Done, Trouble};

/// How an attachment came to its end.
enum End {
    Exit(ExitRecord),
    Detached,
    Signal(i32),
    Gone,
}

/// How long a holder that went away may take to be replaced.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that broke sooner was hardly one; how many of them in a row are followed by another; and the pause after the
/// first, which is doubled for each.
const BRIEF_CONNECTION_TIME: Duration = Duration::from_secs(2);
const MAX_BRIEF_CONNECTIONS: u32 = 20;
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// How often one who would own the session's size looks whether he does.
const OWNER_POLL_INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

const SIGNALS: &[i32] =
    &[libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGWINCH, libc::SIGTSTP, libc::SIGCONT];

/// Attaches, and answers with the command's code, or 0 after a detach.
pub(crate) fn attach(options: &Options) -> Done {
    let mut say = if options.tty && !options.read_only && io::stdout().is_terminal() {
        Say::new(options.geometry, &options.dir)
    } else {
        Say::none()
    };
    let paints = options.begin == Begin::Tail && options.tty && io::stdout().is_terminal();
    let painted = paints.then(|| painting(&options.dir, &mut say)).flatten();
    let client = match reach(&options.dir, &options.name, options.role(), options.patience)? {
        Reached::Live(client) => client,
        Reached::Ended(exit) => return ended(options, &exit),
    };
    let interactive = options.tty && io::stdin().is_terminal();
    let mut attachment = Attachment::new(options, *client, interactive, say, painted.as_ref())?;
    let end = attachment.run();
    // The terminal is itself again before anything is said on it.
    drop(attachment);
    match end? {
        End::Exit(exit) => Ok(told(options, &exit)),
        End::Detached => {
            // The cursor is wherever the application left it.
            output::note("");
            output::note(format!("[detached from {}]", options.name));
            Ok(0)
        }
        End::Signal(signal) => Ok(128 + signal as u8),
        End::Gone => match reach(&options.dir, &options.name, options.role(), Some(Duration::ZERO))? {
            Reached::Ended(exit) => Ok(told(options, &exit)),
            Reached::Live(_) => Ok(0),
        },
    }
}

/// A session that is over: the end of its output, and how it ended.
fn ended(options: &Options, exit: &ExitRecord) -> Done {
    let log = options.dir.join(Home::LOG);
    let cannot = |error: io::Error| Failure::system(format_args!("cannot read {}", log.display()), &error);
    let from = match options.begin {
        Begin::Tail => tail::start(&log, exit.log_end).map_err(cannot)?.0,
        Begin::At(offset) => offset,
        Begin::Fresh => Offset(0),
        Begin::Now => exit.log_end,
    };
    let mut screen = Screen::new(from, exit.log_end);
    let mut written = Ok(());
    tail::read(&log, from, None, |offset, stderr, bytes| {
        screen.take(offset, stderr, bytes);
        if written.is_ok() {
            written = screen.flush();
        }
    })
    .map_err(cannot)?;
    written.map_err(|error| Trouble::output(&error))?;
    drop(screen);
    Ok(told(options, exit))
}

fn told(options: &Options, exit: &ExitRecord) -> u8 {
    if options.tty {
        output::note(format!("[{}]", ending(exit)));
    }
    u8::try_from(exit.shell_code() & 0xff).unwrap_or(125)
}

struct Attachment<'a> {
    options: &'a Options,
    client: Client,
    screen: Screen,
    input: Input,
    signals: Signals,
    raw: Option<RawMode>,
    say: Say,
    size: Option<Size>,
}

impl<'a> Attachment<'a> {
    fn new(
        options: &'a Options,
        mut client: Client,
        interactive: bool,
        mut say: Say,
        painted: Option<&Painting>,
    ) -> Result<Self, Failure> {
        let cannot =
            |error: io::Error| Failure::system(format_args!("cannot attach to {:?}", options.name), &error);
        let signals = Signals::catch(SIGNALS).map_err(cannot)?;
        let end = client.welcome().log_end;
        let (from, border, cut) = match options.begin {
            Begin::Tail if painted.is_some() => {
                let from = painted.map_or(end, |painting| painting.offset);
                (from, end, false)
            }
            Begin::Tail => {
                let (from, cut) = tail::start(&options.dir.join(Home::LOG), end).map_err(cannot)?;
                (from, end, cut)
            }
            Begin::At(offset) => (offset, end, false),
            Begin::Fresh => (Offset(0), Offset(0), false),
            Begin::Now => (end, end, false),
        };
        // A terminal that answers by itself leaves ours no question: all is shown as what is old is.
        let border = if client.has(ANSWERS) { Offset(u64::MAX) } else { border };
        let raw = interactive.then(|| RawMode::enter(io::stdin())).transpose().map_err(cannot)?;
        if interactive {
            // Told once the keys work, on a terminal that is raw by now.
            output::note_raw(options.welcome());
        } else if !options.owned {
            output::note(options.without_terminal(io::stdin().is_terminal()));
        }
        let mut screen = Screen::new(from, border);
        if let Some(painting) = painted {
            screen.paint(&painting.bytes);
        }
        // We are counted ourselves.
        let alone = client.welcome().status.as_ref().is_none_or(|status| status.attached <= 1);
        let decides = say.decides(alone);
        let input = Input::new(options.keys.clone(), options.read_only, options.owned && !options.tty);
        // A command may have ended since its holder greeted us. The first turn sees that, and reads the log.
        let _ = client.read_from(from);
        let mut attachment = Self { options, client, screen, input, signals, raw, say, size: None };
        attachment.shorten();
        if decides {
            let _ = attachment.resize(cut);
        }
        Ok(attachment)
    }

    /// Keys need not wait for the holder to pass them on; but one that runs where the session does could lend anything.
    fn shorten(&mut self) {
        if self.raw.is_some() && !self.options.read_only && !self.options.isolated {
            self.client.type_directly();
        }
    }

    /// Gives the session our terminal's size. One that is as it was is changed for a moment where `redraw` says so:
    /// an application paints itself anew at each change.
    fn resize(&mut self, redraw: bool) -> io::Result<()> {
        let Some(size) = terminal::size(io::stdout()).filter(|_| io::stdout().is_terminal()) else {
            return Ok(());
        };
        let size = size.sane();
        if redraw && size.rows > 1 {
            self.client.resize(Size { rows: size.rows - 1, ..size })?;
        }
        if redraw || self.size != Some(size) {
            self.client.resize(size)?;
            self.size = Some(size);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<End, Trouble> {
        let (mut since, mut brief) = (Instant::now(), 0);
        loop {
            let end = match self.turn() {
                Ok(None) => continue,
                Ok(Some(end)) => end,
                Err(Broken::Ours(trouble)) => return Err(trouble),
                Err(Broken::Holder) => End::Gone,
            };
            match end {
                End::Gone => {
                    // One holder may be gone, and the next; who answers and hangs up without end is none.
                    brief = if since.elapsed() < BRIEF_CONNECTION_TIME { brief + 1 } else { 0 };
                    if brief > MAX_BRIEF_CONNECTIONS {
                        return Err(hangs_up(&self.options.name).into());
                    }
                    std::thread::sleep(FIRST_RETRY_PAUSE * (1 << brief.min(6)) / 2);
                    since = Instant::now();
                    match reach(
                        &self.options.dir,
                        &self.options.name,
                        self.options.role(),
                        Some(REPLACE_TIMEOUT),
                    )? {
                        Reached::Live(client) => self.reconnect(*client),
                        Reached::Ended(exit) => return self.drain(exit),
                    }
                }
                End::Exit(exit) => return self.drain(exit),
                end => return Ok(end),
            }
        }
    }

    /// Another holder has the session: output goes on where it stopped.
    fn reconnect(&mut self, client: Client) {
        self.client = client;
        self.shorten();
        self.input.reconnected();
        self.size = None;
        // Should this fail too, the next turn sees it.
        let _ = self.client.read_from(self.screen.next());
        if self.say.decides(false) {
            let _ = self.resize(false);
        }
    }

    /// What the log has beyond what was heard.
    fn drain(&mut self, exit: ExitRecord) -> Result<End, Trouble> {
        let screen = &mut self.screen;
        let mut written = Ok(());
        let log = self.options.dir.join(Home::LOG);
        let read = tail::read(&log, screen.next(), Some(exit.log_end), |offset, stderr, bytes| {
            screen.take(offset, stderr, bytes);
            if written.is_ok() {
                written = screen.flush();
            }
        });
        // A session that was removed has no log any more; what was heard is all there is.
        drop(read);
        written.and_then(|()| self.screen.flush()).map_err(|error| Trouble::output(&error))?;
        Ok(End::Exit(exit))
    }

    /// Waits for one thing to happen and does it.
    fn turn(&mut self) -> Result<Option<End>, Broken> {
        self.input.send(&mut self.client)?;
        let blocked = self.screen.blocked();
        let stdin = io::stdin();
        let wanted = self.input.wanted();
        let (signals, stdin_ready, holder, out) = {
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            // Output that waits is written before more is taken in.
            match &blocked {
                Some(out) => fds.push(PollFd::new(out, PollFlags::OUT)),
                None => fds.push(PollFd::new(&self.client, PollFlags::IN)),
            }
            if wanted {
                fds.push(PollFd::new(&stdin, PollFlags::IN));
            }
            let look = self.say.waits().then_some(&OWNER_POLL_INTERVAL);
            match poll(&mut fds, look) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Broken::ours("cannot wait", &error.into())),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            (
                ready[0],
                ready.get(2) == Some(&true),
                ready[1] && blocked.is_none(),
                ready[1] && blocked.is_some(),
            )
        };
        if self.say.inherited() {
            self.size = None;
            self.resize(false)?;
        }
        if signals && let Some(end) = self.signalled()? {
            return Ok(Some(end));
        }
        if out {
            self.screen.write().map_err(|error| Broken::Ours(Trouble::output(&error)))?;
        }
        if stdin_ready {
            match self.input.read() {
                Ok(Typed::More) => {
                    if self.input.has_more() && self.say.typed() {
                        self.size = None;
                        self.resize(false)?;
                    }
                }
                Ok(Typed::Detach) => return Ok(Some(End::Detached)),
                Err(error) => return Err(Broken::ours("cannot read standard input", &error)),
            }
        }
        if holder {
            if self.client.receive()? == 0 {
                return Ok(Some(End::Gone));
            }
            while let Some(event) = self.client.buffered()? {
                if let Some(end) = self.heard(event) {
                    return Ok(Some(end));
                }
            }
        }
        Ok(None)
    }

    fn heard(&mut self, event: Event) -> Option<End> {
        match event {
            Event::Output { offset, stderr, bytes } => self.screen.take(offset, stderr, &bytes),
            Event::Gap { from, to } => {
                self.screen.gap(to);
                output::note_raw(format!("[bytes {from} to {to} of the output are gone]"));
            }
            Event::Done { seq, .. } => {
                self.input.answered(seq);
            }
            Event::Refused { seq, failure } => {
                if self.input.answered(seq) && failure.code != wharf_model::Code::Ended {
                    output::note_raw(format!("[not typed: {failure}]"));
                }
            }
            Event::Exit(exit) => return Some(End::Exit(exit)),
            Event::News(_) => {}
        }
        None
    }

    fn signalled(&mut self) -> Result<Option<End>, Broken> {
        for signal in self.signals.take() {
            match signal {
                libc::SIGWINCH if self.say.decides(false) => self.resize(false)?,
                libc::SIGWINCH => {}
                libc::SIGCONT => {
                    if let Some(raw) = &self.raw {
                        // Should the terminal be gone, reading it says so.
                        let _ = raw.again();
                    }
                    if self.say.decides(false) {
                        self.resize(false)?;
                    }
                }
                libc::SIGTSTP => {
                    if let Some(raw) = &self.raw {
                        raw.restore();
                    }
                    let own = rustix::process::getpid();
                    let _ = rustix::process::kill_process(own, rustix::process::Signal::STOP);
                }
                libc::SIGINT | libc::SIGTERM | libc::SIGQUIT if self.options.owned && self.raw.is_none() => {
                    self.client.signal(signal, false)?;
                }
                signal => return Ok(Some(End::Signal(signal))),
            }
        }
        Ok(None)
    }
}

fn hangs_up(name: &str) -> Failure {
    Failure::new(
        Code::Unreachable,
        format!("the holder of session {name:?} hangs up as soon as it has answered"),
    )
    .hint(format!("`wharf show {name}` says what is known of it, `wharf logs {name}` shows its output"))
}

/// What went wrong: on our side, or on the holder's.
enum Broken {
    Ours(Trouble),
    Holder,
}

impl Broken {
    fn ours(what: &str, error: &io::Error) -> Self {
        Self::Ours(Failure::system(what, error).into())
    }
}

impl From<io::Error> for Broken {
    /// Whatever fails on the holder's connection means that it is gone.
    fn from(_: io::Error) -> Self {
        Self::Holder
    }
}
