//! Projects' own files, and which of them the user trusts.

use serde::{Deserialize, Serialize};
use wharf_model::{ProjectView, Text, TrustedFile};

use crate::Client;
use crate::client::Answer;

/// `POST /v1/trust/look`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustLook {
    /// The file or its directory; with `search`, the directory of sessions whose file it is.
    pub path: Text,
    /// Whether it is looked for as a session's start does it.
    #[serde(default)]
    pub search: bool,
}

/// `POST /v1/trust/accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustAccept {
    /// The file.
    pub file: Text,
    /// SHA-256 of what the user was shown.
    pub sha256: String,
}

/// `POST /v1/trust/revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRevoke {
    /// The file, as the list has it.
    pub file: Text,
}

impl Client {
    /// The projects' files that are trusted.
    pub async fn trusted(&self) -> Answer<Vec<TrustedFile>> {
        self.get("/v1/trust".to_owned()).await
    }

    /// A project's file as it is now.
    pub async fn look_at_project(&self, request: &TrustLook) -> Answer<ProjectView> {
        self.post("/v1/trust/look".to_owned(), request).await
    }

    /// Trusts a project's file, if it still is what was shown.
    pub async fn trust(&self, request: &TrustAccept) -> Answer<TrustedFile> {
        self.post("/v1/trust/accept".to_owned(), request).await
    }

    /// Trusts a file no longer.
    pub async fn revoke_trust(&self, request: &TrustRevoke) -> Answer<()> {
        self.post("/v1/trust/revoke".to_owned(), request).await
    }
}
