//! What an agent answered, as far as its screen tells: without what its program draws around it.

use serde::Deserialize;

use crate::{Look, Pattern, Profile};

/// How much of a message is looked for on the screen.
const SEARCH_CHARS: usize = 40;

/// How an answer on the screen is told from what is drawn around it. An agent's own record tells it better, where it can be
/// read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerRules {
    /// What a part of the answer begins with. Its further rows are set in by as much.
    pub mark: Option<Pattern>,
    /// Rows that are no part of it.
    pub drop: Vec<Pattern>,
}

impl Profile {
    /// What stands on a screen after a message: what was answered, as far as a screen tells.
    pub fn answer_on(&self, screen: &str, message: &str) -> String {
        let packed = |text: &str| text.split_whitespace().collect::<String>();
        let lines: Vec<&str> = screen.lines().collect();
        let last = message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let wanted: String = packed(last).chars().take(SEARCH_CHARS).collect();
        let after = lines.iter().rposition(|line| !wanted.is_empty() && packed(line).contains(&wanted));
        let mut rest: Vec<&str> = lines[after.map_or(0, |at| at + 1)..].to_vec();
        // What follows the answer is the composer and what is drawn around it.
        let rows: Vec<String> = rest.iter().map(|line| (*line).to_owned()).collect();
        // At rest the cursor is in the last row that shows something: there the prompts of interpreters stand.
        let last = rows.iter().rposition(|row| !row.trim().is_empty()).unwrap_or(0);
        let look = Look { rows: &rows, cursor: (last, 0), ..Default::default() };
        if let Some(top) = self.composer_row(&look) {
            rest.truncate(top);
        }
        self.answer_in(&rest)
    }

    /// The answer in these rows, which stood between a message and the input box.
    fn answer_in(&self, rows: &[&str]) -> String {
        let rules = &self.answer;
        let (mut text, mut indent) = (Vec::new(), 0);
        for row in rows.iter().filter(|row| !rules.drop.iter().any(|drop| drop.is_match(row))) {
            if let Some(rest) = rules.mark.as_ref().and_then(|mark| mark.after(row)) {
                indent = row.chars().count() - rest.chars().count();
                text.push(rest);
            } else {
                let spaces = row.chars().take(indent).take_while(|c| *c == ' ').count();
                text.push(&row[spaces..]);
            }
        }
        text.join("\n").trim_matches('\n').trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::Profiles;

    #[test]
    fn what_an_agent_draws_around_its_answer_is_no_part_of_it() {
        let screens = [
            ("claude", include_str!("../tests/screens/claude/idle.txt"), "OK 1"),
            ("codex", include_str!("../tests/screens/codex/idle.txt"), "OK 1"),
            ("gemini", include_str!("../tests/screens/gemini/idle.txt"), "OK 1"),
            ("opencode", include_str!("../tests/screens/opencode/idle.txt"), "OK 1"),
            ("aider", include_str!("../tests/screens/aider/idle.txt"), "OK 4"),
        ];
        for (agent, screen, answer) in screens {
            let profile = Profiles::built_in().get(agent).unwrap();
            assert_eq!(profile.answer_on(screen, "hello draft"), answer, "{agent}");
        }
        let profile = Profiles::built_in().get("claude").unwrap();
        let long = "❯ go\n\n● First,\n  wrapped:\n\n    set in\n\n● Second\n\n✻ Cooked for 3s\n";
        assert_eq!(profile.answer_on(long, "go"), "First,\nwrapped:\n\n  set in\n\nSecond");
    }

    #[test]
    fn the_answer_of_ipython_is_found() {
        let profile = Profiles::built_in().get("python").unwrap();
        let screen = "In [1]: 40+2\nOut[1]: 42\n\nIn [2]:\n";
        assert_eq!(profile.answer_on(screen, "40+2"), "Out[1]: 42");
        assert_eq!(profile.answer_on("In [1]: x = 1\n\nIn [2]:\n", "x = 1"), "");
    }

    #[test]
    fn the_next_prompt_is_no_part_of_an_answer() {
        for (agent, prompt) in [("python", ">>>"), ("node", ">")] {
            let profile = Profiles::built_in().get(agent).unwrap();
            let screen = format!("{prompt} 40 + 2\n42\nmore\n{prompt}\n\n");
            assert_eq!(profile.answer_on(&screen, "40 + 2"), "42\nmore", "{agent}");
            let silent = format!("{prompt} x = 1\n{prompt}\n");
            assert_eq!(profile.answer_on(&silent, "x = 1"), "", "{agent}");
            assert_eq!(
                profile.answer_on(&format!("{prompt} go()\n1\n2"), "go()"),
                "1\n2",
                "{agent} works on"
            );
        }
    }
}
