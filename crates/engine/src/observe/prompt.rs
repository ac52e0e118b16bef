//! Tells a program's prompt from a draft that somebody typed after it.

use std::time::{Duration, Instant};

/// How soon after a key its echo comes, in milliseconds.
const ECHO_MILLIS: u64 = 400;
/// How long something must stand at the start of a row before it counts as the program's own: that somebody typed may be
/// heard of a moment after its echo is seen.
const ROW_START_STABLE_TIME: Duration = Duration::from_millis(100);
/// The same for what stands after a prompt.
const AFTER_PROMPT_STABLE_TIME: Duration = Duration::from_millis(600);

/// What stands before the cursor of a program that has no composer to look at: its prompt, and what was typed after it.
#[derive(Default)]
pub(crate) struct Prompt {
    /// Absent until the first look.
    text: Option<String>,
    /// The last prompt that was more than white space.
    last: Option<String>,
    /// Whether something was typed after it and stands there.
    drafted: bool,
    /// What stands there and may be a prompt, and since when.
    fresh: Option<(String, Instant)>,
}

impl Prompt {
    /// What somebody has typed and not submitted.
    ///
    /// `line` says whether keys have begun a line and not ended it, where that is known: then what stands there is the
    /// prompt while they have not, and what stands behind it is a draft while they have. Else `typed` says how long ago
    /// somebody else than us typed, where anybody did since we did: what comes right after a key is its echo, and
    /// everything else is a prompt.
    pub(crate) fn draft(
        &mut self,
        before: &str,
        line: Option<bool>,
        typed: Option<u64>,
        at: Instant,
    ) -> Option<String> {
        match line {
            Some(false) => {
                if self.stands(before, at, ROW_START_STABLE_TIME) {
                    self.adopt(before);
                }
                None
            }
            Some(true) => self.behind(before, typed),
            None => self.guess(before, typed, at),
        }
    }

    /// What stands behind the prompt of a line that was begun. A program may have taken the keys: then only a prompt
    /// stands there, one that is known or that ends as prompts do. A shell that is slow may not have taken them yet: then
    /// they were typed a moment ago, or the terminal has shown them in front of the prompt.
    fn behind(&self, before: &str, typed: Option<u64>) -> Option<String> {
        let known = || [&self.text, &self.last].into_iter().flatten().filter(|text| !text.trim().is_empty());
        if known().any(|prompt| prompt == before) || is_bare(before) {
            let early = known().filter_map(|prompt| before.strip_suffix(prompt.as_str()));
            let early = early.map(str::trim).find(|early| !early.is_empty()).map(str::to_owned);
            return early.or_else(|| typed.is_some_and(|ago| ago < ECHO_MILLIS).then(String::new));
        }
        let rest = known().find_map(|prompt| before.strip_prefix(prompt.as_str()));
        Some(rest.unwrap_or(before).trim().to_owned())
    }

    fn guess(&mut self, before: &str, typed: Option<u64>, at: Instant) -> Option<String> {
        let typing = typed.is_some_and(|ago| ago < ECHO_MILLIS);
        let draft = self.text.as_deref().and_then(|text| before.strip_prefix(text));
        // Before a program draws its prompt the cursor stands at the start of the row: what comes then may be either.
        let bare = self.text.as_deref().is_none_or(|text| text.trim().is_empty());
        match draft {
            Some("") => {
                (self.drafted, self.fresh) = (false, None);
                None
            }
            Some(_) if self.last.as_deref() == Some(before) => {
                self.adopt(before);
                None
            }
            Some(draft) if typed.is_some() && (typing || (self.drafted && !bare)) => {
                self.drafted = true;
                Some(draft.to_owned())
            }
            Some(_)
                if !self.stands(
                    before,
                    at,
                    if bare { ROW_START_STABLE_TIME } else { AFTER_PROMPT_STABLE_TIME },
                ) =>
            {
                None
            }
            _ => {
                self.adopt(before);
                None
            }
        }
    }

    /// Takes it for the prompt.
    fn adopt(&mut self, before: &str) {
        if !before.trim().is_empty() {
            self.last = Some(before.to_owned());
        }
        (self.text, self.drafted, self.fresh) = (Some(before.to_owned()), false, None);
    }

    /// Whether this has stood there for a while.
    fn stands(&mut self, before: &str, at: Instant, long: Duration) -> bool {
        match &self.fresh {
            Some((text, since)) if text == before => at.duration_since(*since) >= long,
            _ => {
                self.fresh = Some((before.to_owned(), at));
                false
            }
        }
    }
}

