//! What a captured shell is found again by: everything that decides it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use wharf_backend::Progress;
use wharf_model::{Code, Failure, Text};

use crate::Result;
use crate::flake::{Flake, Kind};
use crate::program::{Around, Program};
use crate::sources;

/// Counts up when what is kept of a shell changes its form.
const FORM_VERSION: u32 = 2;

/// The key of a flake's shell under a nix; none where not everything that decides it can be known.
pub(crate) async fn of(flake: &Flake, program: &Program, around: Around<'_>) -> Result<Option<String>> {
    let (reference, settings) = (flake.absolute(), around.settings());
    let about = (FORM_VERSION, reference, program.version.clone(), program.system.clone(), settings);
    match &flake.kind {
        Kind::Git(_, tree) => local(about, tree.root.clone(), Some(tree.files.clone())).await,
        Kind::Path(dir) => local(about, dir.clone(), None).await,
        // What stands elsewhere may have moved on since: nix says what it is now, from its own cache for an hour.
        Kind::Elsewhere(flake) => {
            let args = ["flake", "metadata", "--json", flake.as_str()];
            let answer = program.ask(around, Path::new("/"), &args, &Progress::default()).await?;
            let odd = |error| Failure::new(Code::Unavailable, format!("nix flake metadata: {error}"));
            let answer: serde_json::Value = serde_json::from_slice(&answer).map_err(odd)?;
            Ok(Some(hash(&(about, answer["locked"].to_string()))))
        }
    }
}

type About = (u32, String, String, String, Vec<(Text, Text)>);

async fn local(about: About, root: PathBuf, files: Option<Vec<PathBuf>>) -> Result<Option<String>> {
    let work = move || {
        let files = files.or_else(|| sources::walk(&root))?;
        Some(hash(&(about, sources::contents(&root, files)?)))
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::new(Code::Internal, format!("cannot look at the flake's files: {error}")))
}

/// 128 bits: chance does not make two of these the same.
fn hash(what: &impl Hash) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, what).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(1), half(2))
}
