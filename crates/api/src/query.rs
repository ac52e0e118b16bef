//! Builds query strings for requests, such as the one that selects sessions.

use crate::Selector;
use crate::target::escape;

/// Builds the query part of a request's target.
#[derive(Debug, Default)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn push(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.push_str(name);
        self.0.push('=');
        escape(value.as_ref(), &mut self.0);
        self
    }

    pub(crate) fn push_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.push(name, value.to_string()),
            None => self,
        }
    }

    /// The target: a path and this query.
    pub(crate) fn after(self, path: &str) -> String {
        format!("{path}{}", self.0)
    }
}

impl From<&Selector> for Query {
    fn from(selector: &Selector) -> Self {
        let mut query = Self::default().push_some("group", selector.group.as_ref());
        for name in &selector.names {
            query = query.push("name", name);
        }
        for (label, value) in &selector.labels {
            query = query.push("label", format!("{label}={value}"));
        }
        if selector.all { query.push("all", "true") } else { query }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_becomes_a_query() {
        let selector = Selector {
            names: vec!["a".into(), "b&c".into()],
            group: Some("g".parse().unwrap()),
            labels: [("team".to_owned(), "x y=é".to_owned())].into(),
            all: true,
        };
        let target = Query::from(&selector).after("/v1/sessions");
        assert_eq!(target, "/v1/sessions?group=g&name=a&name=b%26c&label=team%3Dx%20y%3D%C3%A9&all=true");
        assert_eq!(Query::from(&Selector::default()).after("/v1/sessions"), "/v1/sessions");
    }
}
