//! Keeps the injected faults: which operation fails, how, how often, and what was called.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::{Failure, Result};

/// An operation of a backend, a connection or an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the method of its name")]
pub enum Op {
    Probe,
    Start,
    Adopt,
    List,
    Sweep,
    Kill,
    Write,
    CloseInput,
    Pending,
    Resize,
    Signal,
    Stop,
    Wait,
    Output,
    /// `Output::next`.
    Next,
    Stats,
    Exec,
}

const OP_COUNT: usize = Op::Exec as usize + 1;

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and nothing was done.
    Fail(Failure),
    /// It is done, and the answer is lost on the way back.
    LoseAnswer(Failure),
    /// It hangs until [`FaultHandle::release`], and is done then.
    Hang,
    /// It is done later.
    Delay(Duration),
    /// It panics.
    Panic,
}

/// How often it goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// The next time.
    Once,
    /// The next so many times.
    Next(u32),
    /// From now on.
    Always,
}

/// Injects faults, lets go of hanging calls, and knows what was called. Clones are handles of the same one.
#[derive(Clone)]
pub struct FaultHandle(Arc<Shared>);

struct Shared {
    rules: Mutex<Vec<(Op, Fault, Times)>>,
    calls: watch::Sender<[u32; OP_COUNT]>,
    releases: watch::Sender<[u32; OP_COUNT]>,
}

impl FaultHandle {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            rules: Mutex::default(),
            calls: watch::Sender::new([0; OP_COUNT]),
            releases: watch::Sender::new([0; OP_COUNT]),
        }))
    }

    /// Makes an operation fail. Faults of one operation come in the order of injection.
    pub fn inject(&self, op: Op, fault: Fault, times: Times) {
        self.rules(|rules| rules.push((op, fault, times)));
    }

    /// Takes an operation's faults away, and lets its hanging calls go on.
    pub fn release(&self, op: Op) {
        self.rules(|rules| rules.retain(|(of, ..)| *of != op));
        self.0.releases.send_modify(|releases| releases[op as usize] += 1);
    }

    /// Takes all faults away, and lets all hanging calls go on.
    pub fn clear(&self) {
        self.rules(Vec::clear);
        self.0.releases.send_modify(|releases| releases.iter_mut().for_each(|count| *count += 1));
    }

    /// How often an operation was called, whether it went well or not.
    pub fn calls(&self, op: Op) -> u32 {
        self.0.calls.borrow()[op as usize]
    }

    /// Waits until an operation was called so many times.
    pub async fn called(&self, op: Op, times: u32) {
        let mut calls = self.0.calls.subscribe();
        calls.wait_for(|calls| calls[op as usize] >= times).await.expect("the handle holds the sender");
    }

    /// Does an operation, or what was injected in its place.
    pub(super) async fn through<T>(&self, op: Op, done: impl Future<Output = Result<T>>) -> Result<T> {
        let mut releases = self.0.releases.subscribe();
        let released = releases.borrow()[op as usize];
        self.0.calls.send_modify(|calls| calls[op as usize] += 1);
        match self.take(op) {
            None => done.await,
            Some(Fault::Fail(failure)) => Err(failure),
            Some(Fault::LoseAnswer(failure)) => done.await.and(Err(failure)),
            Some(Fault::Delay(time)) => {
                tokio::time::sleep(time).await;
                done.await
            }
            Some(Fault::Hang) => {
                let gone = releases.wait_for(|now| now[op as usize] != released).await.is_err();
                assert!(!gone, "the handle holds the sender");
                done.await
            }
            Some(Fault::Panic) => panic!("an injected panic in {op:?}"),
        }
    }

    fn take(&self, op: Op) -> Option<Fault> {
        self.rules(|rules| {
            let at = rules.iter().position(|(of, ..)| *of == op)?;
            let (_, fault, times) = &mut rules[at];
            let fault = fault.clone();
            match times {
                Times::Always => {}
                Times::Next(left) if *left > 1 => *left -= 1,
                Times::Once | Times::Next(_) => drop(rules.remove(at)),
            }
            Some(fault)
        })
    }

    fn rules<T>(&self, change: impl FnOnce(&mut Vec<(Op, Fault, Times)>) -> T) -> T {
        change(&mut self.0.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
