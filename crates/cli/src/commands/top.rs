//! `wharf top`: shows what sessions use, again and again.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_api::daemon;
use wharf_model::Failure;

use super::stats::{Usage, measure};
use crate::dispatch::Serve;
use crate::each::each;
use crate::other_screen::OtherScreen;
use crate::quantity::human_bytes;
use crate::signals::Signals;
use crate::table::Table;
use crate::terminal::RawMode;
use crate::trouble::{Done, Trouble};
use crate::{call, duration, output, place, terminal};

/// Arguments of `top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions, by name or id; all that run when absent
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// How often to look
    #[arg(short = 'd', long, value_name = "DURATION", default_value = "2", value_parser = duration::parse)]
    delay: Duration,
    /// Look once; the default where standard output is no terminal
    #[arg(long)]
    once: bool,
}

/// The time between the two looks that a share of processor time needs.
const FIRST_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let once = args.once || !io::stdout().is_terminal();
    let home = place::home()?;
    let runtime = call::runtime()?;
    let measured =
        |names: &[String]| runtime.block_on(async { measure(&daemon::ensure(&home).await?, names).await });
    // A name that there is not is told, and the others are shown.
    let mut names = Vec::new();
    let code = each(&args.names, false, |name| {
        measured(&[name.to_owned()])?;
        names.push(name.to_owned());
        Ok(0)
    })?;
    if names.is_empty() && code != 0 {
        return Ok(code);
    }
    let look = || measured(&names);
    let mut before = (Instant::now(), look()?);
    if once {
        std::thread::sleep(FIRST_INTERVAL);
        let after = (Instant::now(), look()?);
        output::text(&listing(&before, &after).text(None))?;
        return Ok(code);
    }
    let cannot = |error: io::Error| Failure::system("cannot take over the terminal", &error);
    let signals =
        Signals::catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGWINCH]).map_err(cannot)?;
    let _raw = io::stdin().is_terminal().then(|| RawMode::enter(io::stdin())).transpose().map_err(cannot)?;
    let _screen = OtherScreen::enter()?;
    let mut pause = FIRST_INTERVAL;
    while !left(&signals, pause)? {
        let after = (Instant::now(), look()?);
        paint(&listing(&before, &after))?;
        before = after;
        pause = args.delay.max(Duration::from_millis(100));
    }
    Ok(code)
}

/// Waits; true when the user wants to leave.
fn left(signals: &Signals, pause: Duration) -> Result<bool, Failure> {
    let stdin = io::stdin();
    let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
    if stdin.is_terminal() {
        fds.push(PollFd::new(&stdin, PollFlags::IN));
    }
    let timeout = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(Failure::system("cannot wait", &error.into())),
    }
    if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
        let mut keys = [0; 64];
        let count = rustix::io::read(&stdin, &mut keys).unwrap_or(0);
        return Ok(count == 0 || keys[..count].iter().any(|key| matches!(key, b'q' | 0x03 | 0x1b)));
    }
    Ok(signals.take().iter().any(|signal| *signal != libc::SIGWINCH))
}

fn listing(before: &(Instant, Vec<Usage>), after: &(Instant, Vec<Usage>)) -> Table {
    let elapsed = (after.0 - before.0).as_secs_f64().max(0.001);
    let mut rows: Vec<(f64, &Usage)> = after
        .1
        .iter()
        .map(|usage| {
            let old = before.1.iter().find(|old| old.name == usage.name);
            let used = old.map_or(0, |old| usage.stats.cpu.0.saturating_sub(old.stats.cpu.0));
            (used as f64 / 10.0 / elapsed, usage)
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.stats.memory.cmp(&a.1.stats.memory)));
    let mut table = Table::new(&["NAME", "CPU%", "TIME", "MEMORY", "PROCESSES", "LOG"]);
    for (share, Usage { name, stats }) in rows {
        table.row([
            name.to_string(),
            format!("{share:.1}"),
            format!("{:.1}s", stats.cpu.0 as f64 / 1_000.0),
            human_bytes(stats.memory),
            stats.processes.to_string(),
            human_bytes(stats.log_end - stats.log_start),
        ]);
    }
    table
}

fn paint(table: &Table) -> Result<(), Trouble> {
    let size = terminal::size(io::stdout()).unwrap_or_default();
    let mut frame = String::from("\x1b[H\x1b[1m");
    for (at, line) in
        table.text(Some(usize::from(size.cols))).lines().take(usize::from(size.rows) - 1).enumerate()
    {
        frame.push_str(line);
        frame.push_str(if at == 0 { "\x1b[0m\x1b[K\r\n" } else { "\x1b[K\r\n" });
    }
    frame.push_str("\x1b[J\x1b[2mq leaves\x1b[0m");
    output::raw(frame.as_bytes())
}
