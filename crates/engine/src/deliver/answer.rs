//! Answers an agent's questions: types the keys of a choice and sees the question go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use wharf_model::{Answered, Choice, ChoiceKind, Code, Failure, Question, State};

use crate::Result;
use crate::deliver::messages::Answer;
use crate::deliver::typing::Typist;
use crate::instance::shared::Shared;
use crate::observe::observed::Observed;
use crate::observe::seen::Seen;
use crate::session::handle::Handle;
use crate::session::requests::ObserverRequest;

/// How long a question must have stood still before it is answered: its keys may not be heard before.
const QUESTION_STABLE_TIME: Duration = Duration::from_millis(150);

/// How long what was begun may take to be given up, and how long the screen must be still then.
const GIVE_UP_TIMEOUT: Duration = Duration::from_secs(5);
const REDRAW_QUIET_TIME: Duration = Duration::from_millis(400);

/// How long the state may take to be another one once the question is gone.
const STATE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long answering a start-up dialog may take in all.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a question may take to be drawn after the agent said that it asks.
const DRAW_TIMEOUT: Duration = Duration::from_secs(5);

/// A profile's question, as everybody else knows it.
pub(crate) fn question(found: wharf_agents::FoundQuestion) -> Question {
    Question { title: found.title, detail: found.detail, choices: found.choices }
}

/// Answers a dialog of an agent's start beside everything else.
pub(crate) fn at_start(
    shared: &Arc<Shared>,
    handle: &Arc<Handle>,
    observed: &Arc<Observed>,
    question: Question,
    index: usize,
) {
    let mut typist = Typist::new(shared, handle, observed);
    shared.tasks.spawn_helper(async move {
        let id = typist.handle.id.clone();
        let answered = tokio::time::timeout(STARTUP_TIMEOUT, typist.answer_at_start(&question, index)).await;
        match answered {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => tracing::warn!(session = %id, %failure, "a start-up dialog was not answered"),
            Err(_) => tracing::warn!(session = %id, "a start-up dialog was not answered in time"),
        }
    });
}

impl Typist {
    /// Takes a choice of exactly this dialog, if it is still the one that stands there.
    async fn answer_at_start(&mut self, question: &Question, index: usize) -> Result<()> {
        let observed = Arc::clone(&self.observed);
        let _turn = observed.input_turns.take().await?;
        let seen = self.still(QUESTION_STABLE_TIME, Instant::now() + Duration::from_secs(5)).await?;
        let stands = seen.is_some_and(|seen| seen.question.as_ref() == Some(question));
        let Some(choice) = question.choices.get(index).filter(|_| stands) else { return Ok(()) };
        self.press(&choice.keys).await?;
        let data = json!({ "question": question, "choice": choice.label });
        observed.add_event("engine", "startup.answered", data);
        Ok(())
    }

    /// Answers the question that stands on the screen, and sees it go.
    pub(crate) async fn answer(&mut self, answer: &Answer, within: Duration) -> Result<Answered> {
        let observed = Arc::clone(&self.observed);
        let deadline = Instant::now() + within;
        let _turn = observed.input_turns.take_within(within).await?;
        let mut seen = self.look().await?;
        if seen.report.state == State::Asking && seen.question.is_none() {
            // An agent may say that it asks before it has drawn what.
            let drawn = deadline.min(Instant::now() + DRAW_TIMEOUT);
            seen = self.until(drawn, |seen| seen.question.is_some()).await?.unwrap_or(seen);
        }
        if seen.question.is_none() {
            return Err(self.nothing_asked());
        }
        // It may still be drawn; and what is answered is what stands there at last.
        let seen =
            self.still(QUESTION_STABLE_TIME, Instant::now() + Duration::from_secs(2)).await?.unwrap_or(seen);
        let Some(question) = seen.question.clone() else { return Err(self.nothing_asked()) };
        let choice = choose(&question, answer)?.clone();
        self.press(&choice.keys).await?;
        let gives_up = seen.unfinished && choice.kind == ChoiceKind::Deny;
        let by = if gives_up { deadline.min(Instant::now() + GIVE_UP_TIMEOUT) } else { deadline };
        // A prompt goes for a moment while the key acts, and comes again where it is the program's own.
        let stays = |now: &Seen| !gives_up || now.still.elapsed() >= REDRAW_QUIET_TIME;
        let gone = self.until(by, |now| now.question.as_ref() != Some(&question) && stays(now)).await;
        let report = match gone {
            Ok(Some(seen)) => {
                // Rest counts a moment after it is seen.
                let settles = deadline.min(Instant::now() + STATE_TIMEOUT);
                let known = |now: &Seen| now.report.state != State::Asking || now.question.is_some();
                self.until(settles, known).await.ok().flatten().unwrap_or(seen).report.clone()
            }
            // What nothing gives up was never begun: it is the program's own prompt, and only looks like another.
            Ok(None) if gives_up => {
                let prompt = ObserverRequest::MainPrompt(self.look().await?.before_cursor());
                observed.ask_observer(&self.shared, &self.handle, prompt).await;
                let known = |now: &Seen| now.report.state != State::Asking;
                let settles = Instant::now() + STATE_TIMEOUT;
                self.until(settles, known).await?.unwrap_or(seen).report.clone()
            }
            Ok(None) => {
                let message =
                    format!("the question {:?} still stands after {:?}", question.title, choice.label);
                return Err(Failure::new(Code::Unconfirmed, message)
                    .hint("`wharf capture` shows the screen; `wharf keys` presses a key"));
            }
            Err(failure) => return Err(failure),
        };
        let data = json!({ "question": question, "choice": choice.label, "kind": choice.kind });
        observed.add_event("engine", "permission.answered", data);
        Ok(Answered { question, choice: choice.label, report })
    }

