//! `wharf groups`: the groups that there are, and how many of their sessions run.

use std::collections::BTreeMap;

use serde::Serialize;
use wharf_api::{Selector, Summary, direct};
use wharf_model::{Group, State};

use super::ls::{ask, unreadable};
use crate::dispatch::Serve;
use crate::output;
use crate::table::Table;
use crate::trouble::Done;

/// Arguments of `groups`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A group is there for as long as a session that `wharf ls` lists belongs to it. `run --group` makes one."
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Sessions that belong together.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Members {
    name: Group,
    /// How many there are, how many of them are not over, and how many ask something.
    sessions: usize,
    running: usize,
    asking: usize,
}

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let body = ask(&direct::sessions(&Selector::default(), "brief"))?;
    let sessions: Vec<Summary> = serde_json::from_slice(&body).map_err(unreadable)?;
    let groups = groups(&sessions);
    if args.json {
        output::json(&groups)?;
        return Ok(0);
    }
    let mut table = Table::new(&["NAME", "SESSIONS", "RUNNING", "ASKING"]);
    for group in groups {
        table.row([
            group.name.to_string(),
            group.sessions.to_string(),
            group.running.to_string(),
            group.asking.to_string(),
        ]);
    }
    output::table(&table)?;
    Ok(0)
}

fn groups(sessions: &[Summary]) -> Vec<Members> {
    let mut groups: BTreeMap<&Group, Members> = BTreeMap::new();
    for session in sessions {
        let Some(name) = &session.group else { continue };
        let group = groups.entry(name).or_insert_with(|| Members {
            name: name.clone(),
            sessions: 0,
            running: 0,
            asking: 0,
        });
        group.sessions += 1;
        group.running += usize::from(!session.state.is_over());
        group.asking += usize::from(session.state == State::Asking);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_counted_by_their_group() {
        let session = |number: u32, group: Option<&str>, state: &str| {
            let json = serde_json::json!({
                "id": format!("{number:016}"), "name": format!("s{number}"), "group": group, "backend": "x",
                "state": state, "pid": null, "dir": "/", "created": 0, "attached": 0, "exit": null,
            });
            serde_json::from_value::<Summary>(json).unwrap()
        };
        let sessions = [
            session(1, Some("b"), "running"),
            session(2, Some("a"), "asking"),
            session(3, None, "running"),
            session(4, Some("b"), "exited"),
        ];
        let group = |name: &str, sessions, running, asking| Members {
            name: name.parse().unwrap(),
            sessions,
            running,
            asking,
        };
        assert_eq!(groups(&sessions), [group("a", 1, 1, 1), group("b", 2, 1, 0)]);
        assert_eq!(groups(&[]), []);
    }
}
