//! Collects garbage: ended sessions, stray processes, leftover containers and broken links.

use std::fs;
use std::time::{Duration, SystemTime};

pub use wharf_model::GcItem;
use wharf_model::{Code, Home, Millis, SessionId};

use crate::Result;
use crate::instance::engine::Engine;
use crate::instance::{disk, lookup};

/// How old a directory without a ticket must be: a younger one may be a start that is under way.
const MIN_ORPHAN_AGE: Duration = Duration::from_secs(3_600);
/// How many ended sessions one collection looks at.
const MAX_ENDED: u32 = 100_000;

/// How many processes are named that a collection would end.
const MAX_NAMED: usize = 8;

impl Engine {
    /// Removes what is beyond doubt of no more use; keeps the rest and says why. `ended_before` is a moment:
    /// sessions that ended earlier are removed.
    pub async fn gc(&self, dry_run: bool, ended_before: Option<Millis>) -> Result<Vec<GcItem>> {
        let mut items = Vec::new();
        if let Some(moment) = ended_before {
            self.collect_ended(dry_run, moment, &mut items).await?;
        }
        self.collect_strays(dry_run, &mut items).await;
        self.collect_leftovers(dry_run, &mut items).await;
        self.collect_directories(dry_run, &mut items).await?;
        self.collect_links(dry_run, &mut items);
        Ok(items)
    }

    async fn collect_ended(&self, dry_run: bool, moment: Millis, items: &mut Vec<GcItem>) -> Result<()> {
        for row in self.query(move |store| store.over_before(moment, MAX_ENDED)).await? {
            let thing = format!("session {} ({})", row.name, row.id);
            let why = "it ended long enough ago";
            let handle = match self.shared.registry.by_id(&row.id) {
                Some(handle) => handle,
                None => match lookup::past(&self.shared, row.clone()) {
                    Ok(handle) => handle,
                    Err(failure) => {
                        // Its directory went before: only the history is left of it.
                        if failure.code == Code::NotFound && !dry_run {
                            self.shared.store.remove(&row.id);
                        }
                        continue;
                    }
                },
            };
            if !handle.is_over() {
                continue;
            }
            if dry_run {
                items.push(GcItem::removed(thing, why));
                continue;
            }
            let removed = match self.sweep(&handle).await {
                Ok(_) => self.forget(&handle).await,
                Err(failure) => Err(failure),
            };
            items.push(match removed {
                Ok(()) => GcItem::removed(thing, why),
                Err(failure) => GcItem::kept(thing, failure.message),
            });
        }
        Ok(())
    }

    /// Processes of ended sessions. Their backend ends only those that are beyond doubt theirs.
    async fn collect_strays(&self, dry_run: bool, items: &mut Vec<GcItem>) {
        for handle in self.shared.registry.all().into_iter().filter(|handle| handle.is_over()) {
            let thing = format!("processes of session {} ({})", handle.session().name, handle.id);
            if dry_run {
                match self.strays(&handle).await {
                    Ok(pids) if pids.is_empty() => {}
                    Ok(pids) => items.push(GcItem::removed(thing, named(&pids))),
                    Err(failure) => items.push(GcItem::kept(thing, failure.message)),
                }
                continue;
            }
            match self.sweep(&handle).await {
                Ok(0) => {}
                Ok(count) => {
                    items.push(GcItem::removed(thing, format!("{count} were left after its end")));
                }
                Err(failure) => items.push(GcItem::kept(thing, failure.message)),
            }
        }
    }

    /// What places have that no session needs any more: containers.
    async fn collect_leftovers(&self, dry_run: bool, items: &mut Vec<GcItem>) {
        let within = self.shared.timeouts.call;
        for backend in &self.shared.backends {
            let Some(keeper) = backend.keeper() else { continue };
            match tokio::time::timeout(within, keeper.leftovers(dry_run)).await {
                Ok(Ok(found)) => items.extend(found.into_iter().map(|left| {
                    let of = if left.kept { GcItem::kept } else { GcItem::removed };
                    of(left.thing, left.why)
                })),
                Ok(Err(failure)) => {
                    items.push(GcItem::kept(format!("what {} has", backend.name()), failure.message));
                }
                Err(_) => {
                    let why = format!("it did not answer within {within:?}");
                    items.push(GcItem::kept(format!("what {} has", backend.name()), why));
                }
            }
        }
    }

    async fn collect_directories(&self, dry_run: bool, items: &mut Vec<GcItem>) -> Result<()> {
        let sessions = self.shared.home.sessions();
        let Ok(entries) = fs::read_dir(&sessions) else { return Ok(()) };
        for entry in entries.filter_map(std::result::Result::ok) {
            let (path, thing) = (entry.path(), format!("directory {}", entry.path().display()));
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<SessionId>().ok()) else {
                items.push(GcItem::kept(thing, "it is not one of ours"));
                continue;
            };
            if self.shared.registry.by_id(&id).is_some() {
                continue;
            }
            match disk::ticket(&path) {
                // An older session than memory holds, or one that the next start takes in.
                Ok(Some(_)) => continue,
                Err(failure) => {
                    items.push(GcItem::kept(thing, failure.message));
                    continue;
                }
                Ok(None) => {}
            }
            let age = entry.metadata().and_then(|meta| meta.modified()).ok();
            let age = age.and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_none_or(|age| age < MIN_ORPHAN_AGE) {
                items.push(GcItem::kept(thing, "it has no ticket, and is younger than an hour"));
                continue;
            }
            let why = "it has no ticket, and nobody knows it";
            if dry_run {
                items.push(GcItem::removed(thing, why));
                continue;
            }
            let gone = path.clone();
            let removed = self.shared.tasks.spawn_blocking(move || disk::remove_session(&gone)).await;
            items.push(match removed {
                Ok(Ok(())) => GcItem::removed(thing, why),
                Ok(Err(failure)) => GcItem::kept(thing, failure.message),
                Err(error) => GcItem::kept(thing, error.to_string()),
            });
            self.shared.store.remove(&id);
        }
        Ok(())
    }

    /// Names that point at nothing, or at a session that has another name.
    fn collect_links(&self, dry_run: bool, items: &mut Vec<GcItem>) {
        let home = &self.shared.home;
        let Ok(entries) = fs::read_dir(home.names()) else { return };
        for entry in entries.filter_map(std::result::Result::ok) {
            let Some(name) = Home::name_of(&entry.file_name()) else { continue };
            let thing = format!("name {name}");
            if self.shared.registry.has_name(&name) {
                continue;
            }
            let Some(id) = disk::linked(home, &name) else {
                items.push(GcItem::kept(thing, "it is not a link of ours"));
                continue;
            };
            let renamed = self.shared.registry.by_id(&id).is_some_and(|handle| handle.session().name != name);
            let why = if renamed {
                "its session has another name"
            } else if !home.session(&id).join(Home::TICKET).exists() {
                "its session is gone"
            } else {
                continue;
            };
            if !dry_run {
                disk::free_link(home, &name, &id);
            }
            items.push(GcItem::removed(thing, why));
        }
    }
}

/// How many processes were left, and the first of them.
fn named(pids: &[i32]) -> String {
    let first: Vec<String> = pids.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let more = if pids.len() > MAX_NAMED { " and others" } else { "" };
    format!("{} were left after its end: {}{more}", pids.len(), first.join(", "))
}