    fn nothing_asked(&self) -> Failure {
        let name = self.handle.session().name.clone();
        Failure::new(Code::NotAsking, format!("session {name} asks nothing that its profile recognises"))
            .hint(format!(
                "`wharf capture {name}` shows its screen, `wharf explain {name}` what is made of it"
            ))
    }
}

fn choose<'a>(question: &'a Question, answer: &Answer) -> Result<&'a Choice> {
    let of = |kind: ChoiceKind| question.choices.iter().find(|choice| choice.kind == kind);
    let (found, wanted) = match answer {
        Answer::Approve(None) => (of(ChoiceKind::Allow), "a plain yes".to_owned()),
        Answer::Deny => (of(ChoiceKind::Deny), "a no".to_owned()),
        Answer::Approve(Some(wanted)) => {
            let number = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let by_number = number.and_then(|index| question.choices.get(index));
            let low = wanted.to_lowercase();
            let by_kind = match low.as_str() {
                "always" => of(ChoiceKind::Always),
                "yes" => of(ChoiceKind::Allow),
                "no" => of(ChoiceKind::Deny),
                _ => None,
            };
            let by_label =
                || question.choices.iter().find(|choice| choice.label.to_lowercase().contains(&low));
            (by_number.or(by_kind).or_else(by_label), format!("{wanted:?}"))
        }
    };
    found.ok_or_else(|| {
        let labels: Vec<String> = question
            .choices
            .iter()
            .enumerate()
            .map(|(n, choice)| format!("{} {}", n + 1, choice.label))
            .collect();
        Failure::new(Code::Invalid, format!("the question {:?} has no {wanted}", question.title))
            .hint(format!("it offers: {}", labels.join("; ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Question {
        let choice =
            |label: &str, key: &str, kind| Choice { label: label.into(), keys: vec![key.into()], kind };
        Question {
            title: "Do you want to proceed?".into(),
            detail: "rm x".into(),
            choices: vec![
                choice("Yes", "1", ChoiceKind::Allow),
                choice("Yes, and don't ask again", "2", ChoiceKind::Always),
                choice("No, tell it what to do", "Escape", ChoiceKind::Deny),
            ],
        }
    }

    #[test]
    fn an_answer_is_found_by_number_kind_or_words() {
        let question = asked();
        let key = |answer: &Answer| choose(&question, answer).map(|choice| choice.keys[0].clone()).unwrap();
        let named = |text: &str| Answer::Approve(Some(text.to_owned()));
        assert_eq!(key(&Answer::Approve(None)), "1");
        assert_eq!(key(&Answer::Deny), "Escape");
        assert_eq!(key(&named("2")), "2");
        assert_eq!(key(&named("always")), "2");
        assert_eq!(key(&named("TELL it")), "Escape");
        let failure = choose(&question, &named("7")).unwrap_err();
        assert_eq!(failure.code, Code::Invalid);
        assert!(failure.hint.unwrap().contains("2 Yes, and"), "the hint says what there is");
    }
}
