//! The agent of the chaos run: numbered lines at a fixed rate, an answer to every line of input, an exit
//! code when told, and a record of how long its own writes were held up.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcsetattr};
use serde_json::json;
use wharf_tool_support::flags::Flags;

/// Every numbered line has this many bytes, the newline included.
pub(crate) const LINE_LEN: usize = 100;

/// How often the counter writes.
pub(crate) const WRITE_INTERVAL: Duration = Duration::from_millis(10);

/// At most this many lines go out in one write: what a stall held back comes in pieces.
const MAX_LINES_PER_WRITE: u64 = 640;

/// Gaps between writes are counted by the millisecond, up to this.
const MAX_GAP_MILLIS: usize = 10_000;

/// `wharf-stress counter --rate BYTES [--report FILE]`: lives until it is told `exit CODE`.
pub(crate) fn task(mut flags: Flags) -> Result<()> {
    let rate: u64 = flags.value("rate")?.unwrap_or(100_000);
    let report: Option<PathBuf> = flags.value("report")?;
    flags.finish()?;
    raw_terminal()?;

    let (sender, orders) = mpsc::channel();
    std::thread::spawn(move || {
        // A terminal in raw mode hands over what was typed as it is: both ends of line end a line.
        for byte_line in BufReader::new(io::stdin().lock()).split(b'\n') {
            let Ok(line) = byte_line else { return };
            let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            if sender.send(line).is_err() {
                return;
            }
        }
    });

    let mut out = io::stdout().lock();
    let began = Instant::now();
    let mut written = 0_u64;
    let mut gaps = vec![0_u64; MAX_GAP_MILLIS];
    let mut last = began;
    loop {
        let order = match orders.recv_timeout(WRITE_INTERVAL) {
            Ok(order) => Some(order),
            Err(RecvTimeoutError::Timeout) => None,
            // Nobody can ever tell it to exit again: it does so itself, as an agent without input would.
            Err(RecvTimeoutError::Disconnected) => Some("exit 99".to_owned()),
        };
        if let Some(code) = order.as_deref().and_then(|line| line.strip_prefix("exit ")) {
            let code: i32 = code.parse().context("an exit code")?;
            writeln!(out, "end {written}")?;
            out.flush()?;
            if let Some(path) = report {
                std::fs::write(path, json!({ "written": written, "gaps": gaps }).to_string())?;
            }
            std::process::exit(code);
        }
        let mut batch = Vec::new();
        if let Some(line) = order {
            writeln!(batch, "got {line}")?;
        }
        let due = (began.elapsed().as_secs_f64() * rate as f64) as u64 / LINE_LEN as u64;
        let upto = due.min(written + MAX_LINES_PER_WRITE);
        batch.extend((written + 1..=upto).flat_map(numbered));
        written = written.max(upto);
        if !batch.is_empty() {
            out.write_all(&batch)?;
            out.flush()?;
            let gap = last.elapsed().as_millis() as usize;
            gaps[gap.min(MAX_GAP_MILLIS - 1)] += 1;
            last = Instant::now();
        }
    }
}

/// Line number `number`, from 1.
pub(crate) fn numbered(number: u64) -> Vec<u8> {
    let mut line = format!("{number:010} ").into_bytes();
    line.extend((line.len()..LINE_LEN - 1).map(|at| b'a' + (number as usize + at) as u8 % 26));
    line.push(b'\n');
    line
}

/// The number of a line that is whole.
pub(crate) fn number(line: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(line.get(..10)?).ok()?.parse().ok()?;
    (line == numbered(number)).then_some(number)
}

/// An echo would stand in the middle of a numbered line, and output would be changed on its way.
fn raw_terminal() -> Result<()> {
    let input = io::stdin();
    if isatty(input.as_fd()) {
        let mut modes = tcgetattr(input.as_fd())?;
        modes.make_raw();
        tcsetattr(input.as_fd(), OptionalActions::Now, &modes)?;
    }
    Ok(())
}
