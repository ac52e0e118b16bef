//! Reads from many readers on a thread, and counts what each got.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};

use crate::contestant::Reader;

/// Readers that move: a thread takes everything that they get.
pub(crate) struct Drain {
    stop: Arc<AtomicBool>,
    counts: Arc<Vec<AtomicU64>>,
    processes: Vec<i32>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    pub(crate) fn start(readers: Vec<Reader>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let counts: Arc<Vec<AtomicU64>> = Arc::new(readers.iter().map(|_| AtomicU64::new(0)).collect());
        let processes =
            readers.iter().filter_map(|reader| Some(reader.process.as_ref()?.0.id() as i32)).collect();
        let thread = std::thread::spawn({
            let (stop, counts) = (Arc::clone(&stop), Arc::clone(&counts));
            move || take_all(&readers, &stop, &counts)
        });
        Self { stop, counts, processes, thread: Some(thread) }
    }

    /// How many there are.
    pub(crate) fn readers(&self) -> usize {
        self.counts.len()
    }

    /// What the slowest reader has got.
    pub(crate) fn least(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).min().unwrap_or(0)
    }

    /// The processes that read.
    pub(crate) fn processes(&self) -> &[i32] {
        &self.processes
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn take_all(readers: &[Reader], stop: &AtomicBool, counts: &[AtomicU64]) {
    let mut bytes = vec![0; 1 << 16];
    let mut open: Vec<usize> = (0..readers.len()).collect();
    let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(Duration::from_millis(50).subsec_nanos()) };
    while !stop.load(Ordering::Relaxed) {
        let mut fds: Vec<PollFd<'_>> = open
            .iter()
            .map(|at| PollFd::from_borrowed_fd(readers[*at].from.as_fd(), PollFlags::IN))
            .collect();
        if poll(&mut fds, Some(&tick)).is_err() {
            continue;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut at = 0;
        open.retain(|reader| {
            at += 1;
            if !ready[at - 1] {
                return true;
            }
            match read(&readers[*reader].from, &mut bytes) {
                Ok(0) => false,
                Ok(length) => {
                    counts[*reader].fetch_add(length as u64, Ordering::Relaxed);
                    true
                }
                Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
            }
        });
        if open.is_empty() {
            return;
        }
    }
}
