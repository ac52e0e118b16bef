//! Tells the process that started the daemon whether it is ready.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use wharf_api::daemon::{READY_FD_VARIABLE, READY_MARK};
use wharf_model::Failure;

/// Where a daemon tells its starter that it is ready, or why not.
pub(crate) struct Ready(Option<File>);

impl Ready {
    /// The descriptor that the starter named, if it did.
    pub(crate) fn from_env() -> Self {
        let number = std::env::var(READY_FD_VARIABLE)
            .ok()
            .and_then(|text| text.parse::<RawFd>().ok())
            .filter(|fd| *fd == 0 || *fd > 2);
        // A number that is not open, or that somebody left in the environment by mistake, is no pipe.
        Self(number.and_then(pipe).map(File::from))
    }

    /// Says that it is ready.
    pub(crate) fn ready(mut self) {
        self.say(&[READY_MARK]);
    }

    /// Says why it will not be.
    pub(crate) fn failed(mut self, failure: &Failure) {
        self.say(&serde_json::to_vec(failure).unwrap_or_default());
    }

    fn say(&mut self, text: &[u8]) {
        if let Some(mut pipe) = self.0.take()
            && let Err(error) = pipe.write_all(text)
        {
            tracing::debug!("the starter does not wait any more: {error}");
        }
    }
}

fn pipe(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: it is only asked what it is, which an unused number answers with an error.
    #[expect(unsafe_code, reason = "the number comes from the environment")]
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    let stat = rustix::fs::fstat(borrowed).ok()?;
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo() {
        return None;
    }
    if number == 0 {
        // As a holder hands it over. Whoever reads standard input later shall find nothing there.
        let moved = rustix::io::fcntl_dupfd_cloexec(borrowed, 3).ok()?;
        rustix::stdio::dup2_stdin(File::open("/dev/null").ok()?).ok()?;
        return Some(moved);
    }
    // It must not reach any process that the daemon starts.
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC).ok()?;
    // SAFETY: the starter left it open for us, and nothing else in this process knows of it.
    #[expect(unsafe_code, reason = "the number comes from the environment")]
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}
