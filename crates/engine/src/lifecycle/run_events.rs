//! Adds events for what happens to a run without ending it: its command is suspended, or the kernel kills one of its processes for want of memory.

use serde_json::{Value, json};
use wharf_backend::Status;
use wharf_model::{Event, Home};

use crate::observe::event_log::EventReader;
use crate::session::task::Task;

/// Which events of a run were added already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReportedEvents {
    suspended: bool,
    oom_kills: u64,
}

impl Task {
    /// Reads which events an engine before this one has added for a run that was found again.
    pub(crate) async fn already_reported(&self, found: bool, status: Status) -> ReportedEvents {
        let file = self.shared.home.session(&self.handle.id).join(Home::EVENTS);
        if !found || !(status.suspended || status.oom_kills > 0) || !file.exists() {
            return ReportedEvents::default();
        }
        let (run, observed) = (self.handle.session().run, self.shared.observed(&self.handle));
        let (mut told, mut reader) = (ReportedEvents::default(), EventReader::default());
        loop {
            match observed.events.read(0, &mut reader) {
                Ok(Some(events)) => told = events.iter().fold(told, |told, event| told.after(event, run)),
                Ok(None) => return told,
                Err(failure) => {
                    tracing::warn!(session = %self.handle.id, %failure, "a session's events cannot be read");
                    return ReportedEvents { suspended: status.suspended, oom_kills: status.oom_kills };
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Adds events for what is new in a status.
    pub(crate) fn report_run_events(&mut self, status: &Status) {
        let run = self.handle.session().run;
        if status.oom_kills > self.reported.oom_kills {
            let data = json!({ "run": run, "kills": status.oom_kills });
            self.shared.add_engine_event(&self.handle, "oom", data);
            self.reported.oom_kills = status.oom_kills;
        }
        // A command that has ended is neither suspended nor resumed.
        if status.suspended != self.reported.suspended && status.exit.is_none() {
            let (kind, from) =
                if status.suspended { ("suspended", None) } else { ("resumed", Some("suspended")) };
            self.shared.add_engine_event(&self.handle, kind, json!({ "run": run, "from": from }));
            self.reported.suspended = status.suspended;
        }
    }
}

impl ReportedEvents {
    /// What was reported once this event is counted.
    fn after(self, event: &Event, run: u32) -> Self {
        if event.source != "engine" || event.data.get("run").and_then(Value::as_u64) != Some(run.into()) {
            return self;
        }
        match event.kind.as_str() {
            "oom" => Self { oom_kills: event.data["kills"].as_u64().unwrap_or_default(), ..self },
            "suspended" => Self { suspended: true, ..self },
            "resumed" => Self { suspended: false, ..self },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_model::{Millis, Offset};

    #[test]
    fn what_an_earlier_run_met_counts_no_longer() {
        let event = |kind: &str, data: Value| Event {
            seq: 1,
            at: Millis(1),
            offset: Offset(0),
            kind: kind.into(),
            source: "engine".into(),
            data,
        };
        let events = [
            event("oom", json!({ "run": 1, "kills": 7 })),
            event("suspended", json!({ "run": 1 })),
            event("restarted", json!({ "run": 2 })),
            event("oom", json!({ "run": 2, "kills": 1 })),
            event("suspended", json!({ "run": 2 })),
            event("resumed", json!({ "run": 2, "from": "suspended" })),
        ];
        let told = |run| events.iter().fold(ReportedEvents::default(), |told, event| told.after(event, run));
        assert_eq!(told(2), ReportedEvents { suspended: false, oom_kills: 1 });
        assert_eq!(told(1), ReportedEvents { suspended: true, oom_kills: 7 });
    }
}
