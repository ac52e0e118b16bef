//! Parses directives such as `[[slow 5]]` in a message to the model service.

use std::time::Duration;

/// What a text asks of the service, by a word in double brackets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Directive {
    /// Nothing: a short answer at once.
    Answer,
    /// `[[slow 5]]`: words for five seconds.
    Slow(Duration),
    /// `[[silent 5]]`: five seconds of nothing, then an answer.
    Silent(Duration),
    /// `[[tool echo hi]]`: a shell command, which agents ask permission for.
    Tool(String),
}

/// No turn is longer than this.
const MAX_SECONDS: f64 = 600.0;

impl Directive {
    /// Finds the first directive in a text.
    pub fn of(text: &str) -> Self {
        let Some(inside) = text.split("[[").skip(1).find_map(|rest| rest.split("]]").next()) else {
            return Self::Answer;
        };
        let (word, rest) = inside.split_once(' ').unwrap_or((inside, ""));
        let seconds =
            || Duration::from_secs_f64(rest.trim().parse().unwrap_or(5.0_f64).clamp(0.0, MAX_SECONDS));
        match word {
            "slow" => Self::Slow(seconds()),
            "silent" => Self::Silent(seconds()),
            "tool" => Self::Tool(rest.to_owned()),
            _ => Self::Answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_brackets() {
        assert_eq!(Directive::of("hello"), Directive::Answer);
        assert_eq!(Directive::of("if [[ -f x ]]; then"), Directive::Answer);
        assert_eq!(Directive::of("[[slow 2.5]] go"), Directive::Slow(Duration::from_millis(2500)));
        assert_eq!(Directive::of("a [[silent 1]]"), Directive::Silent(Duration::from_secs(1)));
        assert_eq!(Directive::of("[[tool touch a b]]"), Directive::Tool("touch a b".to_owned()));
    }
}