/// Whether a row ends as a prompt does, and nothing of it looks like the end of a prompt before.
fn is_bare(before: &str) -> bool {
    const ENDS: [char; 7] = ['$', '#', '%', '>', '❯', '»', 'λ'];
    let first = before.char_indices().find(|(at, c)| {
        let next = before[at + c.len_utf8()..].chars().next();
        ENDS.contains(c) && next.is_none_or(char::is_whitespace)
    });
    first.is_some_and(|(at, c)| before[at + c.len_utf8()..].trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Line {
        prompt: Prompt,
        start: Instant,
    }

    impl Line {
        fn new() -> Self {
            Self { prompt: Prompt::default(), start: Instant::now() }
        }

        /// What is a draft at a moment, where somebody typed at another.
        fn draft(&mut self, at: u64, before: &str, typed: Option<u64>) -> Option<String> {
            let typed = typed.map(|typed| at - typed);
            self.prompt.draft(before, None, typed, self.start + Duration::from_millis(at))
        }

        /// The same, where it is known whether keys have begun a line.
        fn keyed(&mut self, at: u64, before: &str, open: bool) -> Option<String> {
            self.prompt.draft(before, Some(open), None, self.start + Duration::from_millis(at))
        }
    }

    #[test]
    fn what_is_typed_after_a_prompt_is_a_draft_until_it_is_gone() {
        let mut line = Line::new();
        assert_eq!(line.draft(0, "$ ", None), None);
        assert_eq!(line.draft(105, "$ l", Some(100)).as_deref(), Some("l"));
        assert_eq!(
            line.draft(60_000, "$ ls", Some(200)).as_deref(),
            Some("ls"),
            "a draft does not go by itself"
        );
        assert_eq!(line.draft(61_000, "$ ", Some(60_990)), None);
        assert_eq!(line.draft(62_000, "$ x", Some(61_990)).as_deref(), Some("x"));
        // Another prompt came: the line was submitted.
        assert_eq!(line.draft(63_000, "~/src $ ", Some(62_990)), None);
        assert_eq!(line.draft(64_000, "~/src $ y", Some(63_990)).as_deref(), Some("y"));
    }

    #[test]
    fn an_echo_that_is_seen_before_its_key_is_heard_of_is_a_draft() {
        let mut line = Line::new();
        assert_eq!(line.draft(0, "$ ", None), None);
        assert_eq!(line.draft(100, "$ half", None), None);
        assert_eq!(line.draft(110, "$ half", Some(95)).as_deref(), Some("half"));
    }

    #[test]
    fn a_prompt_that_is_drawn_after_a_key_is_no_draft() {
        let mut line = Line::new();
        assert_eq!(line.draft(0, "$ ", None), None);
        assert_eq!(line.draft(110, "$ ls", Some(100)).as_deref(), Some("ls"));
        // Enter: the cursor is at the start of a row, then the prompt comes again.
        assert_eq!(line.draft(1_001, "", Some(1_000)), None);
        assert_eq!(line.draft(1_005, "$ ", Some(1_000)), None);
        assert_eq!(line.draft(1_010, "$ x", Some(1_008)).as_deref(), Some("x"));
        // Another prompt is taken for one as soon as it has stood for a while.
        assert_eq!(line.draft(2_001, "", Some(2_000)), None);
        assert_eq!(line.draft(2_005, "~ $ ", Some(2_000)).as_deref(), Some("~ $ "));
        assert_eq!(line.draft(2_500, "~ $ ", Some(2_000)), None);
        assert_eq!(line.draft(3_200, "~ $ ", Some(2_000)), None);
        assert_eq!(line.draft(3_300, "~ $ y", Some(3_290)).as_deref(), Some("y"));
    }

    #[test]
    fn keys_that_were_not_submitted_are_a_draft_at_the_first_look() {
        assert_eq!(Line::new().keyed(0, "root@host:~# make", true).as_deref(), Some("root@host:~# make"));
        assert_eq!(Line::new().keyed(0, "$ echo a > ", true).as_deref(), Some("$ echo a >"));
        assert_eq!(Line::new().keyed(0, "", true).as_deref(), Some(""), "nothing is echoed");
        assert_eq!(Line::new().keyed(0, "root@host:~# ", true), None, "a program took the key");
        assert_eq!(Line::new().keyed(0, "$ make", false), None, "nobody typed it");
        let soon = |ago| Line::new().prompt.draft("root@host:~# ", Some(true), Some(ago), Instant::now());
        assert_eq!(soon(20).as_deref(), Some(""), "the shell may not have taken the key yet");
        assert_eq!(soon(1_000), None, "a program took the key");
    }

    #[test]
    fn what_was_typed_before_the_prompt_was_drawn_is_a_draft() {
        let mut line = Line::new();
        for at in [0, 200] {
            assert_eq!(line.keyed(at, "# ", false), None);
        }
        assert_eq!(line.keyed(300, "touch mine# ", true).as_deref(), Some("touch mine"));
        assert_eq!(line.keyed(400, "# ", true), None, "a program took the keys");
    }

    #[test]
    fn a_prompt_is_what_stood_there_before_a_key() {
        let mut line = Line::new();
        assert_eq!(line.keyed(0, "➜ ~ ", false), None);
        assert_eq!(line.keyed(200, "➜ ~ ", false), None);
        assert_eq!(line.keyed(300, "➜ ~ ls", true).as_deref(), Some("ls"));
        assert_eq!(line.keyed(400, "➜ ~ ", true), None, "the draft was deleted");
        // What is left of a line that was just submitted is no prompt.
        assert_eq!(line.keyed(500, "➜ ~ ls", false), None);
        assert_eq!(line.keyed(510, "➜ ~ ", false), None);
        assert_eq!(line.keyed(520, "➜ ~ ls", true).as_deref(), Some("ls"));
    }

    #[test]
    fn the_first_look_sees_a_prompt() {
        let mut line = Line::new();
        assert_eq!(line.draft(1, "$ ", Some(0)), None);
        assert_eq!(line.draft(2, "$ a", Some(1)).as_deref(), Some("a"));
    }

    #[test]
    fn what_a_program_prints_by_itself_is_no_draft() {
        let mut line = Line::new();
        assert_eq!(line.draft(0, "$ ", None), None);
        assert_eq!(line.draft(6_000, "$ done: ", Some(1_000)), None);
        assert_eq!(line.draft(6_700, "$ done: ", Some(1_000)), None);
        assert_eq!(line.draft(6_800, "$ done: 3", Some(6_790)).as_deref(), Some("3"));
    }
}
