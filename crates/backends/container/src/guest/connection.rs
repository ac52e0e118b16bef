//! The connection to a container that somebody else started.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bollard::query_parameters::{
    KillContainerOptionsBuilder, ResizeContainerTTYOptionsBuilder, StatsOptionsBuilder,
};
use futures_util::StreamExt;
use tokio::sync::watch;
use wharf_backend::{Connection, ExecRequest, Output, Pending, Result, Status, Stop};
use wharf_model::{Code, DiskUse, ExitRecord, Failure, Millis, NetworkUse, Offset, Size, Stats, Ticket};

use crate::containers::Containers;
use crate::engine::endpoint::Endpoint;
use crate::engine::{Engine, QUERY_TIMEOUT};
use crate::ticket_data::TicketData;

/// A guest's connection. Input, output and the end come from the command that passes them through; signals, sizes and
/// numbers from the engine.
pub(crate) struct GuestConnection {
    inner: Arc<dyn Connection>,
    guest: Arc<GuestContainer>,
}

/// The guest's container.
struct GuestContainer {
    containers: Arc<Containers>,
    data: TicketData,
}

impl GuestConnection {
    /// The connection to a guest. Its terminal follows each change of the session's size, but keeps its own until the
    /// first.
    pub(crate) fn follow(
        containers: Arc<Containers>,
        ticket: &Ticket,
        inner: Arc<dyn Connection>,
    ) -> Arc<dyn Connection> {
        let guest = Arc::new(GuestContainer { containers, data: TicketData::of(ticket) });
        if ticket.spec.tty {
            let follow = follow_size(Arc::clone(&guest), ticket.spec.size.sane(), inner.status());
            guest.containers.tasks.spawn(follow);
        }
        Arc::new(Self { inner, guest })
    }
}

impl GuestContainer {
    async fn engine(&self) -> Result<(Engine, &str)> {
        let lost = || Failure::new(Code::Internal, "the ticket does not say which container it is");
        let (address, id) =
            self.data.endpoint.clone().zip(self.data.container.as_deref()).ok_or_else(lost)?;
        Ok((self.containers.engine_at(&Endpoint::named(address, "the session's ticket")).await?, id))
    }

    async fn resize(&self, size: Size) -> Result<()> {
        let (engine, id) = self.engine().await?;
        let options =
            ResizeContainerTTYOptionsBuilder::default().h(size.rows.into()).w(size.cols.into()).build();
        engine.within(QUERY_TIMEOUT, "resize", engine.docker.resize_container_tty(id, options)).await
    }
}

/// Sets the terminal's size whenever the session's changes.
async fn follow_size(guest: Arc<GuestContainer>, mut known: Size, mut status: watch::Receiver<Status>) {
    let over = |status: &Status| status.exit.is_some() || status.broken;
    loop {
        let size = match status.wait_for(|status| status.size != known || over(status)).await {
            Ok(status) if !over(&status) => status.size,
            _ => return,
        };
        known = size;
        if let Err(failure) = guest.resize(size).await {
            tracing::debug!(%failure, "the terminal of a container keeps its size");
        }
    }
}

#[async_trait]
impl Connection for GuestConnection {
    async fn write(&self, bytes: &[u8], within: Duration) -> Result<()> {
        self.inner.write(bytes, within).await
    }

    async fn close_input(&self) -> Result<()> {
        self.inner.close_input().await
    }

    async fn pending(&self) -> Result<Pending> {
        self.inner.pending().await
    }

    async fn resize(&self, size: Size) -> Result<()> {
        self.inner.resize(size).await
    }

    async fn signal(&self, signal: i32, tree: bool) -> Result<()> {
        if tree {
            return Err(Failure::unsupported(
                "a signal to every process",
                "a container that is somebody else's",
            )
            .hint("without --tree it goes to the container's first process"));
        }
        let (engine, id) = self.guest.engine().await?;
        let options = KillContainerOptionsBuilder::default().signal(&signal.to_string()).build();
        engine.within(QUERY_TIMEOUT, "signal", engine.docker.kill_container(id, Some(options))).await
    }

    async fn stop(&self, stop: Stop) -> Result<ExitRecord> {
        self.inner.stop(stop).await
    }

    async fn wait(&self) -> Result<ExitRecord> {
        self.inner.wait().await
    }

    fn status(&self) -> watch::Receiver<Status> {
        self.inner.status()
    }

    async fn output(&self, from: Offset) -> Result<Box<dyn Output>> {
        self.inner.output(from).await
    }

    async fn stats(&self) -> Result<Stats> {
        let own = self.inner.stats().await?;
        let (engine, id) = self.guest.engine().await?;
        let options = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
        let (docker, _) = engine.stream()?;
        let asked = async { docker.stats(id, Some(options)).next().await.transpose() };
        let told = engine.within(QUERY_TIMEOUT, "stats", asked).await?;
        let told = told.ok_or_else(|| Failure::new(Code::Unreachable, "the engine has no numbers of it"))?;
        let cpu = told.cpu_stats.and_then(|cpu| cpu.cpu_usage?.total_usage).unwrap_or_default();
        let counted = told.blkio_stats.and_then(|disks| disks.io_service_bytes_recursive);
        let io = counted.map(|counted| {
            let of = |op: &str| {
                let found = counted
                    .iter()
                    .filter(|entry| entry.op.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(op)));
                found.filter_map(|entry| entry.value).fold(0, u64::saturating_add)
            };
            DiskUse { read: of("read"), written: of("write") }
        });
        let network = told.networks.map(|networks| NetworkUse {
            received: networks.values().filter_map(|one| one.rx_bytes).fold(0, u64::saturating_add),
            sent: networks.values().filter_map(|one| one.tx_bytes).fold(0, u64::saturating_add),
        });
        Ok(Stats {
            io,
            network,
            cpu: Millis(cpu / 1_000_000),
            memory: told.memory_stats.and_then(|memory| memory.usage).unwrap_or_default(),
            processes: told.pids_stats.and_then(|pids| pids.current).unwrap_or_default() as u32,
            ..own
        })
    }

    async fn exec(&self, _: ExecRequest) -> Result<i32> {
        let engine = self.guest.containers.options.flavour.name();
        Err(Failure::unsupported("a further command", "a container that is somebody else's")
            .hint(format!("`{engine} exec` runs one")))
    }
}
