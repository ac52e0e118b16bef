//! What the processes of a session tell, on its way to the daemon.
//!
//! They are out of reach of the daemon's own socket, or nobody that this host knows. Whoever speaks where only that session
//! can speak, speaks for it and for no other: the place says which one it is, not the speaker. It is foreign data all the
//! same, so lines have an end, and all that a session says together has a rate.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};
use wharf_boundary::Dir;
use wharf_model::{Home, Ticket};

/// The longest line: a hook has the file in it that its agent has just written. Whoever says more in one breath is closed.
const MAX_LINE: usize = 1 << 20;
/// How long a line that has begun may take to be whole, and what was said to be heard.
const LINE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes one session's speakers may say in an interval, all of them together.
const MAX_BYTES_PER_INTERVAL: usize = 4 << 20;
/// How long such an interval lasts.
const BUDGET_INTERVAL: Duration = Duration::from_secs(1);

/// What one session may say, and for whom it is said.
#[derive(Debug)]
pub struct ChannelRelay {
    introduction: String,
    /// The instance's directory, with the daemon's socket.
    state: PathBuf,
    /// Since when how much was said.
    spent: Mutex<(Instant, usize)>,
    line_time: Duration,
}

impl ChannelRelay {
    /// That of a session, to the daemon of an instance.
    pub fn of(ticket: &Ticket, state: PathBuf) -> Self {
        let introduction = serde_json::json!({
            "v": 1, "session": ticket.id.as_str(), "token": ticket.token, "only": true
        });
        Self::new(format!("{introduction}\n"), state, LINE_TIMEOUT)
    }

    fn new(introduction: String, state: PathBuf, line_time: Duration) -> Self {
        Self { introduction, state, spent: Mutex::new((Instant::now(), 0)), line_time }
    }

    /// Waits until so much may be said.
    async fn spend(&self, count: usize) {
        let mut spent = self.spent.lock().await;
        if spent.0.elapsed() >= BUDGET_INTERVAL {
            *spent = (Instant::now(), 0);
        }
        if spent.1 >= MAX_BYTES_PER_INTERVAL {
            // The others wait for the lock meanwhile, and so for the same moment.
            tokio::time::sleep_until(spent.0 + BUDGET_INTERVAL).await;
            *spent = (Instant::now(), 0);
        }
        spent.1 += count;
    }

    /// Hands on what one speaker says, and what the daemon answers.
    pub async fn hand_on(&self, speaker: UnixStream) -> io::Result<()> {
        // Never waits: the daemon is who would have to make room for it.
        let stream = Dir::open(&self.state)?.connect_now(Home::EVENTS_SOCKET)?;
        let stream = UnixStream::from_std(stream)?;
        let (mut said, mut answer) = speaker.into_split();
        let (mut answers, mut daemon) = stream.into_split();
        daemon.write_all(self.introduction.as_bytes()).await?;
        let there = async {
            let mut line = 0;
            let mut begun: Option<Instant> = None;
            let mut buffer = vec![0; 8 << 10];
            loop {
                // Nobody has to speak; but who has begun a line has to end it.
                let count = match begun {
                    None => said.read(&mut buffer).await?,
                    Some(begun) => timeout_at(begun + self.line_time, said.read(&mut buffer)).await??,
                };
                if count == 0 {
                    return daemon.shutdown().await;
                }
                let bytes = &buffer[..count];
                let longest = bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
                let tail = bytes.iter().rev().take_while(|byte| **byte != b'\n').count();
                let first = bytes.iter().take_while(|byte| **byte != b'\n').count();
                if line + first > MAX_LINE || longest > MAX_LINE {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                let ended = tail < count;
                line = if ended { tail } else { line + count };
                begun =
                    if line == 0 { None } else { begun.filter(|_| !ended).or_else(|| Some(Instant::now())) };
                self.spend(count).await;
                timeout(self.line_time, daemon.write_all(bytes)).await??;
            }
        };
        let back = async {
            let mut buffer = vec![0; 8 << 10];
            loop {
                let count = answers.read(&mut buffer).await?;
                if count == 0 {
                    return answer.shutdown().await;
                }
                timeout(self.line_time, answer.write_all(&buffer[..count])).await??;
            }
        };
        tokio::try_join!(there, back).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    /// What a speaker was told, and what the daemon heard.
    async fn heard(line: &[u8]) -> (io::Result<usize>, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let daemon = UnixListener::bind(dir.path().join(Home::EVENTS_SOCKET)).unwrap();
        let (mut speaker, other) = UnixStream::pair().unwrap();
        let relay = ChannelRelay::new("me\n".to_owned(), dir.path().to_owned(), LINE_TIMEOUT);
        let task = tokio::spawn(async move { relay.hand_on(other).await });
        let (mut hears, _) = daemon.accept().await.unwrap();
        let heard = tokio::spawn(async move {
            let mut heard = Vec::new();
            hears.read_to_end(&mut heard).await.unwrap();
            heard
        });
        let said = speaker.write_all(line).await;
        let _ = speaker.shutdown().await;
        let mut answer = Vec::new();
        let said = match said {
            Ok(()) => speaker.read_to_end(&mut answer).await,
            Err(error) => Err(error),
        };
        let said = task.await.unwrap().and(said);
        (said, heard.await.unwrap())
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_cut_off_and_lines_are_not() {
        let long = vec![b'['; 20 << 20];
        let (said, told) = heard(&long).await;
        said.unwrap_err();
        assert!(told.len() <= MAX_LINE + 16, "{} bytes were handed on", told.len());
        let lines = [vec![b'x'; MAX_LINE - 1], b"\n".to_vec()].concat().repeat(3);
        let (said, told) = heard(&lines).await;
        said.unwrap();
        assert_eq!(told.len(), lines.len() + 3);
    }

    #[tokio::test]
    async fn a_line_that_takes_too_long_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let daemon = UnixListener::bind(dir.path().join(Home::EVENTS_SOCKET)).unwrap();
        let (mut speaker, other) = UnixStream::pair().unwrap();
        let relay = ChannelRelay::new(String::new(), dir.path().to_owned(), Duration::from_millis(50));
        let task = tokio::spawn(async move { relay.hand_on(other).await });
        let (_hears, _) = daemon.accept().await.unwrap();
        speaker.write_all(b"{").await.unwrap();
        let error = timeout(Duration::from_secs(20), task).await.expect("it ends").unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn all_speakers_together_have_a_rate() {
        let relay = ChannelRelay::new(String::new(), PathBuf::new(), LINE_TIMEOUT);
        let begun = Instant::now();
        for _ in 0..3 {
            tokio::join!(relay.spend(MAX_BYTES_PER_INTERVAL / 2), relay.spend(MAX_BYTES_PER_INTERVAL / 2));
        }
        // The first portion is free, and each further one waits for its time.
        assert!(begun.elapsed() >= 2 * BUDGET_INTERVAL, "{:?}", begun.elapsed());
    }
}
