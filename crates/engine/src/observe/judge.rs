//! Decides a session's state from what hooks, signals and the screen claim.

use std::fmt;
use std::time::{Duration, Instant};

use wharf_model::{Claim, Millis, Report, Source, State};

use crate::instance::shared::now;

/// Decides what a session is doing from what every source says.
///
/// The most trusted source wins, unless a less trusted one says something newer, and has said so long enough:
/// hooks alone go stale, screens alone flicker.
pub(crate) struct Judge {
    /// The claims, the most trusted source first.
    held: Vec<HeldClaim>,
    report: Report,
    decided: String,
    /// How long a session must look idle before it counts as idle.
    settle: Duration,
    /// When somebody last typed: nothing else answers a question.
    typed: Option<Millis>,
}

/// What one source says now.
struct HeldClaim {
    source: Source,
    state: State,
    /// Since when it says so without a break.
    since: Instant,
    /// When it last said so.
    renewed: Instant,
    moment: Millis,
    rule: String,
    evidence: String,
    movement: String,
    firm: bool,
    basis: Basis,
    verdict: Verdict,
}

/// What a claim rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A rule of the profile, a signal, or what the agent told.
    Rule,
    /// Whether a program that no profile knows waits for input: it is idle while it does, and works while it does not.
    Reads,
}

/// What a source says, and what that rests on.
#[derive(Debug, Clone)]
pub(crate) struct JudgedClaim {
    pub(crate) claim: Claim,
    pub(crate) basis: Basis,
}

/// What became of a source's claim when the claims were last weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It was not weighed yet.
    Unweighed,
    /// It decided the state.
    Decided,
    /// It says what the winner says.
    Agrees,
    /// This source says something newer, and has said so long enough.
    OlderThan(Source),
    /// This source says something else, and is trusted more.
    TrustedLessThan(Source),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unweighed => Ok(()),
            Self::Decided => f.write_str("decided"),
            Self::Agrees => f.write_str("agrees"),
            Self::OlderThan(source) => write!(f, "older than what {} says", source.as_str()),
            Self::TrustedLessThan(source) => write!(f, "{} is trusted more", source.as_str()),
        }
    }
}

/// What a source says.
pub(crate) struct SourceClaim {
    pub(crate) state: State,
    pub(crate) rule: String,
    pub(crate) evidence: String,
    /// Everything by which the source says so: when that changes, the claim is a fresh one.
    pub(crate) movement: String,
    /// The program reports its state itself, by a signal that is made for that.
    pub(crate) firm: bool,
    pub(crate) basis: Basis,
}

impl Judge {
    pub(crate) fn new(first: Report, settle: Duration) -> Self {
        Self {
            held: Vec::new(),
            report: first,
            decided: "nothing is known yet".to_owned(),
            settle,
            typed: None,
        }
    }

    /// Takes what a source says now; nothing takes its claim away.
    pub(crate) fn hear(&mut self, source: Source, new: Option<SourceClaim>, at: Instant) {
        let place = self.held.iter().position(|held| held.source == source);
        let Some(new) = new else {
            if let Some(place) = place {
                self.held.remove(place);
            }
            return;
        };
        match place {
            Some(place) if self.held[place].state == new.state => {
                let held = &mut self.held[place];
                // A rule that goes on matching says nothing new; one that sees movement does.
                if held.movement != new.movement {
                    held.renewed = at;
                }
                (held.rule, held.evidence, held.movement) = (new.rule, new.evidence, new.movement);
                (held.firm, held.basis) = (new.firm, new.basis);
            }
            _ => {
                if let Some(place) = place {
                    self.held.remove(place);
                }
                let held = HeldClaim {
                    source,
                    state: new.state,
                    since: at,
                    renewed: at,
                    moment: now(),
                    rule: new.rule,
                    evidence: new.evidence,
                    movement: new.movement,
                    firm: new.firm,
                    basis: new.basis,
                    verdict: Verdict::Unweighed,
                };
                let place = self.held.partition_point(|other| other.source < source);
                self.held.insert(place, held);
            }
        }
    }

    /// Somebody typed, at that time.
    pub(crate) fn typed(&mut self, at: Option<Millis>) {
        self.typed = at;
    }

