//! Creates the database's schema and migrates older ones forward.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use rusqlite_migration::{M, Migrations};

use crate::StoreError;

/// The steps from an empty file to today's schema. A released step is never changed; new ones are appended.
const STEPS: &[M<'static>] = &[M::up(
    "CREATE TABLE sessions (
        id       TEXT PRIMARY KEY,
        name     TEXT NOT NULL,
        grp      TEXT,
        labels   TEXT,
        backend  TEXT NOT NULL,
        state    TEXT NOT NULL,
        created  INTEGER NOT NULL,
        run      INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        exit     TEXT,
        over     INTEGER NOT NULL,
        ended    INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_by_end ON sessions (over, ended, id);
    CREATE INDEX sessions_by_name ON sessions (name, created);",
)];

/// Opens a file and brings its schema up to date.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // The flag refuses links on the way too, and those above the directory are the user's own.
    let whole = path.parent().and_then(|dir| dir.canonicalize().ok()).zip(path.file_name());
    let whole = whole.map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name));
    let mut connection = Connection::open_with_flags(whole, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(2))?;
    // Before anything is written: what is not ours is not to be changed.
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (version == 0 && tables > 0) || version > STEPS.len() as i64 {
        return Err(StoreError::Foreign(version));
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Migrations::from_slice(STEPS).to_latest(&mut connection)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_steps_are_well_formed() {
        rusqlite_migration::Migrations::from_slice(super::STEPS).validate().unwrap();
    }
}
