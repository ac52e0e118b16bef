//! Ports of a session as the command line names them.

use wharf_model::Port;

/// Reads `auto`, `auto:VARIABLE`, `8080`, `8080:VARIABLE`.
pub(crate) fn parse(text: &str) -> Result<Port, String> {
    let (number, variable) = text.split_once(':').unwrap_or((text, "PORT"));
    let number = match number {
        "auto" => 0,
        digits => digits
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| format!("{digits:?} is no port: write auto, or a number from 1 to 65535"))?,
    };
    let named = variable.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !named {
        return Err(format!("{variable:?} is no name of a variable: letters, digits and _ are possible"));
    }
    Ok(Port { variable: variable.to_owned(), number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read() {
        let port = |variable: &str, number| Ok(Port { variable: variable.to_owned(), number });
        assert_eq!(parse("auto"), port("PORT", 0));
        assert_eq!(parse("auto:WEB"), port("WEB", 0));
        assert_eq!(parse("8080"), port("PORT", 8080));
        assert_eq!(parse("8080:API_1"), port("API_1", 8080));
        for bad in ["", "0", "65536", "-1", "auto:", "auto:1X", "auto:A B", "8080:80", "x"] {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
    }
}