    /// Weighs the claims. Returns the report where the state is a new one, and when to weigh again.
    pub(crate) fn decide(&mut self, at: Instant) -> (Option<Report>, Option<Instant>) {
        let mut again: Option<Instant> = None;
        let mut sooner = |moment: Instant| again = Some(again.map_or(moment, |known| known.min(moment)));
        let Some(mut winner) = (!self.held.is_empty()).then_some(0) else { return (None, None) };
        for rival in 1..self.held.len() {
            let (claim, against) = (&self.held[rival], &self.held[winner]);
            if claim.state == against.state {
                self.held[rival].verdict = Verdict::Agrees;
                continue;
            }
            // Whoever agrees with the winner and is trusted more than the rival keeps its claim fresh.
            let agreeing = self.held[..rival].iter().filter(|other| other.state == against.state);
            let renewed = agreeing.map(|other| other.renewed).max().unwrap_or(against.renewed);
            let answered = self.typed.is_some_and(|at| at >= against.moment);
            let due = claim.since.max(renewed) + patience(against, claim, answered);
            if claim.since >= against.since && at >= due {
                self.held[winner].verdict = Verdict::OlderThan(claim.source);
                winner = rival;
            } else {
                if claim.since >= against.since {
                    sooner(due);
                }
                self.held[rival].verdict = Verdict::TrustedLessThan(against.source);
            }
        }
        // What an agent told once does not come back when something newer has overruled it.
        let first = &self.held[0];
        let overruled = first.source == Source::Agent && matches!(first.verdict, Verdict::OlderThan(_));
        if overruled && winner > 0 {
            self.held.remove(0);
            winner -= 1;
        }
        let won = &self.held[winner];
        let settled = won.since + self.settle;
        if won.state == State::Idle && self.report.state != State::Idle && at < settled {
            sooner(settled);
            return (None, again);
        }
        let decided = format!("{} says {}: {}", won.source.as_str(), won.state.as_str(), won.rule);
        let (state, source, evidence) = (won.state, won.source, won.evidence.clone());
        self.held[winner].verdict = Verdict::Decided;
        self.decided = decided;
        let new = state != self.report.state;
        if new {
            self.report.since = now();
        }
        (self.report.state, self.report.source, self.report.evidence) = (state, source, evidence);
        (new.then(|| self.report.clone()), again)
    }

    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    /// Which rule decided.
    pub(crate) fn decided(&self) -> &str {
        &self.decided
    }

    /// Whether the claim that decided stands, and says what is reported.
    pub(crate) fn is_settled(&self) -> bool {
        self.held.iter().any(|held| held.verdict == Verdict::Decided && held.state == self.report.state)
    }

    /// What every source says.
    pub(crate) fn claims(&self) -> Vec<JudgedClaim> {
        let claim = |held: &HeldClaim| Claim {
            source: held.source,
            state: held.state,
            since: held.moment,
            rule: held.rule.clone(),
            evidence: held.evidence.clone(),
            verdict: held.verdict.to_string(),
        };
        self.held.iter().map(|held| JudgedClaim { claim: claim(held), basis: held.basis }).collect()
    }
}

