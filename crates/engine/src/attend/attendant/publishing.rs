//! What is made of all that was seen and heard: a state, with its reasons.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use wharf_model::{Report, Source, State};

use super::{Attendant, PACE};
use crate::attend::answer;
use crate::attend::attention::lock;
use crate::attend::judge::Saying;
use crate::attend::seen::Seen;
use crate::attend::view::View;
use crate::platform;
use crate::shared::now;

/// What weighs this much is the program's own report of its state: OSC 7501.
const FIRM: u32 = 80;
/// What weighs no more than this is a title, which stands until it is changed.
const TITLE: u32 = 60;
/// How long a program may say that it is drawing before it is not believed.
const DRAWING: Duration = Duration::from_millis(150);

impl Attendant {
    /// Looks, weighs and publishes. Returns when to weigh again.
    pub(super) fn publish(&mut self, view: &View) -> Option<Instant> {
        let session = self.handle.session();
        if session.state.is_over() {
            return None;
        }
        self.tidings();
        let at = Instant::now();
        // A program that is just drawing says so: what stands there meanwhile is no screen. But it may forget to end.
        if view.screen.modes().synchronized && view.still.elapsed() < DRAWING && self.seen {
            return Some(at + PACE);
        }
        self.seen = true;
        self.foreground = session.pid.filter(|_| self.tty).and_then(platform::foreground);
        let sight = view.sight();
        let look = sight.look(self.foreground);
        let profile = &self.attention.profile;
        let mut findings = profile.recognise(&look);
        if findings.is_empty() && self.foreground.is_some_and(|foreground| foreground.reads) {
            findings.push(wharf_agents::Finding {
                state: State::Idle,
                source: Source::Process,
                rule: "reads".to_owned(),
                evidence: "it waits in a read of its terminal".to_owned(),
                weight: 1,
            });
        }
        let turn = findings.iter().any(|finding| matches!(finding.state, State::Working | State::Asking));
        let expected = self.attention.expects_turn(std::mem::take(&mut self.turned) || turn);
        if expected.is_some() {
            // Screen and title do not show it yet; what the program reports or the processes say is newer than that.
            let stands = |finding: &&mut wharf_agents::Finding| {
                finding.state == State::Idle
                    && (finding.source == Source::Screen
                        || (finding.source == Source::Terminal && finding.weight <= TITLE))
            };
            for idle in findings.iter_mut().filter(stands) {
                idle.state = State::Working;
                "submitted".clone_into(&mut idle.rule);
                "a message was taken, and its turn does not show yet".clone_into(&mut idle.evidence);
            }
        }
        for source in [Source::Terminal, Source::Process, Source::Screen] {
            let found = findings.iter().find(|finding| finding.source == source);
            let saying = found.map(|found| {
                let agree =
                    findings.iter().filter(|other| other.source == source && other.state == found.state);
                Saying {
                    state: found.state,
                    rule: found.rule.clone(),
                    evidence: found.evidence.clone(),
                    movement: agree.map(|other| other.evidence.as_str()).collect::<Vec<_>>().join(" "),
                    firm: source == Source::Terminal && found.weight >= FIRM,
                }
            });
            self.judge.hear(source, saying, at);
        }
        let before = self.judge.report().state;
        let (new, mut again) = self.judge.decide(at);
        if let Some(expected) = expected {
            again = Some(again.map_or(expected, |again| again.min(expected)));
        }
        if let Some(report) = new {
            self.changed(before, &report);
        }
        let question = profile.question(&look).map(answer::question);
        let composer = profile.composer(&look);
        let seen = Seen {
            offset: view.offset,
            generation: view.generation,
            still: view.still,
            draft: None,
            composer,
            question,
            report: self.judge.report().clone(),
            claims: self.judge.claims(),
            decided: self.judge.decided().to_owned(),
            attached: self.status.attached,
            last_input: self.status.last_input,
            rows: sight.rows,
            cursor: sight.cursor,
            paste: sight.paste,
        };
        let mut seen = seen;
        if seen.composer.is_none() {
            seen.draft = self.draft(&seen.before_cursor());
        }
        self.attention.seen.send_replace(Some(Arc::new(seen)));
        again
    }

    /// What somebody else than us has typed and not submitted.
    fn draft(&mut self, before: &str) -> Option<String> {
        let ours = *lock(&self.attention.typed);
        let typed = self.status.last_input.filter(|at| *at > ours);
        self.prompt.draft(before, typed.map(|at| now().0.saturating_sub(at.0)), Instant::now())
    }

    /// Publishes a new state.
    fn changed(&self, before: State, report: &Report) {
        self.shared.update(&self.handle, |session| {
            // An end, or a connection that broke, is known better elsewhere.
            if matches!(session.state, State::Exited | State::Lost | State::Unknown) {
                return;
            }
            session.state = report.state;
            session.since = now();
            session.source = report.source;
            session.evidence = Some(report.evidence.clone());
        });
        let data = json!({
            "state": report.state, "from": before, "source": report.source, "evidence": report.evidence,
        });
        self.attention.note("engine", "state", data);
    }
}
