//! Descriptors that came with us by mistake: a landlock rule does not hold for what is open already.

use wharf_boundary::channel;
use wharf_model::{Code, Failure};

use crate::Result;

/// Has every descriptor but the first three and the session's own channel go when the command begins.
pub(super) fn close_others() -> Result<()> {
    let channel = channel::NUMBER.unsigned_abs();
    for (first, last) in [(3, channel - 1), (channel + 1, u32::MAX)] {
        // SAFETY: nothing is closed now; the mark holds for the program that comes after this one.
        #[expect(unsafe_code, reason = "the library has no word for this call")]
        let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) };
        if done < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Failure::new(
                Code::Unsupported,
                format!("descriptors cannot be closed here: {error}"),
            ));
        }
    }
    Ok(())
}
