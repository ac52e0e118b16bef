//! Defines the store's errors: a full disk, a bad file, or another program's.

use std::path::PathBuf;

/// Why the store could not be opened or asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file could not be made or put aside.
    #[error("cannot use {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Something that is no file of ours stands in its place.
    #[error("the store is no file of ours: {0}")]
    NoFile(std::io::Error),
    /// The database refused.
    #[error("the store refused: {0}")]
    Database(#[from] rusqlite::Error),
    /// The schema could not be brought up to date.
    #[error("the store's schema: {0}")]
    Schema(#[from] rusqlite_migration::Error),
    /// The file is another program's, or of a newer version.
    #[error("the store has version {0}, which this one does not know")]
    Foreign(i64),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// What SQLite says where the file that its readers share finds no room: the first thing that it makes.
const IOERR_SHMSIZE: i32 = 4874;

impl StoreError {
    /// Whether the disk has no room for it.
    pub fn is_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        let full = |error: &rusqlite::Error| {
            error.sqlite_error().is_some_and(|error| {
                error.code == rusqlite::ErrorCode::DiskFull || error.extended_code == IOERR_SHMSIZE
            })
        };
        match self {
            Self::File { error, .. } | Self::NoFile(error) => {
                matches!(error.kind(), StorageFull | QuotaExceeded)
            }
            Self::Database(error) => full(error),
            Self::Schema(rusqlite_migration::Error::RusqliteError { err, .. }) => full(err),
            Self::Schema(_) | Self::Foreign(_) | Self::Closed => false,
        }
    }

    /// Whether the file itself is bad, so that only a new one helps.
    pub(crate) fn is_bad_file(&self) -> bool {
        use rusqlite_migration::{Error, MigrationDefinitionError};
        match self {
            Self::Database(error) => bad_code(error),
            Self::Schema(Error::RusqliteError { err, .. }) => bad_code(err),
            Self::Schema(Error::MigrationDefinition(MigrationDefinitionError::DatabaseTooFarAhead))
            | Self::Foreign(_)
            | Self::NoFile(_) => true,
            Self::Schema(_) | Self::File { .. } | Self::Closed => false,
        }
    }
}

fn bad_code(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
    match error {
        // A table or column that should be there and is not: another program's file, or half of ours.
        rusqlite::Error::SqliteFailure(error, _) => {
            matches!(error.code, DatabaseCorrupt | NotADatabase | Unknown)
        }
        rusqlite::Error::SqlInputError { .. }
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..) => true,
        _ => false,
    }
}
