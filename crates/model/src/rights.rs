//! What a caller may do: the one table that the daemon, the holders and the command line ask.

use crate::{Code, Failure, Spec};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A process of the user's that belongs to no session.
    Outside,
    /// A process of a session that was given this.
    Inside(Grant),
    /// It cannot be told: the process is gone, or shows itself to nobody.
    Unclear,
}

/// What a session was given beyond itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grant {
    /// It may control others: `--allow-control`.
    pub control: bool,
    /// It is kept from the host, so nobody outside touches the host on its behalf.
    pub confined: bool,
}

impl Grant {
    /// What a session with this spec was given.
    pub fn of(spec: &Spec) -> Self {
        Self { control: spec.control_others, confined: spec.sandbox.is_some() || spec.container.is_some() }
    }
}

/// Whose session is asked about, as the caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The caller's own.
    Own,
    /// One that the caller's session started, or that such a one did.
    Started,
    /// One that started the caller's, or that started such a one.
    Starter,
    /// Any other.
    Other,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// To know that a session is there, and its state.
    See,
    /// To read what it prints, shows, was told or has in its variables.
    Read,
    /// To end or change it, or to type into it where no question is open.
    Change,
    /// To answer its question, or to type where nobody sees whether one is open.
    Answer,
    /// To have the host touched on its behalf: files copied, output written to a file, its next start changed.
    Reach,
    /// To know what the instance is and has.
    Look,
    /// To start a session that has no more rights than the caller.
    Start,
    /// To start one that has.
    StartWider,
    /// To change the instance: its daemon, its images, what is left of sessions, agents' settings.
    Manage,
    /// To accept for the user what was refused: a changed mount, a project's file.
    Accept,
}

/// Why something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Nobody knows who asks.
    Unclear,
    /// It is another's.
    Others,
    /// It would answer the caller's own question.
    OwnQuestion,
    /// The caller is kept from the host.
    Confined,
    /// It would have more rights than the caller.
    Wider,
    /// It is for a person outside.
    OutsideOnly,
}

/// Whether the caller may. What concerns no session has no owner, and `whose` counts for nothing there.
pub fn may(caller: Caller, act: Act, whose: Whose) -> Result<(), Refused> {
    use {Act as A, Whose as W};
    let grant = match (caller, act) {
        (Caller::Outside, _) | (_, A::See | A::Look) => return Ok(()),
        (Caller::Unclear, _) => return Err(Refused::Unclear),
        (Caller::Inside(grant), _) => grant,
    };
    match (act, whose) {
        (A::Accept, _) => Err(Refused::OutsideOnly),
        // An agent that could answer the question of whoever started it could have its own answered that way.
        (A::Answer, W::Own | W::Starter) => Err(Refused::OwnQuestion),
        _ if grant.control => Ok(()),
        (A::Start | A::Reach, _) if grant.confined => Err(Refused::Confined),
        (A::StartWider, _) => Err(Refused::Wider),
        (A::Manage, _) | (A::Read | A::Change | A::Answer | A::Reach, W::Other | W::Starter) => {
            Err(Refused::Others)
        }
        (A::Start | A::See | A::Look, _)
        | (A::Read | A::Change | A::Reach, W::Own | W::Started)
        | (A::Answer, W::Started) => Ok(()),
    }
}

impl Refused {
    /// The failure, for a sentence that begins with "cannot".
    pub fn failure(self, what: impl std::fmt::Display) -> Failure {
        const GRANT: &str = "start the session with --allow-control to allow it";
        let (why, hint) = match self {
            Self::Unclear => (
                "it cannot be told which process asks",
                "ask from a process of this host that waits for the answer",
            ),
            Self::Others => {
                ("a command from inside a session may touch that session alone, and what it started", GRANT)
            }
            Self::OwnQuestion => (
                "a session does not answer its own question, nor that of the one that started it",
                "answer from a terminal outside of it",
            ),
            Self::Confined => ("the session that asks is kept from the host", GRANT),
            Self::Wider => ("a session gives no rights that it does not have itself", GRANT),
            Self::OutsideOnly => {
                ("that is for you to decide, and not for a session", "say it from a terminal outside of it")
            }
        };
        Failure::new(Code::Forbidden, format!("cannot {what}: {why}")).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION_ACTS: [Act; 5] = [Act::See, Act::Read, Act::Change, Act::Answer, Act::Reach];
    const INSTANCE_ACTS: [Act; 5] = [Act::Look, Act::Start, Act::StartWider, Act::Manage, Act::Accept];
    const EVERYONE: [Whose; 4] = [Whose::Own, Whose::Started, Whose::Starter, Whose::Other];

    fn inside(control: bool, confined: bool) -> Caller {
        Caller::Inside(Grant { control, confined })
    }

    /// A row for each act: own, started, starter, other.
    fn rows(caller: Caller) -> Vec<String> {
        let mark = |act, whose| if may(caller, act, whose).is_ok() { '+' } else { '-' };
        SESSION_ACTS.iter().map(|act| EVERYONE.iter().map(|whose| mark(*act, *whose)).collect()).collect()
    }

    fn instance(caller: Caller) -> String {
        let mark = |act: &Act| if may(caller, *act, Whose::Other).is_ok() { '+' } else { '-' };
        INSTANCE_ACTS.iter().map(mark).collect()
    }

    #[test]
    fn the_whole_table() {
        // Own, started, starter, other; see, read, change, answer, reach.
        let everything = ["++++"; 5];
        let cases: [(Caller, [&str; 5], &str); 6] = [
            (Caller::Outside, everything, "+++++"),
            (Caller::Unclear, ["++++", "----", "----", "----", "----"], "+----"),
            (inside(false, false), ["++++", "++--", "++--", "-+--", "++--"], "++---"),
            (inside(false, true), ["++++", "++--", "++--", "-+--", "----"], "+----"),
            (inside(true, false), ["++++", "++++", "++++", "-+-+", "++++"], "++++-"),
            (inside(true, true), ["++++", "++++", "++++", "-+-+", "++++"], "++++-"),
        ];
        for (caller, sessions, whole) in cases {
            assert_eq!(rows(caller), sessions, "{caller:?}");
            assert_eq!(instance(caller), whole, "{caller:?}");
        }
    }

    #[test]
    fn every_refusal_says_why_and_what_to_do() {
        for refused in [
            Refused::Unclear,
            Refused::Others,
            Refused::OwnQuestion,
            Refused::Confined,
            Refused::Wider,
            Refused::OutsideOnly,
        ] {
            let failure = refused.failure("stop session \"x\"");
            assert_eq!(failure.code, Code::Forbidden);
            assert!(failure.message.starts_with("cannot stop session \"x\": "), "{failure}");
            assert!(failure.hint.is_some());
        }
    }
}