/// How long a less trusted claim must stand against a more trusted one. `answered`: whether anything was typed since the
/// trusted one was made.
fn patience(against: &HeldClaim, claim: &HeldClaim, answered: bool) -> Duration {
    let millis = match (against.source, against.state, claim.state) {
        // Typing at a question is the worst that can happen: it is believed at once.
        (_, _, State::Asking) => 0,
        (Source::Agent, State::Asking, _) if answered => 700,
        // What the agent asks stands until somebody answers or it says so itself, whatever is drawn meanwhile. But what it
        // never takes back must not hold messages up for good.
        (Source::Agent, State::Asking, _) => 600_000,
        (Source::Agent, State::Idle, State::Working) => 1_000,
        (Source::Agent, _, _) => 3_000,
        (Source::Terminal, _, State::Idle) if against.firm => 15_000,
        (Source::Terminal, State::Idle, State::Working) => 500,
        (Source::Terminal, _, _) => 1_500,
        _ => 1_000,
    };
    Duration::from_millis(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        judge: Judge,
        start: Instant,
    }

    impl Fixture {
        fn new() -> Self {
            let first = Report {
                state: State::Starting,
                source: Source::Life,
                since: Millis(0),
                evidence: String::new(),
            };
            Self { judge: Judge::new(first, Duration::from_millis(300)), start: Instant::now() }
        }

        fn hear(&mut self, at: u64, source: Source, state: Option<State>, evidence: &str) {
            let new = state.map(|state| SourceClaim {
                state,
                rule: "r".into(),
                evidence: evidence.into(),
                movement: evidence.into(),
                firm: false,
                basis: Basis::Rule,
            });
            self.judge.hear(source, new, self.start + Duration::from_millis(at));
        }

        fn at(&mut self, at: u64) -> State {
            self.judge.decide(self.start + Duration::from_millis(at));
            self.judge.report().state
        }
    }

    #[test]
    fn idle_counts_once_it_has_stood_for_a_while() {
        let mut fixture = Fixture::new();
        fixture.hear(0, Source::Screen, Some(State::Idle), "❯");
        let (new, again) = fixture.judge.decide(fixture.start);
        assert_eq!((new, again), (None, Some(fixture.start + Duration::from_millis(300))));
        fixture.hear(100, Source::Screen, Some(State::Working), "esc to interrupt");
        assert_eq!(fixture.at(100), State::Working);
        fixture.hear(150, Source::Screen, Some(State::Idle), "❯");
        assert_eq!(fixture.at(449), State::Working);
        assert_eq!(fixture.at(450), State::Idle);
    }

    #[test]
    fn a_question_on_the_screen_is_believed_at_once() {
        let mut fixture = Fixture::new();
        fixture.hear(0, Source::Agent, Some(State::Working), "turn.started");
        fixture.hear(10, Source::Screen, Some(State::Asking), "Do you want to proceed?");
        assert_eq!(fixture.at(10), State::Asking);
        fixture.hear(500, Source::Screen, Some(State::Working), "esc to interrupt");
        assert_eq!(fixture.at(500), State::Working);
    }

    #[test]
    fn a_hook_that_went_stale_gives_way_to_a_screen_that_stands() {
        let mut fixture = Fixture::new();
        fixture.hear(0, Source::Agent, Some(State::Working), "turn.started");
        assert_eq!(fixture.at(0), State::Working);
        fixture.hear(1_000, Source::Screen, Some(State::Idle), "❯");
        assert_eq!(fixture.at(3_900), State::Working);
        assert_eq!(fixture.at(4_000), State::Idle);
        fixture.hear(5_000, Source::Agent, Some(State::Working), "turn.started again");
        // The same state heard again is not a new claim, but it is a fresh one.
        assert_eq!(fixture.at(5_000), State::Working);
    }

    #[test]
    fn a_spinner_that_turns_outweighs_a_screen_that_looks_idle() {
        let mut fixture = Fixture::new();
        for turn in 0..50 {
            fixture.hear(turn * 100, Source::Terminal, Some(State::Working), &format!("title {turn}"));
            fixture.hear(turn * 100 + 1, Source::Screen, Some(State::Idle), "›");
            assert_eq!(fixture.at(turn * 100 + 2), State::Working, "after {turn} turns");
        }
        assert_eq!(fixture.at(4_900 + 1_499), State::Working);
        assert_eq!(fixture.at(4_900 + 1_500), State::Idle);
    }

    #[test]
    fn a_report_that_stands_still_is_kept_fresh_by_what_moves_beside_it() {
        let mut fixture = Fixture::new();
        for turn in 0..50 {
            let new = SourceClaim {
                state: State::Working,
                rule: "status".into(),
                evidence: "OSC 7501 says working".into(),
                movement: format!("OSC 7501 says working, title {turn}"),
                firm: false,
                basis: Basis::Rule,
            };
            fixture.judge.hear(
                Source::Terminal,
                Some(new),
                fixture.start + Duration::from_millis(turn * 100),
            );
            fixture.hear(turn * 100 + 1, Source::Screen, Some(State::Idle), "›");
            assert_eq!(fixture.at(turn * 100 + 2), State::Working, "after {turn} turns");
        }
    }

    #[test]
    fn a_program_that_reports_its_state_is_believed_for_long() {
        let mut fixture = Fixture::new();
        let new = SourceClaim {
            state: State::Working,
            rule: "status".into(),
            evidence: "OSC 7501 says working".into(),
            movement: String::new(),
            firm: true,
            basis: Basis::Rule,
        };
        fixture.judge.hear(Source::Terminal, Some(new), fixture.start);
        fixture.hear(0, Source::Screen, Some(State::Idle), "›");
        assert_eq!(fixture.at(14_999), State::Working);
        assert_eq!(fixture.at(15_000), State::Idle);
    }

    #[test]
    fn an_older_contradiction_never_wins() {
        let mut fixture = Fixture::new();
        fixture.hear(0, Source::Screen, Some(State::Working), "esc");
        fixture.hear(10, Source::Agent, Some(State::Idle), "turn.ended");
        assert_eq!(fixture.at(20_000), State::Idle);
        let claims = fixture.judge.claims();
        assert_eq!(claims[0].claim.verdict, "decided");
        assert_eq!(claims[1].claim.verdict, "agent is trusted more");
        fixture.hear(20_000, Source::Agent, None, "");
        assert_eq!(fixture.at(20_000), State::Working);
    }

    #[test]
    fn what_was_told_once_does_not_come_back() {
        let mut fixture = Fixture::new();
        fixture.hear(0, Source::Agent, Some(State::Asking), "permission.asked");
        assert_eq!(fixture.at(0), State::Asking);
        fixture.judge.typed(Some(now()));
        fixture.hear(100, Source::Process, Some(State::Idle), "owns the terminal");
        assert_eq!(fixture.at(1_500), State::Idle);
        fixture.hear(2_000, Source::Process, Some(State::Working), "another owns it");
        assert_eq!(fixture.at(2_000), State::Working);
    }

    #[test]
    fn what_an_agent_asks_stands_until_somebody_answers() {
        let mut fixture = Fixture::new();
        fixture.hear(0, Source::Agent, Some(State::Asking), "permission.asked");
        fixture.hear(10, Source::Screen, Some(State::Idle), "❯");
        assert_eq!(fixture.at(2_000), State::Asking);
        fixture.hear(3_000, Source::Screen, Some(State::Working), "esc to interrupt");
        assert_eq!(fixture.at(60_000), State::Asking, "nobody has typed anything");
        fixture.judge.typed(Some(Millis(now().0 + 1)));
        assert_eq!(fixture.at(60_001), State::Working);
        // The agent itself may say so, too.
        fixture.hear(61_000, Source::Agent, Some(State::Asking), "permission.asked again");
        assert_eq!(fixture.at(61_000), State::Asking);
        fixture.hear(62_000, Source::Agent, Some(State::Working), "tool.started");
        assert_eq!(fixture.at(62_000), State::Working);
    }
}
