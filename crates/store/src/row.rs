//! Reads and writes one session's row in the database.

use std::collections::BTreeMap;

use rusqlite::types::Type;
use wharf_model::{ExitRecord, Group, Millis, Name, SessionId, State};

/// One session, as far as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    /// The session.
    pub id: SessionId,
    /// Its name; a later session may have taken it over.
    pub name: Name,
    /// Its group.
    pub group: Option<Group>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its backend.
    pub backend: String,
    /// Its state when it was last written.
    pub state: State,
    /// When it was created.
    pub created: Millis,
    /// Which start of it this was.
    pub run: u32,
    /// How many restarts in a row there have been.
    pub attempts: u32,
    /// How it ended.
    pub exit: Option<ExitRecord>,
}

pub(crate) const COLUMNS: &str = "id, name, grp, labels, backend, state, created, run, attempts, exit";

impl SessionRow {
    /// When it ended, for the order of the history.
    pub(crate) fn ended(&self) -> i64 {
        self.exit.as_ref().map_or(self.created, |exit| exit.ended).0 as i64
    }

    pub(crate) fn write(&self, connection: &rusqlite::Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO sessions \
                 (id, name, grp, labels, backend, state, created, run, attempts, exit, over, ended) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(rusqlite::params![
                self.id.as_str(),
                self.name.as_str(),
                self.group.as_ref().map(Group::as_str),
                (!self.labels.is_empty()).then(|| json(&self.labels)),
                self.backend,
                self.state.as_str(),
                self.created.0 as i64,
                self.run,
                self.attempts,
                self.exit.as_ref().map(json),
                self.state.is_over(),
                self.ended(),
            ])
            .map(|_| ())
    }

    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let state: String = row.get(5)?;
        let labels: Option<String> = row.get(3)?;
        let exit: Option<String> = row.get(9)?;
        let group: Option<String> = row.get(2)?;
        Ok(Self {
            id: row.get::<_, String>(0)?.parse().map_err(|e| bad(0, e))?,
            name: row.get::<_, String>(1)?.parse().map_err(|e| bad(1, e))?,
            group: group.map(|text| text.parse().map_err(|e| bad(2, e))).transpose()?,
            labels: labels
                .map(|text| serde_json::from_str(&text).map_err(|e| bad(3, e)))
                .transpose()?
                .unwrap_or_default(),
            backend: row.get(4)?,
            // A state of a newer version is one that this version knows nothing of.
            state: serde_json::from_value(state.into()).unwrap_or(State::Unknown),
            created: Millis(row.get::<_, i64>(6)? as u64),
            run: row.get(7)?,
            attempts: row.get(8)?,
            exit: exit.map(|text| serde_json::from_str(&text).map_err(|e| bad(9, e))).transpose()?,
        })
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data with string keys becomes JSON")
}

fn bad(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
