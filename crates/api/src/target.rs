//! A session's name in the path of a request, encoded so that `GROUP/NAME` stays one part of it.

use std::fmt::Write as _;

use wharf_model::{Failure, Name};

/// The target of one session. A key that is no name is refused here: it could not be found, and might change
/// the path.
pub(crate) fn of(key: &str, what: &str) -> Result<String, Failure> {
    let name: Name = key.parse()?;
    let mut target = "/v1/sessions/".to_owned();
    escape(name.as_str(), &mut target);
    target.push_str(what);
    Ok(target)
}

/// Writes text so that it is one part of a target, whatever it has in it.
pub(crate) fn escape(text: &str, to: &mut String) {
    for byte in text.bytes() {
        // The unreserved characters of RFC 3986; everything else is escaped.
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            to.push(byte as char);
        } else {
            let _ = write!(to, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_model::Code;

    use super::*;

    #[test]
    fn a_key_is_one_part_of_the_path() {
        assert_eq!(of("api", "/log").unwrap(), "/v1/sessions/api/log");
        assert_eq!(of("team/api", "/log").unwrap(), "/v1/sessions/team%2Fapi/log");
        for bad in ["", "..", "../x", "a/..", "a//b", "a/b/c", "a?b", "a%2Fb"] {
            assert_eq!(of(bad, "/log").unwrap_err().code, Code::InvalidName, "{bad:?}");
        }
    }
}
