//! Takes in what an agent tells: by its terminal, its stream of JSON, its own record, its hooks.

use std::sync::Arc;
use std::time::Instant;

use wharf_agents::StreamJson;
use wharf_model::{Offset, Source, State};
use wharf_screen::Signal;

use crate::deliver::proof::transcript;
use crate::observe::agent_record::{self, Record};
use crate::observe::judge::{Basis, SourceClaim};
use crate::observe::observer::Observer;
use crate::observe::signals;
use crate::observe::view::FeedResult;
use crate::session::requests::AgentEvent;

impl Observer {
    /// Begins to follow what the agent says by itself: in a stream of JSON, or in the record that it keeps.
    pub(super) async fn follow_agent(&mut self) {
        let (profile, ticket) = (&self.observed.profile(), self.handle.ticket());
        if !self.tty && profile.streams(&ticket.spec.argv) {
            self.stream = Some(StreamJson::new(Arc::clone(profile)));
        }
        let since = agent_record::since(if ticket.started.0 > 0 { ticket.started } else { ticket.created });
        let found = transcript(&self.shared, &self.handle, &self.observed, since).await;
        self.record = found.map(|transcript| Record::new(&self.shared.tasks, transcript));
    }

    pub(super) async fn read_record(&mut self) {
        let Some(record) = &mut self.record else { return };
        let Some(conversation) = record.poll(&self.observed, &mut self.memory).await else { return };
        self.shared.update(&self.handle, |session| {
            session.conversation.get_or_insert(conversation);
        });
    }

    /// Takes what the agent printed as JSON.
    pub(super) fn read_stream(&mut self, offset: Offset, bytes: &[u8]) {
        let told = self.stream.as_mut().map(|stream| stream.feed(bytes)).unwrap_or_default();
        self.take_stream_events(offset, told);
    }

    /// A last line may have no end.
    pub(super) fn finish_stream(&mut self, offset: Offset) {
        let told = self.stream.as_mut().filter(|_| self.handle.is_over()).map(StreamJson::finish);
        self.take_stream_events(offset, told.unwrap_or_default());
    }

    /// What the agent wrote down last, before it ended.
    pub(super) async fn finish_record(&mut self) {
        if self.handle.is_over()
            && let Some(record) = &mut self.record
            && let Some(conversation) = record.finish(&self.observed, &mut self.memory).await
        {
            self.shared.update(&self.handle, |session| {
                session.conversation.get_or_insert(conversation);
            });
        }
    }

    fn take_stream_events(&mut self, offset: Offset, told: Vec<wharf_agents::Told>) {
        for told in told {
            if let Err(failure) = self.observed.events.add(offset, "stream", &told.kind, told.data) {
                tracing::warn!(%failure, "an event is lost");
            }
            if let Some(state) = told.state {
                if state == State::Idle {
                    self.memory.end_turn(false);
                }
                let evidence = format!("the stream told {}", told.kind);
                let movement = format!("{evidence} at {offset:?}");
                let (rule, basis) = (told.kind, Basis::Rule);
                let claim = SourceClaim { state, rule, evidence, movement, firm: false, basis };
                self.judge.hear(Source::Agent, Some(claim), Instant::now());
            }
        }
    }

    pub(super) fn take_feed_result(&mut self, fed: FeedResult) {
        self.collect_replies(&fed);
        for (offset, signal) in fed.signals {
            let Some((kind, data)) = self.event(&signal) else { continue };
            if let Err(failure) = self.observed.events.add(offset, "terminal", kind, data) {
                tracing::warn!(%failure, kind, "an event is lost");
            }
        }
    }

    /// What an event says of a signal; nothing where it says nothing new.
    fn event(&mut self, signal: &Signal) -> Option<(&'static str, serde_json::Value)> {
        if let Signal::Title(title) = signal {
            let look = wharf_agents::Look { title, ..Default::default() };
            let (profile, budget) = (self.observed.profile(), self.observed.budget());
            let findings = budget.look(|| profile.recognise(&look));
            self.turn_seen |= findings.iter().any(|found| found.state == State::Working);
            // A spinner in the title turns many times a second.
            let words: String = title.chars().filter(|c| c.is_alphanumeric() || *c == ' ').collect();
            let words = words.trim().to_owned();
            if words == self.title {
                return None;
            }
            self.title = words;
        }
        signals::event(signal)
    }

    /// Takes what a hook or a program of the session told.
    pub(super) fn take_agent_event(&mut self, event: AgentEvent) {
        self.memory.changed = true;
        self.memory.has_hooks |= event.by_hook;
        if let Some((at, prompt)) = event.prompt {
            self.memory.prompt = Some((at, prompt.into()));
        }
        let Some(state) = event.state else { return };
        self.turn_seen |= state == State::Working;
        if state == State::Idle {
            self.memory.end_turn(false);
        }
        let movement = format!("{} {}", event.kind, event.evidence);
        let (rule, evidence, basis) = (event.kind, event.evidence, Basis::Rule);
        let claim = SourceClaim { state, rule, evidence, movement, firm: false, basis };
        self.judge.hear(Source::Agent, Some(claim), Instant::now());
    }
}
