//! The limits that whoever started this process has set, and that all that it starts inherits.

use std::fmt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::platform::OWN_LIMITS;

/// A hard limit that is lower than usual. Nothing but root can raise it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lowered {
    resource: Resource,
    /// What is limited, in words.
    what: &'static str,
    /// The option of the shell's `ulimit`.
    flag: char,
    /// The unit of `hard`, in words.
    unit: &'static str,
    /// How much there may be.
    hard: u64,
}

/// What may be limited: the words, the option of `ulimit`, the unit, and below which a hard limit is not usual.
const KNOWN_LIMITS: &[(Resource, &str, char, &str, u64)] = &[
    (Resource::Fsize, "the size of a file", 'f', "bytes", u64::MAX),
    (Resource::Cpu, "processor time", 't', "seconds", u64::MAX),
    (Resource::As, "memory", 'v', "bytes", u64::MAX),
    (Resource::Data, "data in memory", 'd', "bytes", u64::MAX),
    // What systems set by themselves: 4096 descriptors since Linux 2.6, some thousand processes by the memory.
    (Resource::Nofile, "descriptors", 'n', "descriptors", 4_096),
    (Resource::Nproc, "processes", 'u', "processes", 512),
];

impl Lowered {
    /// Whether a session could not go on once it is reached: its files end there, or it does.
    pub fn is_deadly(&self) -> bool {
        matches!(self.resource, Resource::Fsize | Resource::Cpu)
    }
}

impl fmt::Display for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, flag, unit, hard, .. } = self;
        write!(f, "a hard limit of {hard} {unit} on {what} (ulimit -H{flag})")
    }
}

/// The hard limits of this process that are lower than usual.
pub fn lowered() -> Vec<Lowered> {
    KNOWN_LIMITS
        .iter()
        .filter_map(|&(resource, what, flag, unit, usual)| {
            let hard = getrlimit(resource).maximum?;
            (hard < usual).then_some(Lowered { resource, what, flag, unit, hard })
        })
        .collect()
}

/// The limit that ended a command, in words: the kernel sends a signal when it is reached, and a shell hands that on as
/// 128 and the signal's number.
pub fn behind_end(code: Option<i32>, signal: Option<i32>) -> Option<String> {
    let of_shell = code.filter(|code| *code > 128).map(|code| code - 128);
    let resource = match signal.or(of_shell)? {
        libc::SIGXFSZ => Resource::Fsize,
        libc::SIGXCPU => Resource::Cpu,
        _ => return None,
    };
    let (_, what, flag, unit, _) = KNOWN_LIMITS.iter().find(|known| known.0 == resource)?;
    let limit = getrlimit(resource);
    match limit.current.or(limit.maximum) {
        Some(most) => Some(format!("the limit of {most} {unit} on {what} (ulimit -{flag})")),
        // It was lowered inside; a code may be one that a program chose.
        None => signal.map(|_| format!("a limit on {what} (ulimit -{flag})")),
    }
}

/// Sets soft limits back to the hard ones: those of whoever happened to start us are not for all that we start. Returns
/// the soft limit of descriptors that was.
///
/// Three are not raised without end, since programs take them for more than a limit: of descriptors, commands get an
/// ordinary number from us; a stack without end changes where memory is put; and core files are nobody's wish.
pub fn raise_soft() -> Option<u64> {
    const ORDINARY_STACK: u64 = 8 << 20;
    let descriptors = getrlimit(Resource::Nofile).current;
    let everywhere = [
        Resource::Fsize,
        Resource::Cpu,
        Resource::As,
        Resource::Data,
        Resource::Rss,
        Resource::Nofile,
        Resource::Nproc,
        Resource::Memlock,
    ];
    for resource in everywhere.iter().chain(OWN_LIMITS) {
        raise(*resource, u64::MAX);
    }
    raise(Resource::Stack, ORDINARY_STACK);
    descriptors
}

/// Raises a soft limit to the hard one, as far as `enough`.
fn raise(resource: Resource, enough: u64) {
    let Rlimit { current, maximum } = getrlimit(resource);
    let Some(soft) = current else { return };
    let wanted = maximum.unwrap_or(u64::MAX).min(enough);
    if wanted > soft {
        let current = (wanted != u64::MAX).then_some(wanted);
        // Always allowed; a kernel that refuses leaves it as it was.
        let _ = setrlimit(resource, Rlimit { current, maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_words() {
        let lowered = Lowered {
            resource: Resource::Fsize,
            what: "the size of a file",
            flag: 'f',
            unit: "bytes",
            hard: 102_400,
        };
        assert_eq!(lowered.to_string(), "a hard limit of 102400 bytes on the size of a file (ulimit -Hf)");
        assert!(lowered.is_deadly());
        let behind = behind_end(None, Some(libc::SIGXFSZ)).unwrap();
        assert!(behind.ends_with("on the size of a file (ulimit -f)"), "{behind}");
        assert_eq!(behind_end(None, Some(libc::SIGTERM)), None);
        assert_eq!(behind_end(Some(0), None), None);
    }
}
