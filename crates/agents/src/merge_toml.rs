//! Merges TOML tables, so that one profile can override parts of another.

use toml::{Table, Value};

/// Puts one table over another: tables join, everything else is replaced.
pub(crate) fn over(base: &mut Table, above: Table) {
    for (key, value) in above {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => over(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_join_and_the_rest_is_replaced() {
        let mut base: Table = toml::from_str("a = [1, 2]\n[t.x]\nk = 1\nl = 1\n[t.y]\nk = 1").expect("toml");
        over(&mut base, toml::from_str("a = [3]\n[t.x]\nk = 2\n[t.z]\nk = 3").expect("toml"));
        let expected: Table =
            toml::from_str("a = [3]\n[t.x]\nk = 2\nl = 1\n[t.y]\nk = 1\n[t.z]\nk = 3").expect("toml");
        assert_eq!(base, expected);
    }
}
