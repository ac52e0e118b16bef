//! What came and went by the network of the namespace that we are in.

use std::fs;

/// Bytes that were received and sent on every interface but the loopback; nothing where that cannot be read.
pub(crate) fn traffic() -> Option<(u64, u64)> {
    Some(parse(&fs::read_to_string("/proc/self/net/dev").ok()?))
}

fn parse(text: &str) -> (u64, u64) {
    let mut sum = (0_u64, 0_u64);
    // Two lines of headings, then `eth0: RECEIVED and seven more, SENT and seven more`.
    for (name, numbers) in text.lines().filter_map(|line| line.split_once(':')) {
        let numbers: Vec<u64> =
            numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        if let (Some(received), Some(sent)) = (numbers.first(), numbers.get(8))
            && name.trim() != "lo"
        {
            sum = (sum.0.saturating_add(*received), sum.1.saturating_add(*sent));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_interfaces_but_the_loopback_are_added_up() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop|bytes\n    \
            lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n  eth0: 100 2 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n\
            eth1:7 1 0 0 0 0 0 0 3 1 0 0 0 0 0 0\n";
        assert_eq!(parse(text), (107, 33));
        assert_eq!(parse("nonsense: x\n"), (0, 0));
    }
}
