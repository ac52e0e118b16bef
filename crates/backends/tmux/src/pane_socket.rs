//! Where a fresh pane reports: its holder, and what brings its output and input.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use wharf_backend::Result;
use wharf_holder::linux;
use wharf_model::{Code, Failure};

/// How long a pane may take to report.
const PANE_REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The first byte of a holder in a pane.
const IS_HOLDER: u8 = b'p';
/// The first byte of what brings a pane's output and input.
const IS_PIPE: u8 = b't';

/// A socket that waits for one pane. Whoever comes after it is gone finds nothing, and goes too.
pub(crate) struct PaneSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl PaneSocket {
    /// Opens a door of that name.
    pub(crate) fn open(dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(name);
        let open = || -> io::Result<_> {
            let listener = linux::bind(&path)?;
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        };
        let listener = open().map_err(|error| Failure::system("cannot listen for the pane", &error))?;
        Ok(Self { path, listener })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for both: the connection to the holder, and the socket to tmux.
    pub(crate) async fn both(&self) -> Result<(UnixStream, OwnedFd)> {
        let wait = async {
            let (mut seated, mut tapped) = (None, None);
            loop {
                match self.next().await? {
                    PaneCaller::Holder(stream) => seated = Some(stream),
                    PaneCaller::Pipe(link) => tapped = Some(link),
                }
                match (seated, tapped) {
                    (Some(stream), Some(link)) => return Ok((stream, link)),
                    rest => (seated, tapped) = rest,
                }
            }
        };
        in_time(wait).await
    }

    /// Waits for the socket to tmux alone.
    pub(crate) async fn link(&self) -> Result<OwnedFd> {
        let wait = async {
            match self.next().await? {
                PaneCaller::Pipe(link) => Ok(link),
                PaneCaller::Holder(_) => Err(stranger()),
            }
        };
        in_time(wait).await
    }

    async fn next(&self) -> io::Result<PaneCaller> {
        let (stream, _) = self.listener.accept().await?;
        match hear(&stream).await? {
            (IS_HOLDER, _) => Ok(PaneCaller::Holder(stream)),
            (IS_PIPE, Some(link)) => Ok(PaneCaller::Pipe(link)),
            _ => Err(stranger()),
        }
    }
}

/// Who comes.
enum PaneCaller {
    /// A holder in a pane.
    Holder(UnixStream),
    /// A pane's output and input.
    Pipe(OwnedFd),
}

fn stranger() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a stranger at the door")
}

async fn in_time<T>(wait: impl Future<Output = io::Result<T>>) -> Result<T> {
    let waited = tokio::time::timeout(PANE_REPORT_TIMEOUT, wait).await.map_err(|_| {
        Failure::new(Code::Timeout, "the pane did not report in time")
            .hint("its process is wharf-holder: can tmux run it?")
    })?;
    waited.map_err(|error| Failure::system("the pane did not report", &error))
}

impl Drop for PaneSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The first byte that somebody says, and the descriptor that came with it.
async fn hear(stream: &UnixStream) -> io::Result<(u8, Option<OwnedFd>)> {
    let (mut byte, mut passed) = ([0], Vec::new());
    loop {
        stream.readable().await?;
        match stream.try_io(Interest::READABLE, || linux::receive(stream, &mut byte, &mut passed)) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok((byte[0], passed.pop())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
