//! A holder that another program starts in a terminal of its own, such as tmux in a pane.

use std::ffi::OsStr;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use wharf_log::Mark;
use wharf_model::{Millis, Reason};

use super::channel::{Channel, Source};
use super::holder::{Holder, micros, now};
use super::nursery::ForkContext;
use super::start;
use crate::frame::Kind;
use crate::linux::cgroup::Hierarchies;
use crate::linux::{self, own, proc, terminal};
use crate::wire::StopRequest;

/// The first byte of a holder in a pane, to whoever waits at the door.
const IS_HOLDER: u8 = b'p';
/// The first byte of what brings the pane's output and input, with their descriptor.
const IS_PIPE: u8 = b't';
/// The variable that names the directory with the doors.
const DOORS_VARIABLE: &str = "WHARF_DOORS";
/// How long the last output may take on its way here, after the last piece of it.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long all of it may take.
const ALL_OUTPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last input may take to be known to be in the terminal.
const INPUT_TIMEOUT: Duration = Duration::from_millis(100);
/// For how long a size that we have set is the one that counts.
const OWN_SIZE_INTERVAL: Duration = Duration::from_secs(1);
/// How much later than its terminal a command may be seen to be gone that is not our child.
const COMMAND_END_TIMEOUT: Duration = Duration::from_millis(50);
/// The grace of a session whose terminal is gone: it has heard the hang-up already.
const CUT_OFF_GRACE: Millis = Millis(500);
/// Who ends a session whose terminal is gone.
const ENDED_BY: &str = "the program that held its terminal, which let go";

/// Runs `wharf-holder pane DOOR`: holds what the starter at that door asks for, in the terminal that is our own.
pub(super) fn pane(door: &OsStr) -> io::Result<()> {
    own::close_inherited();
    own::default_signals();
    let connection = linux::connect(&Path::new(&doors()).join(door))?;
    let pane_terminal = own::take_stdio()?;
    // The command shall have the terminal for its own, as the first of its session.
    terminal::leave(&pane_terminal)?;
    let umask = own::private_umask();
    let context = ForkContext { boot: proc::boot()?, cgroups: Hierarchies::here(), umask, door: None };
    std::env::set_current_dir("/")?;
    linux::send(connection.as_fd(), &[IoSlice::new(&[IS_HOLDER])], &[])?;
    start::serve_in(connection, &context, Some(pane_terminal))
}

/// Runs `wharf-holder tap DOOR`: hands our standard input, which is the pane's output and input, to the starter there.
pub(super) fn tap(door: &OsStr) -> io::Result<()> {
    let connection = linux::connect(&Path::new(&doors()).join(door))?;
    linux::send(connection.as_fd(), &[IoSlice::new(&[IS_PIPE])], &[rustix::stdio::stdin()])?;
    Ok(())
}

/// Where doors are that are named by less than their whole path.
fn doors() -> std::ffi::OsString {
    std::env::var_os(DOORS_VARIABLE).unwrap_or_default()
}

impl Holder {
    /// What a terminal that another holds needs to be asked, since nobody tells: its size, its end, and how far
    /// input has come.
    pub(super) fn look_at_pane(&mut self) {
        let Channel::Pane(pane) = &mut self.channel else { return };
        // What is not ours to reap may have ended, and that may be why.
        let cut_off = pane.link().is_none()
            && pane.is_cut_off()
            && !(self.tree.guest && proc::ends(&self.pidfd, COMMAND_END_TIMEOUT));
        self.settle();
        if self.input.waiting() > 0 {
            self.feed();
        }
        self.follow_size();
        if cut_off && !self.ending.is_asked() && !self.ending.has_ended() {
            let request = StopRequest { grace: CUT_OFF_GRACE, reason: Reason::Lost, by: ENDED_BY.to_owned() };
            self.ending.ask(&request, &self.tree, true);
        }
    }

    /// Tells those whose input is in the terminal now. True when nobody waits for that any more.
    fn settle(&mut self) -> bool {
        let Channel::Pane(pane) = &mut self.channel else { return true };
        let (settled, rest) = (pane.settled(), pane.waits());
        for (peer, seq) in settled {
            self.typed(now());
            self.answer(peer, Kind::Ack, seq, &[]);
        }
        !rest
    }

    /// The program that holds the terminal may change its size, as when somebody joins. But where we have just set it,
    /// that program only comes late with one that is out of date.
    fn follow_size(&mut self) {
        let Some(size) = self.channel.size().filter(|size| *size != self.size) else { return };
        let Channel::Pane(pane) = &self.channel else { return };
        if pane.sized.is_some_and(|at| at.elapsed() < OWN_SIZE_INTERVAL) {
            let _ = self.channel.resize(self.size);
            return;
        }
        let _ = self.log.mark(Mark::Resize(size), micros());
        self.size = size;
        self.news();
    }

    /// Takes in the last output: the other program lets go when it has passed all of it on.
    pub(super) fn empty_pane(&mut self) {
        let until = Instant::now() + INPUT_TIMEOUT;
        // The command may have read, and ended, before anybody could look.
        while !self.settle() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let Channel::Pane(pane) = &mut self.channel else { return };
        if pane.is_cut_off() && !(self.tree.guest && self.ending.has_ended()) {
            self.ending.cut_off(ENDED_BY);
        }
        pane.let_go();
        if self.tree.guest && !self.ending.has_ended() {
            // It prints on, and we are no longer there to hear it.
            self.pump(Source::Out);
            return;
        }
        let longest = Instant::now() + ALL_OUTPUT_TIMEOUT;
        let mut until = Instant::now() + LAST_OUTPUT_TIMEOUT;
        while let Channel::Pane(pane) = &self.channel
            && pane.link().is_some()
            && Instant::now() < until.min(longest)
        {
            pane.wait(until.saturating_duration_since(Instant::now()));
            let before = self.log.end();
            self.pump(Source::Out);
            if self.log.end() != before {
                until = Instant::now() + LAST_OUTPUT_TIMEOUT;
            } else if self.full.is_some() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}
