//! Resolves the user of a container's command to numbers, which are all that archives know.

/// Parses `UID:GID`; an empty user is root.
pub(crate) fn numbers(user: &str) -> Option<(u32, u32)> {
    if user.is_empty() {
        return Some((0, 0));
    }
    let (user, group) = user.split_once(':')?;
    Some((user.parse().ok()?, group.parse().ok()?))
}

/// Resolves names by the image's own lists of users and groups.
pub(crate) fn find(user: &str, passwd: &str, groups: &str) -> Option<(u32, u32)> {
    let (user, group) = user.split_once(':').map_or((user, None), |(user, group)| (user, Some(group)));
    let entry = |line: &str| -> Option<(String, u32, Option<u32>)> {
        let mut parts = line.split(':');
        let (name, _, id) = (parts.next()?, parts.next()?, parts.next()?);
        Some((name.to_owned(), id.parse().ok()?, parts.next().and_then(|group| group.parse().ok())))
    };
    let number: Option<u32> = user.parse().ok();
    let known = passwd.lines().filter_map(entry).find(|(name, id, _)| name == user || Some(*id) == number);
    let id = number.or_else(|| known.as_ref().map(|(_, id, _)| *id))?;
    let group = match group {
        Some(group) => group.parse().ok().or_else(|| {
            groups.lines().filter_map(entry).find(|(name, ..)| name == group).map(|(_, id, _)| id)
        })?,
        // An engine takes root's group for one that the image does not know.
        None => known.and_then(|(_, _, group)| group).unwrap_or(0),
    };
    Some((id, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_numbers_in_the_end() {
        let (passwd, group) =
            ("root:x:0:0::/:/bin/sh\nother:x:1234:99::/:/bin/sh\nbroken\n", "wheel:x:10:\n");
        assert_eq!(numbers(""), Some((0, 0)));
        assert_eq!(numbers("7:8"), Some((7, 8)));
        assert_eq!((numbers("7"), numbers("other"), numbers("other:8")), (None, None, None));
        assert_eq!(find("other", passwd, group), Some((1234, 99)));
        assert_eq!(find("1234", passwd, group), Some((1234, 99)));
        assert_eq!(find("7", passwd, group), Some((7, 0)));
        assert_eq!(find("other:wheel", passwd, group), Some((1234, 10)));
        assert_eq!(find("7:wheel", passwd, group), Some((7, 10)));
        assert_eq!(find("nobody", passwd, group), None);
        assert_eq!(find("other:none", passwd, group), None);
    }
}
