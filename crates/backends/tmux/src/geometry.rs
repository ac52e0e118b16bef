//! Has tmux follow when a session's size changes: the terminal has it at once, tmux must be told.

use std::time::Duration;

use tokio::sync::watch;
use wharf_backend::Status;
use wharf_model::Size;

use crate::server::Server;

/// How long a size must have stood before tmux hears of it: one that is told while the next is set would undo that.
const SIZE_STABLE_TIME: Duration = Duration::from_millis(300);

/// Follows one session to its end.
pub(crate) async fn follow(server: Server, session: String, mut status: watch::Receiver<Status>) {
    let mut known = status.borrow_and_update().size;
    loop {
        if status.wait_for(|status| status.size != known || over(status)).await.is_err() {
            return;
        }
        loop {
            let size = status.borrow_and_update().size;
            let changed = status.wait_for(|status| status.size != size || over(status));
            match tokio::time::timeout(SIZE_STABLE_TIME, changed).await {
                Ok(Ok(status)) if !over(&status) => {}
                Ok(_) => return,
                Err(_) => {
                    known = size;
                    break;
                }
            }
        }
        // Where tmux is gone or hung, the terminal has its size all the same.
        let _ = tell(&server, &session, known).await;
    }
}

fn over(status: &Status) -> bool {
    status.exit.is_some() || status.broken
}

async fn tell(server: &Server, session: &str, size: Size) -> wharf_backend::Result<()> {
    let target = format!("={session}:");
    let format = "#{window_width} #{window_height}";
    let has = server.ask(["display-message", "-p", "-t", &target, format]).await?;
    // It was tmux itself that changed it: somebody joined with a terminal of another size.
    if has.trim() == format!("{} {}", size.cols, size.rows) {
        return Ok(());
    }
    let (cols, rows) = (size.cols.to_string(), size.rows.to_string());
    server.ask(["resize-window", "-t", &target, "-x", &cols, "-y", &rows]).await?;
    // That fixed the size for good; whoever joins may change it again.
    server.ask(["set-option", "-w", "-u", "-t", &target, "window-size"]).await.map(drop)
}
