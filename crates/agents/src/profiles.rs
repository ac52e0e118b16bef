use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use toml::Table;
use wharf_model::{Code, Failure, Text, key_bytes};

use crate::{Profile, merge, program};

/// The profiles that come with Wharf.
const BUILT_IN: &[(&str, &str)] = &[
    ("generic", include_str!("../../../profiles/generic.toml")),
    ("aider", include_str!("../../../profiles/aider.toml")),
    ("claude", include_str!("../../../profiles/claude.toml")),
    ("codex", include_str!("../../../profiles/codex.toml")),
    ("gemini", include_str!("../../../profiles/gemini.toml")),
    ("node", include_str!("../../../profiles/node.toml")),
    ("opencode", include_str!("../../../profiles/opencode.toml")),
    ("python", include_str!("../../../profiles/python.toml")),
    ("shell", include_str!("../../../profiles/shell.toml")),
];

/// What every profile is built on, and what a command that no profile knows gets.
const GENERIC: &str = "generic";

/// A profile's file may be this large; a larger one is not a profile.
const LARGEST: u64 = 1 << 20;

/// What is built in is read once.
static BUILT: LazyLock<Profiles> = LazyLock::new(|| {
    Layers::built_in().finish().expect("the profiles that come with Wharf are right: a test reads them")
});

/// Every agent that is known here.
#[derive(Debug, Clone)]
pub struct Profiles {
    all: BTreeMap<String, Arc<Profile>>,
}

impl Profiles {
    /// The profiles that come with Wharf, alone.
    pub fn built_in() -> Self {
        BUILT.clone()
    }

    /// Those that come with Wharf, under the user's own in `CONFIG/profiles/*.toml`, under the changes of the nearest
    /// `wharf.toml` at or above the project's directory.
    pub fn load(config_dir: Option<&Path>, project_dir: Option<&Path>) -> Result<Self, Failure> {
        let own = config_dir.map(|dir| files(&dir.join("profiles"))).transpose()?.unwrap_or_default();
        let project = project_dir.and_then(project_file);
        if own.is_empty() && project.is_none() {
            return Ok(Self::built_in());
        }
        let mut layers = Layers::built_in();
        for file in own {
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            layers.add(&stem, &read(&file)?, &file)?;
        }
        if let Some(file) = project {
            layers.change(&read(&file)?, &file)?;
        }
        layers.finish()
    }

    /// The profile of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Profile>> {
        self.all.get(name).cloned()
    }

    /// The profile of this name, or a failure that says which there are.
    pub fn named(&self, name: &str) -> Result<Arc<Profile>, Failure> {
        self.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            Failure::new(Code::NotFound, format!("no agent is called {name:?}"))
                .hint(format!("there are {}; `wharf agents` says more", names.join(", ")))
        })
    }

    /// Every name, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(String::as_str)
    }

    /// Every profile, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.all.values()
    }

    /// Whether a command line is that of an agent, by what comes with Wharf alone. Every start of a session asks, so
    /// only the profiles' first lines are looked at, and those once.
    pub fn is_known_agent(argv: &[Text]) -> bool {
        static AGENTS: LazyLock<HashMap<&str, bool>> =
            LazyLock::new(|| BUILT_IN.iter().flat_map(head).collect());
        program::known_by(argv)
            .iter()
            .find_map(|name| AGENTS.get(name.as_str()))
            .is_some_and(|attend| *attend)
    }

    /// The profile of a command line; the generic one where none knows it.
    pub fn for_argv(&self, argv: &[Text]) -> Arc<Profile> {
        let known = |name: &String| self.all.values().find(|profile| profile.programs.contains(name));
        let found = program::known_by(argv).iter().find_map(known).or_else(|| self.all.get(GENERIC));
        Arc::clone(found.expect("the generic profile is built in"))
    }
}

/// The programs of a built-in profile, and whether they are attended, without reading all of it.
fn head((_, text): &(&'static str, &'static str)) -> Vec<(&'static str, bool)> {
    let head = text.split("\n[").next().unwrap_or_default();
    let attend = head.lines().any(|line| line == "attend = true");
    let programs = head.lines().filter_map(|line| line.strip_prefix("programs = "));
    programs.flat_map(|list| list.split('"').skip(1).step_by(2)).map(|program| (program, attend)).collect()
}

/// Tables that are put over one another, and where each name came from last.
#[derive(Debug, Clone, Default)]
struct Layers {
    tables: BTreeMap<String, (Table, PathBuf)>,
}

impl Layers {
    fn built_in() -> Self {
        let mut layers = Self::default();
        for (name, text) in BUILT_IN {
            let file = format!("profiles/{name}.toml");
            let added = layers.add(name, text, Path::new(&file));
            added.expect("the profiles that come with Wharf are right: a test reads them");
        }
        layers
    }

    /// A whole profile: new, or over the one of that name.
    fn add(&mut self, stem: &str, text: &str, file: &Path) -> Result<(), Failure> {
        let profile: Profile = toml::from_str(text).map_err(|error| bad(file, text, &error))?;
        let table: Table = toml::from_str(text).map_err(|error| bad(file, text, &error))?;
        let name = if profile.name.is_empty() { stem } else { &profile.name };
        self.put(name, table, file)
    }

