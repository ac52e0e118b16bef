//! Runs a future so that its panic becomes an error and ends nothing else.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

/// Runs a future whose panic is its result, in words: one session's fault stays one session's. What the future owned is
/// dropped with it, so nobody sees it half changed.
pub(crate) fn catch_panic<T>(future: impl Future<Output = T>) -> impl Future<Output = Result<T, String>> {
    // Boxed here: a future inside an `async fn` would be stored twice.
    let future = Box::pin(AssertUnwindSafe(future).catch_unwind());
    async move { future.await.map_err(|panic| words(&*panic)) }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
