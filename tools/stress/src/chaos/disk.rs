//! A small disk of the run's own, which fills and empties while everything else goes on.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fastrand::Rng;

/// Says that we are in a mount namespace of our own already.
const INSIDE: &str = "XTASK_CHAOS_INSIDE";
/// The longest that the disk is full, and that it has room, at a time.
const MAX_FULL_TIME: Duration = Duration::from_millis(2_500);
const MAX_FREE_TIME: Duration = Duration::from_secs(4);
/// How often it is looked whether the run is over.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Begins this run anew in a mount namespace of its own: no mount of it outlives it, however it ends.
pub(super) fn enter_namespace() -> Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(());
    }
    let own = std::env::current_exe()?;
    let error = Command::new("unshare")
        .args(["-m", "--propagation", "private", "--"])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .exec();
    Err(error).context("cannot run unshare")
}

/// Mounts a file system of this many MiB.
pub(super) fn mount(at: &Path, mib: u64) -> Result<()> {
    fs::create_dir_all(at)?;
    let size = format!("size={mib}m,mode=700");
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).status()?;
    if !done.success() {
        bail!("cannot mount a disk of {mib} MiB at {}: the run needs root", at.display());
    }
    Ok(())
}

/// What fills the disk again and again.
pub(super) struct Tide {
    stop: Arc<AtomicBool>,
    times: Arc<AtomicU32>,
    thread: JoinHandle<()>,
}

impl Tide {
    pub(super) fn start(disk: &Path, seed: u64) -> Self {
        let (stop, times) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (told, count, ballast) = (Arc::clone(&stop), Arc::clone(&times), disk.join("ballast"));
        let thread = std::thread::spawn(move || {
            let mut random = Rng::with_seed(seed ^ 0x71DE);
            while pass(&told, &mut random, MAX_FREE_TIME) {
                fill(&ballast);
                count.fetch_add(1, Ordering::Relaxed);
                // What others give back meanwhile is taken too.
                for _ in 0..8 {
                    if !pass(&told, &mut random, MAX_FULL_TIME / 8) {
                        break;
                    }
                    fill(&ballast);
                }
                let _ = fs::remove_file(&ballast);
            }
            let _ = fs::remove_file(&ballast);
        });
        Self { stop, times, thread }
    }

    /// Leaves the disk with room. How often it was full.
    pub(super) fn finish(self) -> Result<u32> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that fills the disk panicked"))?;
        Ok(self.times.load(Ordering::Relaxed))
    }
}

/// Lets a part of a span pass. False when the run is over.
fn pass(stop: &AtomicBool, random: &mut Rng, span: Duration) -> bool {
    let mut left = Duration::from_millis(random.u64(..span.as_millis() as u64));
    while !left.is_zero() && !stop.load(Ordering::Relaxed) {
        let step = left.min(POLL_INTERVAL);
        std::thread::sleep(step);
        left -= step;
    }
    !stop.load(Ordering::Relaxed)
}

/// Takes all the room that there is.
fn fill(ballast: &PathBuf) {
    let Ok(mut file) = OpenOptions::new().create(true).append(true).open(ballast) else { return };
    for size in [1 << 20, 64 << 10, 4096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}
