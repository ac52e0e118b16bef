//! `wharf send`: delivers a message to an agent and waits for the receipt.

use std::time::Duration;

use wharf_api::{Await, SendRequest};
use wharf_model::{Code, Failure, Progress, Receipt};

use crate::delivery::DeliveryArgs;
use crate::dispatch::Serve;
use crate::persistence::Persistent;
use crate::trouble::Done;
use crate::{call, duration, output, place};

/// Arguments of `send`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, by name or id
    name: String,
    #[command(flatten)]
    delivery: DeliveryArgs,
    /// How far to wait: submitted, confirmed (proof that the agent took it), idle (its turn is over)
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "confirmed",
          default_missing_value = "confirmed", value_parser = clap::value_parser!(Await))]
    wait: Await,
    /// Do not wait: print the message's id once it is in the queue
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// Give up after this long; what was not typed by then is never typed
    #[arg(long, value_name = "DURATION", default_value = "120", value_parser = duration::parse)]
    timeout: Duration,
    /// Leave the text in the composer
    #[arg(long, conflicts_with_all = ["submit", "wait"])]
    no_submit: bool,
    /// Print the receipt as JSON, whatever became of the message
    #[arg(long)]
    json: bool,
}

/// The daemon itself says that a message has expired; it is given the time to.
const EXPIRY_MARGIN: Duration = Duration::from_secs(2);

pub(crate) fn run(args: Args, _: Serve) -> Done {
    let no_wait = args.no_wait;
    let how = match (no_wait, args.no_submit) {
        (true, _) => Await::Accepted,
        (_, true) => Await::Submitted,
        _ => args.wait,
    };
    let request = args.delivery.request(&args.name, args.timeout, args.no_submit)?;
    let (receipt, late) = deliver(&args.name, &request, how, args.timeout)?;
    let failure = failed(&receipt, how, late);
    if args.json {
        output::json(&receipt)?;
    } else if let Some(failure) = failure {
        return Err(failure.into());
    } else if no_wait {
        output::text(&format!("{}\n", receipt.id))?;
    } else {
        output::note(format!("{}: {}", receipt.status.as_str(), receipt.evidence));
    }
    Ok(failure.map_or(0, |failure| failure.code.exit_code()))
}

/// Puts the message into the queue, once however often the daemon dies, and waits for it. The receipt, and whether it
/// was waited for in vain.
fn deliver(
    name: &str,
    request: &SendRequest,
    how: Await,
    timeout: Duration,
) -> Result<(Receipt, bool), Failure> {
    let home = place::home()?;
    call::runtime()?.block_on(async {
        let mut daemon = Persistent::new(home, Some(timeout.saturating_add(EXPIRY_MARGIN)));
        let queued = daemon
            .ask(async |client, _| client.send(name, request, Await::Accepted, Duration::ZERO).await)
            .await?;
        if how == Await::Accepted || (queued.status.is_over() && how != Await::Idle) {
            return Ok((queued, false));
        }
        let id = &queued.id;
        let waited = daemon
            .ask(async |client, left| client.await_receipt(id, how, left.unwrap_or_default()).await)
            .await;
        match waited {
            Ok(receipt) => Ok((receipt, false)),
            Err(failure) if failure.code == Code::Timeout => {
                let receipt = daemon.ask(async |client, _| client.receipt(id).await).await?;
                // It may have come to its end in this very moment.
                let late = how == Await::Idle || !receipt.status.is_over();
                Ok((receipt, late))
            }
            Err(failure) => Err(told(failure, id)),
        }
    })
}

/// A failure that says of which message it is, so that somebody can look for it later.
fn told(failure: Failure, id: &str) -> Failure {
    let hint = failure
        .hint
        .unwrap_or_else(|| format!("it is message {id}; `wharf messages` says what became of it"));
    Failure { message: format!("{} (message {id})", failure.message), hint: Some(hint), ..failure }
}

/// Why a message did not come as far as was asked.
pub(super) fn failed(receipt: &Receipt, how: Await, late: bool) -> Option<Failure> {
    let code = match receipt.status {
        // What to do about these is another thing than about a text that cannot arrive.
        Progress::Refused => match receipt.code {
            Some(code @ (Code::Asking | Code::Ended | Code::DiskFull)) => code,
            _ => Code::Refused,
        },
        Progress::Unconfirmed => Code::Unconfirmed,
        Progress::Expired => Code::Expired,
        Progress::Cancelled => Code::Cancelled,
        _ if late => {
            let failure = Failure::new(
                Code::Timeout,
                format!("message {} is {} and not yet {how}", receipt.id, receipt.status.as_str()),
            );
            return Some(
                failure.hint("`wharf messages` says what becomes of it, `wharf cancel` takes it back"),
            );
        }
        _ => return None,
    };
    let mut failure = Failure::new(
        code,
        format!("message {} is {}: {}", receipt.id, receipt.status.as_str(), receipt.evidence),
    );
    failure.hint.clone_from(&receipt.hint);
    Some(failure)
}
