use std::time::{Duration, Instant};

use wharf_model::{Code, Failure, Report, State};

use super::typing::Typist;
use crate::Result;

/// How often the keys are pressed, and how long each press has to show.
const PRESSES: u32 = 3;
const SHOWS: Duration = Duration::from_millis(2_500);

impl Typist {
    /// Stops the agent's turn by what its profile says does that, and sees it stop.
    pub(crate) async fn interrupt(&mut self, within: Duration) -> Result<Report> {
        let attention = std::sync::Arc::clone(&self.attention);
        let _pen = attention.pen.lock().await;
        let deadline = Instant::now() + within;
        let seen = self.look().await?;
        let keys = attention.profile.keys.interrupt.clone();
        if !matches!(seen.report.state, State::Working | State::Asking) {
            // An agent at rest has no turn to stop, and its key may end the agent itself. Any other program gets the key.
            if !attention.profile.attend {
                self.press(&keys).await?;
            }
            return Ok(seen.report.clone());
        }
        for _ in 0..PRESSES {
            self.press(&keys).await?;
            let shows = deadline.min(Instant::now() + SHOWS);
            let stopped = |state| !matches!(state, State::Working | State::Asking);
            if let Some(seen) = self.until(shows, |seen| stopped(seen.report.state)).await? {
                attention.note("engine", "interrupted", serde_json::json!({ "keys": keys }));
                return Ok(seen.report.clone());
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        let report = self.look().await?.report.clone();
        let name = self.handle.session().name.clone();
        let message = format!(
            "session {name} is still {} after {}: {}",
            report.state.as_str(),
            keys.join(" "),
            report.evidence
        );
        Err(Failure::new(Code::Unconfirmed, message).hint(format!(
            "`wharf capture {name}` shows its screen; `wharf signal {name} INT` is the harder way"
        )))
    }
}
