//! Looks at the screen, has the judge decide the state, and publishes both with the reasons.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use wharf_model::{Report, Source, State};

use crate::deliver::answer;
use crate::instance::shared::now;
use crate::observe::judge::{Basis, SourceClaim};
use crate::observe::observer::{Observer, PUBLISH_INTERVAL};
use crate::observe::seen::{OpenLine, Seen, Sight};
use crate::observe::view::View;
use crate::platform;

/// What weighs this much is the program's own report of its state: OSC 7501.
const STATUS_REPORT_WEIGHT: u32 = 80;
/// What weighs no more than this is a title, which stands until it is changed.
const TITLE_WEIGHT: u32 = 60;
/// How long a program may say that it is drawing before it is not believed.
const DRAWING_TIMEOUT: Duration = Duration::from_millis(150);

impl Observer {
    /// Looks, weighs and publishes. Returns when to weigh again.
    pub(super) fn publish(&mut self, view: &View) -> Option<Instant> {
        let session = self.handle.session();
        if session.state.is_over() {
            return None;
        }
        let at = Instant::now();
        // A program that is just drawing says so: what stands there meanwhile is no screen. But it may forget to end.
        if view.screen.modes().synchronized && view.still.elapsed() < DRAWING_TIMEOUT && self.published {
            return Some(at + PUBLISH_INTERVAL);
        }
        self.published = true;
        self.foreground = session.pid.filter(|_| self.tty).and_then(platform::foreground);
        let input = view.profile_input();
        let look = input.look(self.foreground);
        let (profile, budget) = (self.observed.profile(), self.observed.budget());
        let exceeded = budget.is_exceeded();
        let (mut findings, question, composer, failed) = budget.look(|| {
            let (question, composer) = (profile.question(&look), profile.composer(&look));
            (profile.recognise(&look), question, composer, profile.failed_turn(&look))
        });
        let question = self.unless_main_prompt(&look, question, &mut findings);
        if let Some(finding) = budget.finding(&profile) {
            if !exceeded {
                tracing::warn!(session = %self.handle.id, profile = profile.name, "{}", finding.evidence);
            }
            // What the others make of half a look is no evidence, and must not outlast it.
            findings = vec![finding];
        }
        let unknown = findings.is_empty();
        if unknown && let Some(reads) = self.foreground.and_then(|foreground| foreground.reads) {
            // One that was never seen to wait for input may never do so: then it just runs.
            self.has_read |= reads;
            let (state, evidence) = if reads {
                (State::Idle, "it waits for input from its terminal")
            } else {
                (State::Working, "it does not wait for input")
            };
            findings.extend(self.has_read.then(|| wharf_agents::Finding {
                state,
                source: Source::Process,
                rule: "reads".to_owned(),
                evidence: evidence.to_owned(),
                weight: 1,
            }));
        }
        let turn = findings.iter().any(|finding| matches!(finding.state, State::Working | State::Asking));
        let expected = self.memory.turn_expected_until(std::mem::take(&mut self.turn_seen) || turn);
        if expected.is_some() {
            // Screen and title do not show it yet; what the program reports or the processes say is newer than that.
            let stands = |finding: &&mut wharf_agents::Finding| {
                finding.state == State::Idle
                    && (finding.source == Source::Screen
                        || (finding.source == Source::Terminal && finding.weight <= TITLE_WEIGHT))
            };
            for idle in findings.iter_mut().filter(stands) {
                idle.state = State::Working;
                "submitted".clone_into(&mut idle.rule);
                "a message was taken, and its turn does not show yet".clone_into(&mut idle.evidence);
            }
        }
        for source in [Source::Terminal, Source::Process, Source::Screen] {
            let found = findings.iter().find(|finding| finding.source == source);
            let claim = found.map(|found| {
                let agree =
                    findings.iter().filter(|other| other.source == source && other.state == found.state);
                SourceClaim {
                    state: found.state,
                    rule: found.rule.clone(),
                    evidence: found.evidence.clone(),
                    movement: agree.map(|other| other.evidence.as_str()).collect::<Vec<_>>().join(" "),
                    firm: source == Source::Terminal && found.weight >= STATUS_REPORT_WEIGHT,
                    basis: if unknown { Basis::Reads } else { Basis::Rule },
                }
            });
            self.judge.hear(source, claim, at);
        }
        self.judge.typed(self.status.last_input);
        let before = self.judge.report().state;
        let (new, mut again) = self.judge.decide(at);
        if let Some(expected) = expected {
            again = Some(again.map_or(expected, |again| again.min(expected)));
        }
        if let Some(report) = new {
            self.changed(before, &report);
        }
        let unfinished = question.as_ref().is_some_and(|question| question.continues);
        let declared = question.as_ref().and_then(|question| self.at_start(question));
        let question = question.map(answer::question);
        if let (Some(index), Some(question)) = (declared, &question) {
            answer::at_start(&self.shared, &self.handle, &self.observed, question.clone(), index);
        }
        let seen = Seen {
            offset: view.offset,
            generation: view.generation,
            still: view.still,
            looked: at,
            draft: None,
            composer,
            question,
            unfinished,
            failed,
            report: self.judge.report().clone(),
            claims: self.judge.claims(),
            settled: self.judge.is_settled(),
            decided: self.judge.decided().to_owned(),
            attached: self.status.attached,
            last_input: self.status.last_input,
            line: (self.status.line_open == Some(true)).then_some(if self.status.line_kept {
                OpenLine::Kept
            } else {
                OpenLine::Keys
            }),
            rows: input.rows,
            cursor: input.cursor,
            paste: input.paste,
            prompt: self.memory.prompt.clone(),
        };
        let mut seen = seen;
        if seen.composer.is_none() {
            seen.draft = self.draft(&seen.before_cursor());
        }
        self.observed.sight.send_replace(Sight::Seen(Arc::new(seen)));
        again
    }

