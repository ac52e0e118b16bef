//! Runs one conformance case, and defines the macro that makes a test of each case.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::LocalSet;

use super::place::{Mode, NotHere, Place};
use super::running::absent;
use super::{Subject, within};

/// Runs one case of the suite; [`crate::conformance_suite`] calls it.
///
/// # Panics
/// Where the case fails, or leaves something behind.
pub fn check<M, C>(make: M, mode: Mode, case: C)
where
    M: AsyncFnOnce() -> Subject,
    C: AsyncFnOnce(Arc<Place>) + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let place = Arc::new(Place::new(make().await, mode));
        let claimed = match mode {
            Mode::Tty => place.can().tty,
            Mode::Pipes => place.can().pipes,
        };
        if !claimed {
            let argv = place.tools().sleeper().unwrap_or_else(|| vec!["true".into()]);
            return absent("this kind of session", place.backend().start(place.launch(argv)).await);
        }
        // A task of its own, so that what the case started is ended even where the case panics.
        let within_case = Arc::clone(&place);
        let outcome = tokio::task::spawn_local(async move {
            within(Duration::from_secs(100), "the case", case(within_case)).await;
        })
        .await;
        let cleared = within(Duration::from_secs(30), "clearing up", place.clear()).await;
        match outcome.map_err(tokio::task::JoinError::into_panic) {
            Ok(()) => {}
            Err(panic) => match panic.downcast::<NotHere>() {
                Ok(reason) => println!("not tried: this place has no {}", reason.0),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
        cleared.expect("nothing is left after a case");
    });
}

/// Makes a test of each case of the suite.
///
/// The argument is an async closure, without captures, that gives a new [`Subject`] each time.
#[macro_export]
macro_rules! conformance_suite {
    (@cases $($group:ident { tty: $($tty:ident)*; pipes: $($pipes:ident)*; })*) => { $(
        mod $group {
            mod tty {
                use $crate::conformance::{Mode, cases::$group as cases, check};
                $( #[test] fn $tty() { check($crate::conformance_suite!(@subject), Mode::Tty, cases::$tty); } )*
            }
            mod pipes {
                use $crate::conformance::{Mode, cases::$group as cases, check};
                $( #[test] fn $pipes() { check($crate::conformance_suite!(@subject), Mode::Pipes, cases::$pipes); } )*
            }
        }
    )* };
    (@subject) => { super::super::conformance_subject };
    ($make:expr) => {
        async fn conformance_subject() -> $crate::conformance::Subject {
            ($make)().await
        }
        $crate::conformance_cases!();
    };
}
