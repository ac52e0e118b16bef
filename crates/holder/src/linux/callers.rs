//! Who a caller is by the tickets on disk: for holders and the command line, which keep no list of all sessions.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use wharf_boundary::{Dir, MAX_RECORD_LEN};
use wharf_model::{Caller, Grant, Home, ProcessIdentity, Scope, SessionId, Whose};

use super::origin::Traces;

/// How many tickets are looked through for a holder that nothing else names.
const MAX_TICKETS: usize = 4096;
/// How many sessions that one started by the other are followed.
const MAX_STARTERS: usize = 64;

/// The sessions of an instance, as they are on disk.
#[derive(Debug)]
pub struct Sessions(Dir);

/// A caller, and the session that it is inside of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Who it is.
    pub caller: Caller,
    /// Its session, where it has one.
    pub session: Option<SessionId>,
}

/// What of a ticket says who belongs to it, and what they may.
#[derive(Deserialize)]
struct Brief {
    holder: Option<ProcessIdentity>,
    command: Option<ProcessIdentity>,
    #[serde(default)]
    scope: Scope,
    spec: BriefSpec,
}

#[derive(Deserialize)]
struct BriefSpec {
    #[serde(default)]
    control_others: bool,
    starter: Option<SessionId>,
    sandbox: Option<IgnoredAny>,
    container: Option<IgnoredAny>,
}

impl Brief {
    /// Whether the traces lead to this session beyond doubt.
    fn holds(&self, traces: &Traces) -> bool {
        let kin = |who: &Option<ProcessIdentity>| {
            who.as_ref().is_some_and(|who| traces.descends_from(who.pid, who.start))
        };
        let in_group = |name: &str| {
            self.scope.dirs.iter().any(|dir| dir.as_path().file_name().is_some_and(|own| own == name))
        };
        kin(&self.holder)
            || kin(&self.command)
            || self.command.as_ref().is_some_and(|command| traces.is_led_by(command.pid, command.start))
            || traces.groups.iter().any(|(_, name)| in_group(name))
    }

    fn grant(&self) -> Grant {
        let confined = self.spec.sandbox.is_some() || self.spec.container.is_some();
        Grant { control: self.spec.control_others, confined }
    }
}

impl Found {
    /// One that belongs to no session.
    pub const OUTSIDE: Self = Self { caller: Caller::Outside, session: None };
    /// One of which nothing can be told.
    pub const UNCLEAR: Self = Self { caller: Caller::Unclear, session: None };
}

impl Sessions {
    /// Those in the instance's directory of sessions.
    pub fn open(path: &Path) -> io::Result<Self> {
        Dir::open(path).map(Self)
    }

    /// Who a process is, by its traces.
    pub fn caller(&self, traces: &Traces) -> Found {
        let named = traces.groups.iter().map(|(id, _)| id).chain(&traces.marks);
        let mut named: Vec<(&SessionId, Brief)> =
            named.filter_map(|id| Some((id, self.ticket(id.as_str())?))).collect();
        if let Some((id, brief)) = named.iter().find(|(_, brief)| brief.holds(traces)) {
            return Found { caller: Caller::Inside(brief.grant()), session: Some((*id).clone()) };
        }
        if !named.is_empty() {
            // It says so itself, and nothing else does: that may take rights away, and gives none.
            let (id, brief) = named.swap_remove(0);
            let grant = Grant { control: false, ..brief.grant() };
            return Found { caller: Caller::Inside(grant), session: Some(id.clone()) };
        }
        if traces.chain.iter().skip(1).any(|link| link.holder) {
            return self.by_holder(traces);
        }
        Found::OUTSIDE
    }

    /// The session that a holder among the ancestors holds; that of another instance is none of ours.
    fn by_holder(&self, traces: &Traces) -> Found {
        let Ok(names) = self.0.names(MAX_TICKETS) else { return Found::UNCLEAR };
        for name in &names {
            let Some(id) = name.to_str().and_then(|name| name.parse::<SessionId>().ok()) else { continue };
            if let Some(brief) = self.ticket(id.as_str()).filter(|brief| brief.holds(traces)) {
                return Found { caller: Caller::Inside(brief.grant()), session: Some(id) };
            }
        }
        Found::OUTSIDE
    }

    /// Whose a session is, to a caller of another.
    pub fn whose(&self, caller: Option<&SessionId>, target: &SessionId) -> Whose {
        let Some(caller) = caller else { return Whose::Other };
        let starter = |id: &SessionId| self.ticket(id.as_str())?.spec.starter;
        relation(caller, target, starter)
    }

