//! Stops an agent's turn by its profile's keys, and sees it stop.

use std::time::{Duration, Instant};

use wharf_model::{Code, Failure, Interrupted, State};

use crate::Result;
use crate::deliver::typing::Typist;

/// How often the keys are pressed, and how long each press has to show.
const MAX_PRESSES: u32 = 3;
const PRESS_TIMEOUT: Duration = Duration::from_millis(2_500);

/// How long an agent of which nothing is known yet may take to show what it does: it has just started, or its screen is new.
const FIRST_SIGHT_TIMEOUT: Duration = Duration::from_secs(5);

impl Typist {
    /// Stops the agent's turn by what its profile says does that, and sees it stop.
    pub(crate) async fn interrupt(&mut self, within: Duration) -> Result<Interrupted> {
        let session = self.handle.session();
        if session.paused {
            let name = &session.name;
            return Err(Failure::new(Code::Busy, format!("session {name} is paused, and reads no keys"))
                .hint(format!("`wharf unpause {name}` lets it go on, `wharf stop {name}` ends it")));
        }
        let observed = std::sync::Arc::clone(&self.observed);
        let deadline = Instant::now() + within;
        let _turn = observed.input_turns.take_within(within).await?;
        let mut seen = self.look().await?;
        let unclear = |state| matches!(state, State::Starting | State::Running);
        if observed.profile().attend && unclear(seen.report.state) {
            let clear = deadline.min(Instant::now() + FIRST_SIGHT_TIMEOUT);
            let later = self.until(clear, |seen| !unclear(seen.report.state)).await?;
            seen = later.unwrap_or(seen);
        }
        let keys = observed.profile().keys.interrupt.clone();
        if seen.unfinished || !matches!(seen.report.state, State::Working | State::Asking) {
            // An agent at rest has no turn to stop, and its key may end the agent itself. Any other program gets the key.
            let report = seen.report.clone();
            if observed.profile().attend {
                let reason = format!("it is {}, and has no turn to stop", report.state.as_str());
                return Ok(Interrupted { report, keys: Vec::new(), reason });
            }
            self.press(&keys).await?;
            let reason = format!("{} was pressed: nothing is known of turns of this program", keys.join(" "));
            return Ok(Interrupted { report, keys, reason });
        }
        for _ in 0..MAX_PRESSES {
            self.press(&keys).await?;
            let shows = deadline.min(Instant::now() + PRESS_TIMEOUT);
            let stopped = |state| !matches!(state, State::Working | State::Asking);
            if let Some(seen) = self.until(shows, |seen| stopped(seen.report.state)).await? {
                observed.add_event("engine", "interrupted", serde_json::json!({ "keys": keys }));
                let reason = format!("{} stopped its turn", keys.join(" "));
                return Ok(Interrupted { report: seen.report.clone(), keys, reason });
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
