//! Copies a session's output into a file as it comes, exactly once across crashes.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wharf_backend::{Output, OutputChunk};
use wharf_boundary::Dir;
use wharf_model::{Failure, Home, Offset, Text};

use crate::Result;
use crate::instance::disk;
use crate::instance::shared::{Shared, without_start_data};
use crate::output::read::{FollowedOutput, log_end};
use crate::session::handle::Handle;

/// The file in a session's directory that says where its output is copied to.
const RECORD: &str = "pipe.json";
/// How soon a copy that failed, on a full disk say, is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A copy of a session's output into a file, as it comes.
pub(crate) struct OutputCopy {
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<Option<()>>,
}

/// How the file and the log belong together. Written before the first byte is copied, so that the file's size
/// tells at any time, also after a crash, how much was.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    file: Text,
    /// The file's size when the copy began.
    base_size: u64,
    /// The log's offset that belongs there.
    base_offset: Offset,
    /// The directory that the file is in: device and inode. The session may be able to put another in its place, and
    /// its output is not to be written wherever that leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dir: Option<(u64, u64)>,
    /// Whether the session was over and all of it was copied.
    #[serde(default)]
    done: bool,
}

impl OutputCopy {
    /// Changes where a session's output goes; `None` ends the copy. Nothing else copies at the time.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        handle: &Arc<Handle>,
        file: Option<Text>,
        from_start: bool,
    ) -> Result<Option<Self>> {
        let dir = shared.home.session(&handle.id);
        let record = match &file {
            None => None,
            Some(file) => {
                let named = |error| Failure::system(format!("cannot copy to {}", file.lossy()), &error);
                if !file.as_path().is_absolute() {
                    return Err(Failure::new(
                        wharf_model::Code::Invalid,
                        format!("{:?} is not an absolute path", file.lossy()),
                    ));
                }
                // Opened now, so that a file that cannot be written is the caller's to hear of.
                let (open, place) = open_target(file.as_path(), None).map_err(named)?;
                let base_size = open.metadata().map_err(named)?.len();
                let base_offset = if from_start { Offset(0) } else { log_end(&dir.join(Home::LOG))? };
                Some(Record { file: file.clone(), base_size, base_offset, dir: Some(place), done: false })
            }
        };
        let path = dir.join(RECORD);
        if let Some(record) = &record {
            disk::write_json(&path, record)?;
        }
        note(shared, handle, file)?;
        let Some(record) = record else {
            // The ticket says already that there is none.
            let _ = fs::remove_file(&path);
            return Ok(None);
        };
        Ok(Some(Self::spawn(shared, handle, record)))
    }

    /// Goes on with the copy that a session's directory speaks of.
    pub(crate) fn resume(shared: &Arc<Shared>, handle: &Arc<Handle>) -> Option<Self> {
        let path = shared.home.session(&handle.id).join(RECORD);
        let record = match disk::read_json::<Record>(&path) {
            Ok(Some(record)) if record.done => return None,
            Ok(Some(record)) => record,
            Ok(None) => {
                let file = handle.ticket().spec.copy_to.clone()?;
                let base_size = fs::metadata(file.as_path()).map_or(0, |file| file.len());
                let place = open_target(file.as_path(), None).ok().map(|(_, place)| place);
                let record = Record { file, base_size, base_offset: Offset(0), dir: place, done: false };
                if let Err(failure) = disk::write_json(&path, &record) {
                    tracing::warn!(session = %handle.id, %failure, "output is not copied");
                    return None;
                }
                record
            }
            Err(failure) => {
                tracing::warn!(session = %handle.id, %failure, "output is not copied");
                return None;
            }
        };
        Some(Self::spawn(shared, handle, record))
    }

    /// Before another run of a session that was over: the copy goes on with what that run prints.
    pub(crate) fn reopen(shared: &Shared, handle: &Handle) -> Result<()> {
        let dir = shared.home.session(&handle.id);
        let path = dir.join(RECORD);
        match disk::read_json::<Record>(&path)? {
            Some(record) if record.done => {
                let base_size = fs::metadata(record.file.as_path()).map_or(0, |file| file.len());
                let base_offset = log_end(&dir.join(Home::LOG))?;
                disk::write_json(&path, &Record { base_size, base_offset, done: false, ..record })
            }
            _ => Ok(()),
        }
    }

    /// Whether a session's directory speaks of a copy that is not whole.
    pub(crate) fn is_due(dir: &std::path::Path) -> bool {
        disk::read_json::<Record>(&dir.join(RECORD))
            .is_ok_and(|record| record.is_some_and(|record| !record.done))
    }

    fn spawn(shared: &Arc<Shared>, handle: &Arc<Handle>, record: Record) -> Self {
        let (stop, stopped) = oneshot::channel();
        let path = shared.home.session(&handle.id).join(RECORD);
        let mut copy = Copier { shared: Arc::clone(shared), handle: Arc::clone(handle), path, record };
        let done = shared.tasks.spawn(async move {
            tokio::select! {
                // Dropping the sender ends the copy, too.
                _ = stopped => {}
                () = copy.run() => {}
            }
        });
        Self { stop: Some(stop), done }
    }

    /// Ends the copy where it is, and waits until nothing is being written any more.
    pub(crate) async fn end(mut self, within: Duration) {
        self.stop.take();
        let _ = tokio::time::timeout(within, &mut self.done).await;
    }

    /// Waits for the copy of a session that is over to be whole. False where it is not, yet.
    pub(crate) async fn finish(mut self, within: Duration) -> bool {
        tokio::time::timeout(within, &mut self.done).await.is_ok()
    }
}

