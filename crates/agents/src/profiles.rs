//! Loads every agent profile: the built-in ones, then the user's, then what the project changes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use toml::Table;
use wharf_boundary::read_config;
use wharf_model::{Code, Failure, Ignored, Project, Text, key_bytes};

use crate::{Profile, ProjectFile, Variables, careful, merge_toml, program};

/// The profiles that come with Wharf.
const BUILT_IN: &[(&str, &str)] = &[
    ("generic", include_str!("../profiles/generic.toml")),
    ("aider", include_str!("../profiles/aider.toml")),
    ("claude", include_str!("../profiles/claude.toml")),
    ("codex", include_str!("../profiles/codex.toml")),
    ("gdb", include_str!("../profiles/gdb.toml")),
    ("gemini", include_str!("../profiles/gemini.toml")),
    ("node", include_str!("../profiles/node.toml")),
    ("opencode", include_str!("../profiles/opencode.toml")),
    ("psql", include_str!("../profiles/psql.toml")),
    ("python", include_str!("../profiles/python.toml")),
    ("shell", include_str!("../profiles/shell.toml")),
    ("sqlite", include_str!("../profiles/sqlite.toml")),
];

/// What every profile is built on, and what a command that no profile knows gets.
const GENERIC: &str = "generic";

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

    /// Those that come with Wharf, under the user's own in `CONFIG/profiles/*.toml`, under what counts of a project's file.
    pub fn load(config_dir: Option<&Path>, project: Option<&Project>) -> Result<Self, Failure> {
        let own = config_dir.map(|dir| files(&dir.join("profiles"))).transpose()?.unwrap_or_default();
        let project = project.filter(|project| !project.changes.is_empty());
        if own.is_empty() && project.is_none() {
            return Ok(Self::built_in());
        }
        let mut layers = Layers::of_user(own)?;
        if let Some(project) = project {
            layers.change(&project.changes, project.file.as_path())?;
        }
        layers.finish()
    }

    /// What counts of a project's file: everything where the user trusts it, else only what is more careful. A file that
    /// is wrong counts for nothing, and is no failure: it came with whatever was cloned.
    pub fn consider(
        config_dir: Option<&Path>,
        file: &ProjectFile,
        trusted: bool,
    ) -> Result<Project, Failure> {
        let own = config_dir.map(|dir| files(&dir.join("profiles"))).transpose()?.unwrap_or_default();
        let mut project = Project {
            file: file.path.clone().into(),
            sha256: file.sha256.clone(),
            trusted,
            changes: String::new(),
            ignored: Vec::new(),
        };
        let layers = Layers::of_user(own)?;
        let counted = if trusted { layers.tried(file) } else { layers.careful(file, &mut project.ignored) };
        match counted {
            Ok(changes) => project.changes = changes,
            Err(failure) => project.ignored = vec![Ignored { setting: "*".to_owned(), why: failure.message }],
        }
        Ok(project)
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

    /// Every mark that any agent leaves for its children: a script that starts another one must not hand them on.
    pub fn marks(&self) -> Variables {
        let mut strip: Vec<String> =
            self.all.values().flat_map(|profile| profile.env.strip.iter().cloned()).collect();
        strip.sort();
        strip.dedup();
        Variables { strip, ..Variables::default() }
    }

    /// The marks of those that come with Wharf alone. Every start of a session asks, so no more is read than is needed.
    pub fn known_marks() -> &'static Variables {
        static MARKS: LazyLock<Variables> = LazyLock::new(|| {
            let strips = |text: &str| {
                let table = toml::from_str::<Table>(text).ok()?;
                let strip = table.get("env")?.get("strip")?.as_array()?;
                Some(strip.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect::<Vec<_>>())
            };
            let texts = BUILT_IN.iter().map(|(_, text)| text).filter(|text| text.contains("\nstrip ="));
            let strip = texts.filter_map(|text| strips(text)).flatten().collect();
            Variables { strip, ..Variables::default() }
        });
        &MARKS
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

    /// What is built in, under the user's files.
    fn of_user(files: Vec<PathBuf>) -> Result<Self, Failure> {
        let mut layers = Self::built_in();
        for file in files {
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            layers.add(&stem, &read(&file)?, &file)?;
        }
        Ok(layers)
    }

    /// A project's changes: a table `[agents.NAME]` each.
    fn change(&mut self, text: &str, file: &Path) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Project {
            #[serde(default)]
            agents: BTreeMap<String, Profile>,
        }
        let project: Project = toml::from_str(text).map_err(|error| bad(file, text, &error))?;
        let mut agents = agents(text, file)?;
        for name in project.agents.keys() {
            let Some(toml::Value::Table(changes)) = agents.remove(name) else { continue };
            self.put(name, changes, file)?;
        }
        Ok(())
    }

    /// All of a project's changes, if they make profiles.
    fn tried(mut self, file: &ProjectFile) -> Result<String, Failure> {
        self.change(&file.text, &file.path)?;
        self.finish()?;
        Ok(file.text.clone())
    }

    /// Of a project's changes those that make things more careful, as TOML.
    fn careful(mut self, file: &ProjectFile, ignored: &mut Vec<Ignored>) -> Result<String, Failure> {
        let mut kept = Table::new();
        for (name, changes) in agents(&file.text, &file.path)? {
            let toml::Value::Table(changes) = changes else { continue };
            if !self.tables.contains_key(&name) {
                let why = "the file is not trusted, and there is no profile of this name".to_owned();
                ignored.push(Ignored { setting: format!("agents.{name}"), why });
                continue;
            }
            let below = self.whole(&name, &file.path, 0)?;
            let rule_names = |rule: &str| {
                let has = |(table, _): &(Table, _)| table.get("rule").is_some_and(|r| r.get(rule).is_some());
                self.tables.values().any(has)
            };
            let changes = careful::only(&name, changes, &below, &rule_names, ignored);
            if !changes.is_empty() {
                kept.insert(name, changes.into());
            }
        }
        if kept.is_empty() {
            return Ok(String::new());
        }
        let kept = toml::to_string(&Table::from_iter([("agents".to_owned(), kept.into())]))
            .map_err(|error| Failure::new(Code::Internal, format!("cannot write TOML: {error}")))?;
        self.change(&kept, &file.path)?;
        self.finish()?;
        Ok(kept)
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
                merge_toml::over(below, table);
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
            if let Some(excess) = profile.excess() {
                return Err(Failure::new(Code::Invalid, format!("{}: {excess}", file.display())));
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
        merge_toml::over(&mut table, own.clone());
        Ok(table)
    }
}

/// The tables `[agents.NAME]` of a project's file.
fn agents(text: &str, file: &Path) -> Result<Table, Failure> {
    let mut table: Table = toml::from_str(text).map_err(|error| bad(file, text, &error))?;
    match table.remove("agents") {
        Some(toml::Value::Table(agents)) => Ok(agents),
        _ => Ok(Table::new()),
    }
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
    let failed = |error: std::io::Error| Failure::system(format!("cannot read {}", file.display()), &error);
    // One that went meanwhile, or a link to nowhere.
    read_config(file).map_err(failed)?.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
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
