//! Which sessions a verb is for, and what became of each.

use std::fmt::Write as _;

use wharf_api::{ManyRequest, Outcome, Selector};
use wharf_model::{ExitRecord, Failure, Group, Millis, Name, Reason};

use crate::output;
use crate::trouble::{Done, invalid};

/// Names, a group, labels, or everything.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Selection {
    /// Sessions, by name or id
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

/// The selectors that are no names.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Filter {
    /// Sessions of this group
    #[arg(long, value_name = "GROUP", value_parser = group)]
    group: Option<Group>,
    /// Sessions with this label, of this value where one is given; may be repeated
    #[arg(long = "label", value_name = "KEY[=VALUE]")]
    labels: Vec<String>,
    /// Every session
    #[arg(long)]
    all: bool,
}

/// Reads a name.
pub(crate) fn name(text: &str) -> Result<Name, String> {
    text.parse().map_err(|error: wharf_model::NameError| error.to_string())
}

/// Reads a group.
pub(crate) fn group(text: &str) -> Result<Group, String> {
    text.parse().map_err(|error: wharf_model::NameError| error.to_string())
}

impl Selection {
    /// The selector, which may be empty.
    pub(crate) fn selector(self) -> Result<Selector, Failure> {
        self.filter.with(self.names)
    }

    /// The selector; an empty one is refused, for it would be everything.
    pub(crate) fn chosen(self) -> Result<Selector, Failure> {
        self.filter.chosen(self.names)
    }
}

impl Filter {
    /// The selector of these names and this filter; an empty one is refused.
    pub(crate) fn chosen(self, names: Vec<String>) -> Result<Selector, Failure> {
        let selector = self.with(names)?;
        if selector == Selector::default() {
            return Err(invalid("no session was named")
                .hint("give names, --group GROUP, --label KEY[=VALUE] or --all"));
        }
        Ok(selector)
    }

    fn with(self, names: Vec<String>) -> Result<Selector, Failure> {
        for name in &names {
            name.parse::<Name>()?;
        }
        let mut labels = std::collections::BTreeMap::new();
        for label in self.labels {
            let (key, value) = label.split_once('=').unwrap_or((&label, ""));
            if key.is_empty() {
                return Err(
                    invalid(format!("{label:?} is no label")).hint("write --label KEY or --label KEY=VALUE")
                );
            }
            labels.insert(key.to_owned(), value.to_owned());
        }
        Ok(Selector { names, group: self.group, labels, all: self.all })
    }
}

/// Does one thing to many sessions, tells what became of each, and answers with the first failure's code.
pub(crate) fn apply(
    done: &str,
    json: bool,
    request: &ManyRequest,
    ask: impl AsyncFnOnce(wharf_api::Client, &ManyRequest) -> Result<Vec<Outcome>, Failure>,
) -> Done {
    let begun = crate::duration::now();
    let outcomes = crate::call::once(async |client| ask(client, request).await)?;
    if json {
        output::json(&outcomes)?;
    } else if outcomes.is_empty() {
        output::note("no session matches");
    }
    let mut first = 0;
    for outcome in &outcomes {
        if let Some(failure) = &outcome.failure {
            if first == 0 {
                first = failure.code.exit_code();
            }
            if !json {
                output::failure(failure, false);
            }
        } else if !json {
            let how = outcome.exit.as_ref().map(|exit| format!(" ({})", ending(exit))).unwrap_or_default();
            let ended = outcome.exit.as_ref().is_some_and(|exit| ended_before(exit, begun));
            let done = if ended && ENDS.contains(&done) { "had ended already" } else { done };
            output::text(&format!("{} {done}{how}\n", outcome.name))?;
        }
    }
    Ok(first)
}

/// What is said of a session that was made to end.
const ENDS: [&str; 2] = ["stopped", "killed"];

/// Whether the end was there before anybody asked for it.
fn ended_before(exit: &ExitRecord, moment: Millis) -> bool {
    exit.ended.0 != 0 && exit.ended < moment
}

/// How a session ended, in words.
pub(crate) fn ending(exit: &ExitRecord) -> String {
    let mut words = match (exit.code, exit.signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "its end was not seen".to_owned(),
    };
    if exit.oom {
        words.push_str(", out of memory");
    }
    if let Some(limit) = &exit.limit {
        let _ = write!(words, ", at {limit}");
    }
    match exit.reason {
        Reason::Timeout => words.push_str(", run timeout"),
        Reason::Idle => words.push_str(", idle timeout"),
        Reason::Failed => words.push_str(", never ran"),
        _ => {}
    }
    if exit.leftovers > 0 {
        let _ = write!(words, ", {} left-over processes ended", exit.leftovers);
    }
    if exit.survivors > 0 {
        let _ = write!(words, ", {} could not be ended", exit.survivors);
    }
    if exit.unsure {
        words.push_str("; a process that hid may live on, since the session's holder was killed");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_chosen_is_refused_and_labels_may_lack_a_value() {
        assert!(Selection::default().chosen().is_err());
        let filter = Filter { labels: vec!["a".into(), "b=c=d".into()], ..Filter::default() };
        let selector = filter.chosen(Vec::new()).unwrap();
        assert_eq!(selector.labels, [("a".into(), String::new()), ("b".into(), "c=d".into())].into());
        assert!(Filter { labels: vec!["=x".into()], ..Filter::default() }.chosen(Vec::new()).is_err());
        assert!(Filter::default().chosen(vec!["-rf".into()]).is_err());
    }
}
