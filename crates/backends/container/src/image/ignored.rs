//! Reads a project's `.dockerignore`, and says what it keeps out of an image, at a bounded cost.

use std::io;
use std::path::Path;

use wharf_boundary::Dir;

/// The file.
const LIST: &str = ".dockerignore";
/// How long it may be, in bytes.
const MAX_LIST_LEN: u64 = 256 << 10;
/// How many patterns it may have. Each is compared with each file.
const MAX_PATTERNS: usize = 4096;
/// How long a pattern may be, in bytes. No path is longer.
const MAX_PATTERN_LEN: usize = 4096;

/// The patterns, in order; the last one that fits decides.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    patterns: Vec<Pattern>,
}

/// A pattern by the parts of its path, and whether what it fits stays out.
#[derive(Debug)]
struct Pattern {
    out: bool,
    parts: Vec<String>,
}

impl Ignored {
    /// What a project's list says. One that cannot be read is an error: what it names must not go out.
    pub(super) fn read(dir: &Dir) -> io::Result<Self> {
        match dir.read_beneath(LIST, MAX_LIST_LEN) {
            Ok(text) => Self::parse(&String::from_utf8_lossy(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && dir.kind(LIST)?.is_none() => {
                Ok(Self::default())
            }
            Err(error) => Err(io::Error::new(error.kind(), format!("cannot read {LIST}: {error}"))),
        }
    }

    fn parse(text: &str) -> io::Result<Self> {
        let odd = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{LIST} has {why}"));
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut patterns = Vec::new();
        for line in lines {
            if patterns.len() == MAX_PATTERNS {
                return Err(odd(format!("more than {MAX_PATTERNS} patterns")));
            }
            if line.len() > MAX_PATTERN_LEN {
                return Err(odd(format!("a pattern of more than {MAX_PATTERN_LEN} bytes")));
            }
            let (out, line) = line.strip_prefix('!').map_or((true, line), |rest| (false, rest.trim()));
            let parts = line.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned);
            patterns.push(Pattern { out, parts: parts.collect() });
        }
        Ok(Self { patterns })
    }

    /// Whether it takes anything back in.
    pub(super) fn takes_back(&self) -> bool {
        self.patterns.iter().any(|pattern| !pattern.out)
    }

    /// Whether a path stays out.
    pub(super) fn has(&self, path: &Path) -> bool {
        let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        // A pattern that fits a directory fits all that is in it.
        let fits = |pattern: &&Pattern| begins(&pattern.parts, &parts);
        self.patterns.iter().rev().find(fits).is_some_and(|pattern| pattern.out)
    }
}

/// Whether a pattern fits the beginning of a path, or all of it.
fn begins(pattern: &[String], parts: &[String]) -> bool {
    let any = |wanted: &String| wanted == "**";
    let one = |wanted: &String, part: &String| part_fits(wanted.as_bytes(), part.as_bytes());
    // Nothing is no beginning.
    !pattern.is_empty() && !parts.is_empty() && fits(pattern, parts, any, one, true)
}

fn part_fits(pattern: &[u8], part: &[u8]) -> bool {
    fits(pattern, part, |wanted| *wanted == b'*', |wanted, is| *wanted == b'?' || wanted == is, false)
}

/// Whether a pattern fits items, where some items of it stand for any number of these. It goes back to the last such item
/// alone: what an earlier one could take in addition, the last one can too. So the cost is at most the product of both lengths.
fn fits<P, I>(
    pattern: &[P],
    items: &[I],
    any: impl Fn(&P) -> bool,
    one: impl Fn(&P, &I) -> bool,
    beginning: bool,
) -> bool {
    let (mut at, mut item, mut back) = (0, 0, None);
    loop {
        if at == pattern.len() && (beginning || item == items.len()) {
            return true;
        }
        if pattern.get(at).is_some_and(&any) {
            back = Some((at, item));
            at += 1;
        } else if let (Some(wanted), Some(is)) = (pattern.get(at), items.get(item))
            && one(wanted, is)
        {
            (at, item) = (at + 1, item + 1);
        } else if let Some((star, taken)) = back.filter(|(_, taken)| *taken < items.len()) {
            back = Some((star, taken + 1));
            (at, item) = (star + 1, taken + 1);
        } else {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn patterns_say_what_stays_out() {
        let list = "# comment\nnode_modules\n*.log\n**/cache\ndocs/*\n!docs/keep.md\n/top\na?c\nx/**/z/*.o\n";
        let ignored = Ignored::parse(list).unwrap();
        for (path, out) in [
            ("node_modules/x/y.js", true),
            ("src/node_modules/x", false),
            ("a.log", true),
            ("deep/a.log", false),
            ("cache", true),
            ("a/b/cache/c", true),
            ("docs/a.md", true),
            ("docs/keep.md", false),
            ("top", true),
            ("src/main.rs", false),
            ("abc", true),
            ("ac", false),
            ("x/z/a.o", true),
            ("x/y/z/z/b/z/a.o/more", true),
            ("x/y/z/a.c", false),
            ("docs", false),
        ] {
            assert_eq!(ignored.has(Path::new(path)), out, "{path}");
        }
        assert!(Ignored::parse("**").unwrap().has(Path::new("any/thing")));
        assert!(Ignored::parse("a/**").unwrap().has(Path::new("a/b")));
        assert!(!Ignored::parse("/\n.").unwrap().has(Path::new("any")));
    }

    #[test]
    fn the_last_star_alone_is_gone_back_to() {
        for (pattern, part, fit) in [
            ("*", "", true),
            ("*a*b*", "xaxbx", true),
            ("*ab", "aab", true),
            ("a*b*c", "abbcbc", true),
            ("a*b*c", "acb", false),
            ("", "", true),
            ("", "a", false),
            ("***", "abc", true),
            ("*?", "", false),
            ("?*", "a", true),
        ] {
            assert_eq!(part_fits(pattern.as_bytes(), part.as_bytes()), fit, "{pattern} {part}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_its_length_times_the_paths() {
        let began = Instant::now();
        let name = "a".repeat(250);
        let list = format!("{}b\n{}b\n", "*a".repeat(120), "**/".repeat(1000));
        let deep = vec![name.as_str(); 15].join("/");
        let ignored = Ignored::parse(&list).unwrap();
        assert!(!ignored.has(Path::new(&deep)));
        // With steps that double it would be centuries.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let many = "a\n".repeat(MAX_PATTERNS + 1);
        let long = "a".repeat(MAX_PATTERN_LEN + 1);
        for list in [many, long] {
            assert_eq!(Ignored::parse(&list).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