struct Copier {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
    path: PathBuf,
    record: Record,
}

impl Copier {
    async fn run(&mut self) {
        loop {
            match self.copy().await {
                Ok(()) => {
                    self.record.done = true;
                    if let Err(failure) = disk::write_json(&self.path, &self.record) {
                        tracing::warn!(session = %self.handle.id, %failure, "a finished copy was not noted");
                    }
                    return;
                }
                Err(error) => {
                    tracing::warn!(session = %self.handle.id, %error, "output could not be copied; it is tried again");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    /// Copies from where the file ends, until the session's output ends.
    async fn copy(&mut self) -> io::Result<()> {
        let (file, place) = open_target(self.record.file.as_path(), self.record.dir)?;
        let mut file = File::from_std(file);
        if self.record.dir.is_none() {
            self.record.dir = Some(place);
            disk::write_json(&self.path, &self.record).map_err(io::Error::other)?;
        }
        let size = file.metadata().await?.len();
        if size < self.record.base_size {
            // Somebody cut the file. What was copied is theirs to miss; what comes is not.
            self.record.base_offset =
                log_end(&self.path.with_file_name(Home::LOG)).map_err(io::Error::other)?;
            self.rebase(&file).await?;
        }
        let at = self.record.base_offset + file.metadata().await?.len().saturating_sub(self.record.base_size);
        let mut output = FollowedOutput::new(&self.shared, &self.handle, at);
        while let Some(chunk) = output.next().await.map_err(io::Error::other)? {
            match chunk {
                OutputChunk::Data { bytes, .. } => {
                    file.write_all(&bytes).await?;
                    file.flush().await?;
                }
                OutputChunk::Gap { to, .. } => {
                    self.record.base_offset = to;
                    self.rebase(&file).await?;
                }
            }
        }
        Ok(())
    }

    async fn rebase(&mut self, file: &File) -> io::Result<()> {
        self.record.base_size = file.metadata().await?.len();
        disk::write_json(&self.path, &self.record).map_err(io::Error::other)
    }
}

/// Opens the file to append to, or makes it, in the very directory that it was in at first. What is no file of its own
/// there (a link, a pipe, another name of a file elsewhere) is refused, and not waited for.
fn open_target(path: &std::path::Path, place: Option<(u64, u64)>) -> io::Result<(fs::File, (u64, u64))> {
    use std::os::unix::fs::MetadataExt;
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = Dir::open(dir)?;
    let now = dir.identity()?;
    if place.is_some_and(|place| place != now) {
        return refused("its directory is another one than it was");
    }
    let file = match dir.open_file_for_writing(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => dir.make_file(name, 0o600)?,
        opened => opened?,
    };
    if file.metadata()?.nlink() > 1 {
        return refused("it has another name elsewhere (a hard link)");
    }
    rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::APPEND)?;
    Ok((file, now))
}

/// Writes into the ticket where output goes, and shows it.
fn note(shared: &Arc<Shared>, handle: &Arc<Handle>, file: Option<Text>) -> Result<()> {
    let path = shared.home.session(&handle.id).join(Home::TICKET);
    {
        let _disk = handle.disk();
        let Some(mut ticket) = disk::read_json::<wharf_model::Ticket>(&path)? else {
            return Err(crate::instance::lookup::no_ticket(&handle.session().name));
        };
        ticket.spec.copy_to.clone_from(&file);
        disk::write_json(&path, &ticket)?;
        handle.links().ticket = Arc::new(without_start_data(ticket));
    }
    shared.update(handle, |session| session.copy_to = file);
    Ok(())
}
