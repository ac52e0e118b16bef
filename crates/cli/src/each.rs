//! The same for each of several sessions: one that fails stops none of the others.

use crate::output;
use crate::trouble::{Done, Trouble};

/// Does something for each name. What fails is told, the rest is done, and the code is the first failure's.
pub(crate) fn each(names: &[String], json: bool, mut act: impl FnMut(&str) -> Done) -> Done {
    let mut first = 0;
    for name in names {
        let code = match act(name) {
            Ok(code) => code,
            Err(Trouble::Closed) => return Err(Trouble::Closed),
            Err(Trouble::Failed(failure)) => {
                output::failure(&failure, json);
                failure.code.exit_code()
            }
        };
        if first == 0 {
            first = code;
        }
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use wharf_model::{Code, Failure};

    use super::*;

    #[test]
    fn all_are_done_and_the_first_failure_counts() {
        let names = ["a", "missing", "b", "ended"].map(String::from);
        let mut done = Vec::new();
        let code = each(&names, true, |name| match name {
            "missing" => Err(Failure::new(Code::NotFound, "it is not there").into()),
            "ended" => Err(Failure::new(Code::Ended, "it has ended").into()),
            _ => {
                done.push(name.to_owned());
                Ok(0)
            }
        });
        assert_eq!(code.unwrap(), Code::NotFound.exit_code());
        assert_eq!(done, ["a", "b"]);
    }
}