    /// A project's changes: a table `[agents.NAME]` each.
    fn change(&mut self, text: &str, file: &Path) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Project {
            #[serde(default)]
            agents: BTreeMap<String, Profile>,
        }
        let project: Project = toml::from_str(text).map_err(|error| bad(file, text, &error))?;
        let mut table: Table = toml::from_str(text).map_err(|error| bad(file, text, &error))?;
        let Some(toml::Value::Table(mut agents)) = table.remove("agents") else { return Ok(()) };
        for name in project.agents.keys() {
            let Some(toml::Value::Table(changes)) = agents.remove(name) else { continue };
            if let Some(key) = forbidden(&changes) {
                return Err(Failure::new(
                    Code::Forbidden,
                    format!("{}: a project may not set agents.{name}.{key}", file.display()),
                )
                .hint(format!(
                    "it says which programs run and which files are touched: put it into profiles/{name}.toml of \
                     your configuration directory"
                )));
            }
            self.put(name, changes, file)?;
        }
        Ok(())
    }

    fn put(&mut self, name: &str, mut table: Table, file: &Path) -> Result<(), Failure> {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
            return Err(Failure::new(
                Code::Invalid,
                format!("{}: {name:?} is no agent's name", file.display()),
            )
            .hint("a name has letters, digits, - and _"));
        }
        table.insert("name".to_owned(), name.into());
        match self.tables.get_mut(name) {
            Some((below, from)) => {
                merge::over(below, table);
                file.clone_into(from);
            }
            None => {
                self.tables.insert(name.to_owned(), (table, file.to_owned()));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Profiles, Failure> {
        let mut all = BTreeMap::new();
        for (name, (_, file)) in &self.tables {
            let table = self.whole(name, file, 0)?;
            let mut profile: Profile = table.try_into().map_err(|error: toml::de::Error| {
                Failure::new(Code::Invalid, format!("{}: {}", file.display(), error.message()))
            })?;
            if profile.title.is_empty() {
                profile.title.clone_from(name);
            }
            check_keys(&profile, file)?;
            all.insert(name.clone(), Arc::new(profile));
        }
        Ok(Profiles { all })
    }

    /// A profile's table over that of its base.
    fn whole(&self, name: &str, asker: &Path, depth: u32) -> Result<Table, Failure> {
        let Some((own, file)) = self.tables.get(name) else {
            return Err(Failure::new(
                Code::Invalid,
                format!("{}: there is no profile {name:?} to build on", asker.display()),
            )
            .hint("`base` names one of those that `wharf agents` lists"));
        };
        if name == GENERIC {
            return Ok(own.clone());
        }
        if depth > 8 {
            return Err(Failure::new(Code::Invalid, format!("{}: the bases go in a circle", file.display())));
        }
        let base = own.get("base").and_then(toml::Value::as_str).unwrap_or(GENERIC);
        let mut table = self.whole(base, file, depth + 1)?;
        // What a program is called is its own.
        for key in ["name", "title", "programs", "base"] {
            table.remove(key);
        }
        merge::over(&mut table, own.clone());
        Ok(table)
    }
}

/// A key that a project's file may not change. Such a file comes with whatever was cloned; it must not decide which
/// program runs, by which arguments (one may be to ask for no permission), or which files of the user's are written.
fn forbidden(changes: &Table) -> Option<String> {
    const WHOLE: [&str; 6] = ["programs", "base", "launch", "hooks", "transcript", "name"];
    if let Some(key) = WHOLE.iter().find(|key| changes.contains_key(**key)) {
        return Some((*key).to_owned());
    }
    changes.get("env").and_then(|env| env.get("set")).map(|_| "env.set".to_owned())
}

/// Every key that a profile names must be one.
fn check_keys(profile: &Profile, file: &Path) -> Result<(), Failure> {
    let choices = profile.questions.values().flat_map(|asked| {
        asked.keys.iter().chain(&asked.deny_keys).chain(asked.choices.iter().flat_map(|choice| &choice.keys))
    });
    let keys = &profile.keys;
    let own = std::iter::once(&keys.submit).chain(&keys.newline).chain(&keys.interrupt).chain(&keys.clear);
    let own = own.chain(&profile.queue.submit);
    for key in own.chain(choices) {
        key_bytes(&key.replace("{n}", "1")).map_err(|error| {
            Failure::new(Code::Invalid, format!("{}: {error}", file.display()))
                .hint("keys are called Enter, Escape, Tab, Up, C-c, M-x, F5, or are one character")
        })?;
    }
    Ok(())
}

fn bad(file: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    Failure::new(Code::Invalid, format!("{}, line {line}: {}", file.display(), error.message().trim()))
        .hint("docs/agents.md says what stands in a profile")
}

fn read(file: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::system(format!("cannot read {}", file.display()), &error);
    if std::fs::metadata(file).map_err(failed)?.len() > LARGEST {
        return Err(Failure::new(Code::Invalid, format!("{} is too large for a profile", file.display())));
    }
    std::fs::read_to_string(file).map_err(failed)
}

/// The profiles of a directory, in order of their names. No directory is no profiles.
fn files(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::system(format!("cannot read {}", dir.display()), &error)),
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    Ok(files)
}

/// The nearest `wharf.toml` at or above a directory.
fn project_file(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().map(|dir| dir.join("wharf.toml")).find(|file| file.is_file())
}
