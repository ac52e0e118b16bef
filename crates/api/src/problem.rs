//! Converts failures to and from `application/problem+json`, the body of every error answer.

use serde::{Deserialize, Serialize};
use wharf_model::{Code, Failure};

/// A failure as it travels: `application/problem+json` of RFC 9457, with Wharf's code and hint beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Names the kind of problem: `urn:wharf:problem:` and the code.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The kind in words.
    #[serde(default)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// What went wrong; it names the thing.
    #[serde(default)]
    pub detail: String,
    /// The code to act on.
    pub code: Code,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// The media type of a problem.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let code = failure.code;
        Self {
            kind: format!("urn:wharf:problem:{code}"),
            title: code.as_str().replace('_', " "),
            status: code.status(),
            detail: failure.message,
            code,
            hint: failure.hint,
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { code: problem.code, message: problem.detail, hint: problem.hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_travels_and_comes_back() {
        for &code in Code::ALL {
            let failure = Failure::new(code, "session \"a\" is odd").hint("look at it");
            let problem = Problem::from(failure.clone());
            assert_eq!(problem.status, code.status());
            assert!((400..600).contains(&problem.status), "{code} has no error status");
            let text = serde_json::to_string(&problem).unwrap();
            let back: Problem = serde_json::from_str(&text).unwrap();
            assert_eq!(Failure::from(back), failure);
        }
    }

    #[test]
    fn a_code_of_a_newer_version_is_other() {
        let problem: Problem =
            serde_json::from_str(r#"{"code":"from_the_future","detail":"x","new":1}"#).unwrap();
        assert_eq!(Failure::from(problem), Failure::new(Code::Other, "x"));
    }
}