    /// Drops the prompt for the rest of something where it is the program's own prompt: somebody has made it look so. It is
    /// where nobody has typed anything before it came, or where a child has just given the terminal back.
    fn unless_main_prompt(
        &mut self,
        look: &wharf_agents::Look<'_>,
        question: Option<wharf_agents::FoundQuestion>,
        findings: &mut Vec<wharf_agents::Finding>,
    ) -> Option<wharf_agents::FoundQuestion> {
        // A command that owns its terminal and is just not waiting may be about to ask for the rest of a line.
        self.terminal_was_lent |= self.foreground.is_some_and(|owner| !owner.own);
        let row = look.rows.get(look.cursor.0).map_or("", String::as_str);
        let before: String = row.chars().take(look.cursor.1).collect();
        let Some(question) = question.as_ref().filter(|question| question.continues) else {
            self.terminal_was_lent &= look.foreground != Some(true) || before.trim().is_empty();
            return question;
        };
        let lent = std::mem::take(&mut self.terminal_was_lent);
        let main = &mut self.memory.main_prompt;
        let untouched = self.connection.is_some() && self.status.last_input.is_none();
        if untouched || lent {
            *main = Some(before.clone());
        }
        if *main != Some(before) {
            return Some(question.clone());
        }
        let rule = format!("question.{}", question.name);
        findings.retain(|finding| finding.rule != rule);
        None
    }

    /// The choice to take of a dialog at the agent's start, where the user has those answered. Each is answered once a run.
    fn at_start(&mut self, question: &wharf_agents::FoundQuestion) -> Option<usize> {
        let index = question.startup_choice().filter(|_| self.handle.ticket().spec.answer_startup)?;
        let once = (self.handle.session().run, question.name.clone());
        let answered = &mut self.memory.answered_startup;
        if answered.contains(&once) {
            return None;
        }
        answered.push(once);
        Some(index)
    }

    /// What somebody else than us has typed and not submitted.
    fn draft(&mut self, before: &str) -> Option<String> {
        let ours = self.observed.own_input();
        let typed = self.status.last_input.filter(|at| *at > ours);
        // At a prompt whose keys we know, what was typed tells more than what is seen. Keys of an agent are no line.
        let profile = self.observed.profile();
        let line = self.status.line_open.filter(|_| !profile.attend && !profile.keys.clear.is_empty());
        self.prompt.draft(before, line, typed.map(|at| now().0.saturating_sub(at.0)), Instant::now())
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
        self.observed.add_event("engine", "state", data);
    }
}
