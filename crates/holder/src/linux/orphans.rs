//! What a holder that was killed left without a parent: the nursery that forked it takes them in, and says whose they are.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use wharf_model::ProcessIdentity;

use super::{proc, socket};

/// A process by its pid and its start time.
pub(crate) type Who = (i32, u64);

/// How long the nursery may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one that did not answer is not asked again: whoever ends a session asks often.
const ASK_AGAIN_INTERVAL: Duration = Duration::from_secs(5);
/// The bytes of a question: for whom, and whose orphans.
pub(crate) const QUESTION_LEN: usize = 24;
/// The bytes of one orphan in an answer: whether it is beyond doubt, its pid, its start time.
const ENTRY_LEN: usize = 13;
/// The most orphans in an answer.
pub(crate) const MAX_TOLD: usize = 4096;
/// The most bytes of the variables of an orphan that are looked at.
const MAX_VARIABLES_LEN: u64 = 4 << 20;

/// The orphans of a session whose holder was killed, as its nursery knows them.
pub struct Orphans {
    /// The way to the nursery.
    door: OwnedFd,
    /// Who asks from now on.
    heir: Who,
    /// Whose orphans they were first.
    of: Who,
    known: RefCell<Vec<Who>>,
    unsure: Cell<bool>,
    /// Since when nobody has answered.
    silent: Cell<Option<Instant>>,
}

/// What the nursery answers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether it was there to take the orphans in.
    pub(crate) known: bool,
    /// Each with whether it is beyond doubt.
    pub(crate) orphans: Vec<(bool, Who)>,
}

impl Orphans {
    /// Those of one holder, for another that takes its place, or for whoever sweeps up after both.
    pub fn new(door: OwnedFd, heir: &ProcessIdentity, of: &ProcessIdentity) -> Self {
        let who = |identity: &ProcessIdentity| (identity.pid, identity.start);
        let (known, unsure, silent) = (RefCell::default(), Cell::new(false), Cell::new(None));
        Self { door, heir: who(heir), of: who(of), known, unsure, silent }
    }

    /// Asks for those that there are by now. Where nobody answers, those that were told before are all that is known.
    pub(crate) fn look(&self) -> Vec<Who> {
        if self.silent.get().is_some_and(|since| since.elapsed() < ASK_AGAIN_INTERVAL) {
            return self.known.borrow().clone();
        }
        let answer = self.ask();
        self.silent.set(answer.is_err().then(Instant::now));
        match answer {
            Ok(answer) => {
                let doubtful = |(certain, who): &(bool, Who)| !certain && is_nobodys(*who);
                self.unsure.set(!answer.known || answer.orphans.iter().any(doubtful));
                let certain = answer.orphans.into_iter().filter(|(certain, _)| *certain);
                *self.known.borrow_mut() = certain.map(|(_, who)| who).collect();
            }
            Err(_) => self.unsure.set(true),
        }
        self.known.borrow().clone()
    }

    /// Whether there are no others that nobody can tell from processes outside of the session.
    pub fn are_all_known(&self) -> bool {
        self.look();
        !self.unsure.get()
    }

    fn ask(&self) -> io::Result<Answer> {
        let (mut ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        rustix::net::sockopt::set_socket_timeout(
            &self.door,
            rustix::net::sockopt::Timeout::Send,
            Some(ANSWER_TIMEOUT),
        )?;
        socket::send(self.door.as_fd(), &[IoSlice::new(&question(self.heir, self.of))], &[theirs.as_fd()])?;
        drop(theirs);
        let mut bytes = Vec::new();
        ours.by_ref().take((1 + MAX_TOLD * ENTRY_LEN) as u64).read_to_end(&mut bytes)?;
        Answer::parse(&bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

fn question(heir: Who, of: Who) -> [u8; QUESTION_LEN] {
    let mut bytes = [0; QUESTION_LEN];
    for (at, (pid, start)) in [(0, heir), (12, of)] {
        bytes[at..at + 4].copy_from_slice(&pid.to_le_bytes());
        bytes[at + 4..at + 12].copy_from_slice(&start.to_le_bytes());
    }
    bytes
}

/// For whom it is asked, and whose orphans are meant.
pub(crate) fn asked(question: &[u8; QUESTION_LEN]) -> (Who, Who) {
    (who(&question[..12]), who(&question[12..]))
}

fn who(bytes: &[u8]) -> Who {
    let (mut pid, mut start) = ([0; 4], [0; 8]);
    pid.copy_from_slice(&bytes[..4]);
    start.copy_from_slice(&bytes[4..12]);
    (i32::from_le_bytes(pid), u64::from_le_bytes(start))
}

impl Answer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.known && self.orphans.len() <= MAX_TOLD)];
        for (certain, (pid, start)) in self.orphans.iter().take(MAX_TOLD) {
            bytes.push(u8::from(*certain));
            bytes.extend_from_slice(&pid.to_le_bytes());
            bytes.extend_from_slice(&start.to_le_bytes());
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (known, rest) = bytes.split_first()?;
        let orphans = rest.chunks_exact(ENTRY_LEN).map(|entry| (entry[0] != 0, who(&entry[1..]))).collect();
        Some(Self { known: *known != 0, orphans })
    }
}

/// Whether a process lives and shows nothing of any session: one that does is known by that.
fn is_nobodys((pid, start): Who) -> bool {
    let lives = proc::stat(pid).is_ok_and(|stat| stat.start == start && stat.lives());
    let read = |what: &str| {
        let mut bytes = Vec::new();
        let file = fs::File::open(format!("/proc/{pid}/{what}")).ok()?;
        file.take(MAX_VARIABLES_LEN).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let variables = read("environ").unwrap_or_default();
    let marked = variables.split(|byte| *byte == 0).any(|one| one.starts_with(b"WHARF_SESSION_ID="));
    let grouped = read("cgroup").is_some_and(|groups| groups.windows(7).any(|part| part == b"/wharf-"));
    lives && !marked && !grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_arrive_as_they_were() {
        assert_eq!(asked(&question((7, 1 << 40), (-1, u64::MAX))), ((7, 1 << 40), (-1, u64::MAX)));
        let answer = Answer { known: true, orphans: vec![(true, (5, 6)), (false, (i32::MAX, 0))] };
        assert_eq!(Answer::parse(&answer.encode()), Some(answer));
        assert_eq!(Answer::parse(&[]), None);
        let many = Answer { known: true, orphans: vec![(true, (1, 1)); MAX_TOLD + 1] };
        let read = Answer::parse(&many.encode()).unwrap();
        assert!(!read.known && read.orphans.len() == MAX_TOLD, "what is left out is told");
    }

    #[test]
    fn a_nursery_that_is_gone_leaves_doubt() {
        let (door, desk) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let me = proc::identity(std::process::id() as i32, &proc::boot().unwrap()).unwrap();
        drop(desk);
        let orphans = Orphans::new(door.into(), &me, &me);
        assert_eq!(orphans.look(), []);
        assert!(!orphans.are_all_known());
    }
}
