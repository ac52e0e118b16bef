//! Environment variables from the command line and from files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use wharf_model::{Change, Failure, Text};

use crate::trouble::invalid;

/// Reads `K=V`, `K+=V` (appended, with `separator` between), or `K` (taken from `inherited`).
pub(crate) fn change(
    text: &OsStr,
    separator: &str,
    inherited: impl Fn(&OsStr) -> Option<OsString>,
) -> Result<Change, Failure> {
    let bytes = text.as_bytes();
    let Some(at) = bytes.iter().position(|&byte| byte == b'=') else {
        let name = name(bytes)?;
        let value = inherited(text).ok_or_else(|| {
            invalid(format!("the variable {} is not set here, so it cannot be passed on", text.display()))
                .hint("-e NAME=VALUE gives it a value")
        })?;
        return Ok(Change::Set(name, value.into()));
    };
    let value: Text = bytes[at + 1..].into();
    match bytes[..at].strip_suffix(b"+") {
        Some(appended) => Ok(Change::Append(name(appended)?, value, separator.into())),
        None => Ok(Change::Set(name(&bytes[..at])?, value)),
    }
}

fn name(bytes: &[u8]) -> Result<Text, Failure> {
    if bytes.is_empty() || bytes.contains(&0) {
        let shown = String::from_utf8_lossy(bytes);
        return Err(invalid(format!("{shown:?} is no name of a variable")).hint("write NAME=VALUE"));
    }
    Ok(bytes.into())
}

/// Reads a file of variables: `NAME=VALUE` a line, `#` comments, an optional `export`, optional quotes.
///
/// Quotes may span lines. Between double quotes `\n`, `\t`, `\"`, `\\` and `\$` are undone. Nothing is expanded.
pub(crate) fn file(bytes: &[u8], path: &OsStr) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    let (mut rest, mut line) = (bytes, 1_usize);
    let wrong = |line: usize, why: &str| invalid(format!("{}:{line}: {why}", path.to_string_lossy()));
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let here = rest[..end].trim_ascii();
        if here.is_empty() || here[0] == b'#' {
            rest = rest.get(end + 1..).unwrap_or_default();
            line += 1;
            continue;
        }
        let at = rest[..end].iter().position(|&byte| byte == b'=');
        let at = at.ok_or_else(|| wrong(line, "there is no '=' in this line"))?;
        let name = rest[..at].trim_ascii();
        let name = name.strip_prefix(b"export ").map_or(name, <[u8]>::trim_ascii_start);
        if name.is_empty() || name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
            return Err(wrong(line, "there is no name of a variable before '='"));
        }
        let (value, used) = match rest.get(at + 1) {
            Some(&quote @ (b'"' | b'\'')) => quoted(&rest[at + 2..], quote)
                .map(|(value, used)| (value, at + 2 + used))
                .ok_or_else(|| wrong(line, "the quote that begins here does not end"))?,
            _ => (rest[at + 1..end].strip_suffix(b"\r").unwrap_or(&rest[at + 1..end]).to_vec(), end),
        };
        changes.push(Change::Set(name.into(), value.into()));
        let after = &rest[used..];
        let end = after.iter().position(|&byte| byte == b'\n').unwrap_or(after.len());
        if !after[..end].trim_ascii().is_empty() && !after[..end].trim_ascii().starts_with(b"#") {
            return Err(wrong(line, "there is something after the closing quote"));
        }
        line += rest[..used].split(|&byte| byte == b'\n').count();
        rest = after.get(end + 1..).unwrap_or_default();
    }
    Ok(changes)
}

/// The value up to the closing quote, and how many bytes it took with it.
fn quoted(bytes: &[u8], quote: u8) -> Option<(Vec<u8>, usize)> {
    let mut value = Vec::new();
    let mut at = 0;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            _ if byte == quote => return Some((value, at)),
            b'\\' if quote == b'"' => {
                let escaped = *bytes.get(at)?;
                at += 1;
                match escaped {
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'"' | b'\\' | b'$' => value.push(escaped),
                    _ => value.extend([b'\\', escaped]),
                }
            }
            _ => value.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Change, Failure> {
        change(OsStr::new(text), ":", |name| (name == "HERE").then(|| "yes".into()))
    }

    fn set(name: &str, value: &str) -> Change {
        Change::Set(name.into(), value.into())
    }

    #[test]
    fn arguments_are_set_append_or_inherit() {
        assert_eq!(one("A=b=c"), Ok(set("A", "b=c")));
        assert_eq!(one("A="), Ok(set("A", "")));
        assert_eq!(one("A=$(x)\n'"), Ok(set("A", "$(x)\n'")));
        assert_eq!(one("A=1+=2"), Ok(set("A", "1+=2")));
        assert_eq!(one("PATH+=/b"), Ok(Change::Append("PATH".into(), "/b".into(), ":".into())));
        assert_eq!(one("HERE"), Ok(set("HERE", "yes")));
        for bad in ["", "=x", "+=x", "MISSING"] {
            assert!(one(bad).is_err(), "{bad:?} was taken");
        }
        let bytes = OsStr::from_bytes(b"A=\xff");
        assert_eq!(change(bytes, ":", |_| None), Ok(Change::Set("A".into(), b"\xff".as_slice().into())));
    }

    #[test]
    fn files_are_read_without_expanding_anything() {
        let text = b"# comment\n\nA=1\n  export B = x y \nC=\"two\\nlines \\\"q\\\" $(no)\" # note\nD='one\ntwo'\r\nE=\nF=crlf\r\nG=last";
        let read = file(text, OsStr::new("f")).unwrap();
        let expected = [
            set("A", "1"),
            set("B", " x y "),
            set("C", "two\nlines \"q\" $(no)"),
            set("D", "one\ntwo"),
            set("E", ""),
            set("F", "crlf"),
            set("G", "last"),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in
            [("A=1\nnonsense", "f:2:"), ("\n\n=x", "f:3:"), ("A='x\ny", "f:1:"), ("A='1\n2'\nB='x'y", "f:3:")]
        {
            let failure = file(text.as_bytes(), OsStr::new("f")).unwrap_err();
            assert!(failure.message.starts_with(line), "{:?} for {text:?}", failure.message);
        }
    }
}
