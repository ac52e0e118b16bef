use wharf_agents::Profile;

use super::proof::packed;

/// How much of a message is looked for on the screen.
const START: usize = 40;

/// What stands on a screen after a message: what was answered, as far as a screen tells.
pub(crate) fn spoken(screen: &str, message: &str, profile: &Profile) -> String {
    let lines: Vec<&str> = screen.lines().collect();
    let last = message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let wanted: String = packed(last).chars().take(START).collect();
    let after = lines.iter().rposition(|line| !wanted.is_empty() && packed(line).contains(&wanted));
    let mut rest: Vec<&str> = lines[after.map_or(0, |at| at + 1)..].to_vec();
    // What follows the answer is the composer and what is drawn around it.
    let rows: Vec<String> = rest.iter().map(|line| (*line).to_owned()).collect();
    let look = wharf_agents::Look { rows: &rows, cursor: (rows.len(), 0), ..Default::default() };
    if let Some(top) = profile.composer_row(&look) {
        rest.truncate(top);
    }
    let text = rest.join("\n");
    text.trim_matches('\n').trim_end().to_owned()
}