    fn ticket(&self, id: &str) -> Option<Brief> {
        let text = self.0.dir(id).ok()?.read(Home::TICKET, MAX_RECORD_LEN).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Whose a session is, by who started whom.
pub fn relation(
    caller: &SessionId,
    target: &SessionId,
    starter: impl Fn(&SessionId) -> Option<SessionId>,
) -> Whose {
    let descends = |from: &SessionId, to: &SessionId| {
        std::iter::successors(starter(from), |id| starter(id)).take(MAX_STARTERS).any(|id| id == *to)
    };
    if caller == target {
        Whose::Own
    } else if descends(target, caller) {
        Whose::Started
    } else if descends(caller, target) {
        Whose::Starter
    } else {
        Whose::Other
    }
}

#[cfg(test)]
mod tests {
    use wharf_model::Millis;

    use super::super::proc;
    use super::*;

    fn id(number: u64) -> SessionId {
        SessionId::new(Millis(1), number)
    }

    /// Writes what a ticket of that session has.
    fn ticket(root: &Path, id: &SessionId, rest: &serde_json::Value) {
        let dir = root.join(id.as_str());
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(Home::TICKET), serde_json::to_vec(rest).unwrap()).unwrap();
    }

    #[test]
    fn a_mark_alone_takes_rights_away_and_gives_none() {
        let root = tempfile::tempdir().unwrap();
        ticket(root.path(), &id(1), &serde_json::json!({"spec": {"control_others": true}}));
        let sessions = Sessions::open(root.path()).unwrap();
        let me = std::process::id() as i32;
        let mut traces = Traces::of(me, None, |_, _| false).unwrap();
        (traces.marks, traces.groups) = (Vec::new(), Vec::new());
        assert_eq!(sessions.caller(&traces), Found::OUTSIDE);
        traces.marks = vec![id(2)];
        assert_eq!(sessions.caller(&traces), Found::OUTSIDE, "another instance's session");
        traces.marks = vec![id(1)];
        let narrow = Found { caller: Caller::Inside(Grant::default()), session: Some(id(1)) };
        assert_eq!(sessions.caller(&traces), narrow);
        let command = proc::identity(me, &proc::boot().unwrap()).unwrap();
        let spec = serde_json::json!({"control_others": true, "sandbox": {}});
        ticket(root.path(), &id(1), &serde_json::json!({"spec": spec, "command": command}));
        let sure = Grant { control: true, confined: true };
        assert_eq!(sessions.caller(&traces).caller, Caller::Inside(sure));
        let stranger = ProcessIdentity { start: command.start + 1, pid: i32::MAX, ..command };
        ticket(
            root.path(),
            &id(1),
            &serde_json::json!({"spec": {"control_others": true}, "command": stranger}),
        );
        assert_eq!(sessions.caller(&traces), narrow);
    }

    #[test]
    fn a_holder_among_the_ancestors_is_looked_for_where_nothing_names_it() {
        let root = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(root.path()).unwrap();
        let me = std::process::id() as i32;
        let mut traces = Traces::of(me, None, |_, _| false).unwrap();
        (traces.marks, traces.groups) = (Vec::new(), Vec::new());
        traces.chain[1].holder = true;
        assert_eq!(sessions.caller(&traces), Found::OUTSIDE, "it is of another instance");
        let holder = ProcessIdentity {
            pid: traces.chain[1].pid,
            start: traces.chain[1].start,
            boot: proc::boot().unwrap(),
            namespace: None,
        };
        ticket(root.path(), &id(7), &serde_json::json!({"spec": {}, "holder": holder}));
        assert_eq!(sessions.caller(&traces).session, Some(id(7)));
    }

    #[test]
    fn whoever_started_it_stands_above_it() {
        let root = tempfile::tempdir().unwrap();
        ticket(root.path(), &id(1), &serde_json::json!({"spec": {}}));
        ticket(root.path(), &id(2), &serde_json::json!({"spec": {"starter": id(1)}}));
        ticket(root.path(), &id(3), &serde_json::json!({"spec": {"starter": id(2)}}));
        ticket(root.path(), &id(4), &serde_json::json!({"spec": {"starter": id(4)}}));
        let sessions = Sessions::open(root.path()).unwrap();
        let whose = |caller, target| sessions.whose(Some(&id(caller)), &id(target));
        assert_eq!(whose(1, 1), Whose::Own);
        assert_eq!((whose(1, 2), whose(1, 3)), (Whose::Started, Whose::Started));
        assert_eq!((whose(3, 2), whose(3, 1)), (Whose::Starter, Whose::Starter));
        assert_eq!((whose(1, 4), whose(4, 1)), (Whose::Other, Whose::Other), "a circle ends");
    }
}
