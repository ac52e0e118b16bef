//! What changed between two texts, line by line.

use std::fmt::Write as _;

use wharf_model::is_control;

/// How many unchanged lines stand around a change.
const CONTEXT_LINES: usize = 3;

/// How many pairs of lines are compared. Of more, all of the one is taken away and all of the other added.
const MAX_PAIRS: usize = 4 << 20;

/// The lines of both texts: `-` was there before, `+` is there now. Control characters are named, not shown: a line must
/// not hide another one.
pub(crate) fn diff(before: &str, now: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), now.split_inclusive('\n').collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_mid, new_mid) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    let mut lines: Vec<(char, &str)> = old[..same].iter().map(|line| (' ', *line)).collect();
    lines.extend(middle(old_mid, new_mid));
    lines.extend(old[old.len() - tail..].iter().map(|line| (' ', *line)));
    shown(&lines)
}

/// A whole text, as it would be added.
pub(crate) fn whole(text: &str) -> String {
    diff("", text)
}

/// What differs, by the longest common subsequence.
fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let mut lines = Vec::new();
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        lines.extend(old.iter().map(|line| ('-', *line)));
        lines.extend(new.iter().map(|line| ('+', *line)));
        return lines;
    }
    let wide = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * wide];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            common[i * wide + j] = if a == b {
                common[(i + 1) * wide + j + 1] + 1
            } else {
                common[(i + 1) * wide + j].max(common[i * wide + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[(i + 1) * wide + j] >= common[i * wide + j + 1])
        {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines
}

fn shown(lines: &[(char, &str)]) -> String {
    let mut near = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, (mark, _))| *mark != ' ') {
        let end = (at + CONTEXT_LINES + 1).min(lines.len());
        near[at.saturating_sub(CONTEXT_LINES)..end].fill(true);
    }
    let mut page = String::new();
    let mut skipped = false;
    for ((mark, line), near) in lines.iter().zip(near) {
        if !near {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            page.push_str("  …\n");
        }
        let _ = writeln!(page, "{mark} {}", visible(line.strip_suffix('\n').unwrap_or(line)));
    }
    page
}

/// A line with its control characters named.
fn visible(line: &str) -> String {
    let mut visible = String::with_capacity(line.len());
    for c in line.chars() {
        if is_control(c) && c != '\t' {
            visible.extend(c.escape_unicode());
        } else {
            visible.push(c);
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_among_what_stays() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let now = "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten";
        assert_eq!(diff(before, now), "  …\n  2\n  3\n  4\n- 5\n+ five\n  6\n  7\n  8\n  9\n+ ten\n");
        assert_eq!(diff("a\nb\nc\n", "b\nc\nd\n"), "- a\n  b\n  c\n+ d\n");
        assert_eq!(diff("same\n", "same\n"), "");
    }

    #[test]
    fn nothing_hides() {
        assert_eq!(whole("a\r\x1b[2K\u{202e}b\tc\n"), "+ a\\u{d}\\u{1b}[2K\\u{202e}b\tc\n");
    }

    #[test]
    fn long_texts_are_compared_within_bounds() {
        let before = (0..5_000).map(|n| format!("a{n}\n")).collect::<Vec<_>>().concat();
        let now = (0..5_000).map(|n| format!("b{n}\n")).collect::<Vec<_>>().concat();
        assert_eq!(diff(&before, &now).lines().count(), 10_000);
    }
}
