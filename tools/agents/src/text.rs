//! The texts of the cases. Each carries a tag that no other text has.

/// Twelve lines, some of them empty, some indented.
pub(crate) fn many_lines(tag: &str) -> String {
    format!(
        "Please read this ({tag}):\n\nfn main() {{\n    if true {{\n        println!(\"hello\");\n    }}\n}}\n\n\n- one\n- two\nand that is all"
    )
}

/// One paragraph of this many bytes and no line break.
pub(crate) fn paragraph(tag: &str, length: usize) -> String {
    fill(tag, length, |number| format!("word{number} "))
}

/// Lines of a common length, of this many bytes.
pub(crate) fn lines(tag: &str, length: usize) -> String {
    fill(tag, length, |number| {
        format!("{number:05} the quick brown fox jumps over the lazy dog, and again\n")
    })
}

/// This many short lines.
pub(crate) fn short_lines(tag: &str, count: usize) -> String {
    let lines: Vec<String> = (1..=count).map(|number| format!("line {number} of {tag}")).collect();
    lines.join("\n")
}

/// Characters of many kinds, in composed form: some agents compose what they get.
pub(crate) fn unicode(tag: &str) -> String {
    format!("{tag}: Ünïcödé – ß, 漢字かな한글, Привет, שלום עולם, मनुष्य, ก็, 👍🏽 👩‍👩‍👧‍👦 🇩🇪, ∑√∞, “quotes”…")
}

/// What a shell would run.
pub(crate) fn shell_like(tag: &str, file: &str) -> String {
    format!(
        "{tag} $(touch {file}) `touch {file}`; touch {file} && echo \"$HOME\" 'single' | cat > /dev/null #{{x}} %s \\n \\\\ ~ * ? [a-z] {{a,b}} -rf --help"
    )
}

fn fill(tag: &str, length: usize, piece: impl Fn(usize) -> String) -> String {
    let mut text = format!("{tag}: ");
    for number in 1.. {
        let next = piece(number);
        if text.len() + next.len() >= length {
            break;
        }
        text.push_str(&next);
    }
    // The end is a letter: agents drop white space there.
    while text.len() < length {
        text.push('x');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_exact() {
        assert_eq!(paragraph("t", 2048).len(), 2048);
        assert_eq!(lines("t", 20_480).len(), 20_480);
        assert_eq!(short_lines("t", 200).lines().count(), 200);
        assert!(!paragraph("t", 2048).contains('\n'));
    }
}
