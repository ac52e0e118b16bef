//! The screen as it is, from a daemon that knows it.

use std::io;
use std::path::Path;
use std::time::Duration;

use wharf_holder_client::client::Client;
use wharf_model::Offset;

use super::geometry::Say;
use crate::{call, place, terminal};

/// How long a daemon may take. One that is slow is not waited for: the end of the log does instead.
const REPAINT_TIMEOUT: Duration = Duration::from_millis(300);

/// What shows a session as it was at an offset of its log.
#[derive(Debug)]
pub(super) struct Painting {
    pub(super) bytes: Vec<u8>,
    pub(super) offset: Offset,
}

/// Asks for a painting that fits our terminal; none where there is none to be had at once. No daemon is started for it.
///
/// The session gets our size first, where we have a say in it, so that its screen is that of our terminal. Nobody counts as
/// attached until then: questions of the application are the daemon's to answer up to the offset.
pub(super) fn painting(session: &Path, say: &mut Say) -> Option<Painting> {
    let ours = terminal::size(io::stdout())?.sane();
    let mut holder = Client::connect(session, "program").ok()?;
    let status = holder.welcome().status.clone()?;
    if status.size != ours {
        if !say.decides(status.attached == 0) {
            return None;
        }
        holder.resize(ours).ok()?;
    }
    let (home, id) = (place::home().ok()?, session.file_name()?.to_str()?);
    let asked = call::runtime().ok()?.block_on(async {
        let client = wharf_api::Client::new(home.socket());
        client.repaint(id, ours, REPAINT_TIMEOUT).await
    });
    let (painted, offset) = asked.ok()?;
    // What stands on our terminal goes up, and is not painted over.
    let mut bytes = b"\r\n".repeat(usize::from(ours.rows));
    bytes.extend_from_slice(&painted);
    Some(Painting { bytes, offset })
}
