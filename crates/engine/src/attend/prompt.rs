/// How soon after a key its echo comes, in milliseconds.
const ECHO: u64 = 400;

/// What stands before the cursor of a program that has no composer to look at: its prompt, and what was typed after it.
#[derive(Default)]
pub(crate) struct Prompt {
    /// Absent until the first look.
    text: Option<String>,
    /// Whether something was typed after it and stands there.
    drafted: bool,
}

impl Prompt {
    /// What somebody has typed and not submitted. `typed` says how long ago somebody else than us typed, where anybody did
    /// since we did. What comes right after a key is its echo; everything else is a prompt.
    pub(crate) fn draft(&mut self, before: &str, typed: Option<u64>) -> Option<String> {
        let typing = typed.is_some_and(|ago| ago < ECHO);
        let draft = self.text.as_deref().and_then(|text| before.strip_prefix(text));
        match draft {
            Some("") => {
                self.drafted = false;
                None
            }
            Some(draft) if typed.is_some() && (typing || self.drafted) => {
                self.drafted = true;
                Some(draft.to_owned())
            }
            _ => {
                self.text = Some(before.to_owned());
                self.drafted = false;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_after_a_prompt_is_a_draft_until_it_is_gone() {
        let mut prompt = Prompt::default();
        assert_eq!(prompt.draft("$ ", None), None);
        assert_eq!(prompt.draft("$ l", Some(5)), Some("l".to_owned()));
        assert_eq!(
            prompt.draft("$ ls", Some(60_000)),
            Some("ls".to_owned()),
            "a draft does not go by itself"
        );
        assert_eq!(prompt.draft("$ ", Some(3)), None);
        assert_eq!(prompt.draft("$ x", Some(2)), Some("x".to_owned()));
        // Another prompt came: the line was submitted.
        assert_eq!(prompt.draft("~/src $ ", Some(9)), None);
        assert_eq!(prompt.draft("~/src $ y", Some(9)), Some("y".to_owned()));
    }

    #[test]
    fn the_first_look_sees_a_prompt() {
        let mut prompt = Prompt::default();
        assert_eq!(prompt.draft("$ ", Some(1)), None);
        assert_eq!(prompt.draft("$ a", Some(1)), Some("a".to_owned()));
    }

    #[test]
    fn what_a_program_prints_by_itself_is_no_draft() {
        let mut prompt = Prompt::default();
        assert_eq!(prompt.draft("$ ", None), None);
        assert_eq!(prompt.draft("$ done: ", Some(5_000)), None);
        assert_eq!(prompt.draft("$ done: 3", None), None);
    }
}
