//! Parses the flags of a task, and refuses unknown ones.

use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// The words after a task's name. Each is asked for by name; what is left over is an error.
pub struct Flags {
    words: Vec<String>,
}

impl Flags {
    /// Flags of these words.
    pub fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    /// Whether `--name` is there.
    pub fn switch(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word.strip_prefix("--") != Some(name));
        self.words.len() < before
    }

    /// The value of `--name VALUE` or `--name=VALUE`.
    pub fn value<T>(&mut self, name: &str) -> Result<Option<T>>
    where
        T: FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let Some(at) = self.words.iter().position(|word| {
            word.strip_prefix("--").is_some_and(|word| word.split('=').next() == Some(name))
        }) else {
            return Ok(None);
        };
        let word = self.words.remove(at);
        let text = match word.split_once('=') {
            Some((_, text)) => text.to_owned(),
            None if at < self.words.len() => self.words.remove(at),
            None => bail!("--{name} wants a value"),
        };
        text.parse().map(Some).with_context(|| format!("--{name} {text}"))
    }

    /// Fails when something was given that nobody asked for.
    pub fn finish(self) -> Result<()> {
        match self.words.first() {
            Some(word) => bail!("{word:?} is not understood here"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_value_and_nothing_left_over() {
        let mut flags = Flags::new(["--a", "1", "--b=2", "--quick"].map(String::from).to_vec());
        assert_eq!(flags.value::<u32>("b").unwrap(), Some(2));
        assert_eq!(flags.value::<u32>("a").unwrap(), Some(1));
        assert_eq!(flags.value::<u32>("c").unwrap(), None);
        assert!(flags.switch("quick"));
        flags.finish().unwrap();
        assert!(Flags::new(vec!["x".into()]).finish().is_err());
        assert!(Flags::new(vec!["--a".into()]).value::<u32>("a").is_err());
        assert!(Flags::new(vec!["--a=x".into()]).value::<u32>("a").is_err());
    }
}
