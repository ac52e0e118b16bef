//! Wraps a connection and its output so that a test can make any operation fail.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use wharf_model::{ExitRecord, Offset, Size, Stats};

use super::{FaultHandle, Op};
use crate::{Connection, ExecRequest, Output, OutputChunk, Pending, Result, Status, Stop};

/// A connection with faults in front of every operation.
pub(super) struct FaultyConnection {
    pub(super) inner: Arc<dyn Connection>,
    pub(super) faults: FaultHandle,
}

#[async_trait]
impl Connection for FaultyConnection {
    async fn write(&self, bytes: &[u8], within: Duration) -> Result<()> {
        self.faults.through(Op::Write, self.inner.write(bytes, within)).await
    }

    async fn close_input(&self) -> Result<()> {
        self.faults.through(Op::CloseInput, self.inner.close_input()).await
    }

    async fn pending(&self) -> Result<Pending> {
        self.faults.through(Op::Pending, self.inner.pending()).await
    }

    async fn resize(&self, size: Size) -> Result<()> {
        self.faults.through(Op::Resize, self.inner.resize(size)).await
    }

    async fn signal(&self, signal: i32, tree: bool) -> Result<()> {
        self.faults.through(Op::Signal, self.inner.signal(signal, tree)).await
    }

    async fn stop(&self, stop: Stop) -> Result<ExitRecord> {
        self.faults.through(Op::Stop, self.inner.stop(stop)).await
    }

    async fn wait(&self) -> Result<ExitRecord> {
        self.faults.through(Op::Wait, self.inner.wait()).await
    }

    fn status(&self) -> watch::Receiver<Status> {
        self.inner.status()
    }

    async fn output(&self, from: Offset) -> Result<Box<dyn Output>> {
        let inner = self.faults.through(Op::Output, self.inner.output(from)).await?;
        Ok(Box::new(FaultyOutput { inner, faults: self.faults.clone() }))
    }

    async fn stats(&self) -> Result<Stats> {
        self.faults.through(Op::Stats, self.inner.stats()).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<i32> {
        self.faults.through(Op::Exec, self.inner.exec(request)).await
    }
}

struct FaultyOutput {
    inner: Box<dyn Output>,
    faults: FaultHandle,
}

#[async_trait]
impl Output for FaultyOutput {
    async fn next(&mut self) -> Result<Option<OutputChunk>> {
        self.faults.through(Op::Next, self.inner.next()).await
    }
}
