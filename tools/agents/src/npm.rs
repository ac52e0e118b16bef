//! npm: the system's where it is installed, else one of our own, fetched as the one file that it is from the registry that
//! the user's settings name, or npm's own. Debian's package of it brings 346 others.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use wharf_tool_support::step::{has, step};

/// The newest line that runs on the node of Debian 12, and the sum that the registry gives of it.
const VERSION: &str = "10.9.9";
const SUM: &str =
    "sha512-1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg==";
/// Where npm itself looks when nothing is set.
const REGISTRY: &str = "https://registry.npmjs.org";
/// Fetches a file and keeps it only if it has that sum.
const FETCH: &str = r#"
    const [url, sum, out] = process.argv.slice(1);
    (async () => {
        const answer = await fetch(url, { signal: AbortSignal.timeout(120000) });
        if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
        const bytes = Buffer.from(await answer.arrayBuffer());
        const found = "sha512-" + require("crypto").createHash("sha512").update(bytes).digest("base64");
        if (found !== sum) throw new Error(`${url} is not what was expected: ${found}`);
        require("fs").writeFileSync(out, bytes);
    })().catch(error => { console.error(String(error), error.cause ? String(error.cause) : ""); process.exit(1); });
"#;

/// The command, fetched into this directory where it is not installed.
pub(crate) fn command(dir: &Path) -> Result<Command> {
    if has("npm") {
        return Ok(Command::new("npm"));
    }
    if !has("node") {
        bail!("node is not here, and npm needs it: cargo xtask setup");
    }
    let own = dir.join(format!("npm-{VERSION}"));
    let program = own.join("package/bin/npm-cli.js");
    if !program.exists() {
        fetch(dir, &own)?;
    }
    let mut command = Command::new("node");
    command.arg(program);
    Ok(command)
}

fn fetch(dir: &Path, own: &Path) -> Result<()> {
    // Unpacked beside its place, so that a half of it is never taken for a whole.
    let half = dir.join(format!("npm.part-{}", std::process::id()));
    std::fs::create_dir_all(&half).with_context(|| half.display().to_string())?;
    let file = half.join("npm.tgz");
    let url = archive(registry().as_deref());
    let made = step("fetch npm", Command::new("node").args(["-e", FETCH, &url, SUM]).arg(&file))
        .and_then(|()| step("unpack npm", Command::new("tar").arg("-C").arg(&half).arg("-xzf").arg(&file)))
        .and_then(|()| std::fs::remove_file(&file).context("npm's archive"))
        // Another may have been quicker; either is whole.
        .map(|()| drop(std::fs::rename(&half, own)));
    let _ = std::fs::remove_dir_all(&half);
    made
}

/// Where a registry, or npm's own, has the file.
fn archive(registry: Option<&str>) -> String {
    format!("{}/npm/-/npm-{VERSION}.tgz", registry.unwrap_or(REGISTRY).trim_end_matches('/'))
}

/// The registry that the user has chosen.
fn registry() -> Option<String> {
    let named =
        ["npm_config_registry", "NPM_CONFIG_REGISTRY"].iter().find_map(|name| std::env::var(name).ok());
    let file = std::env::var_os("NPM_CONFIG_USERCONFIG").map(std::path::PathBuf::from);
    let file = file.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".npmrc")));
    named.or_else(|| chosen(&std::fs::read_to_string(file?).ok()?))
}

/// The registry of a configuration file of npm's.
fn chosen(settings: &str) -> Option<String> {
    let lines = settings.lines().filter_map(|line| line.split_once('='));
    lines.filter(|(name, _)| name.trim() == "registry").map(|(_, value)| value.trim().to_owned()).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_of_a_users_settings() {
        assert_eq!(
            chosen("audit=false\n registry = http://one/\n@scope:registry=http://two\n").unwrap(),
            "http://one/"
        );
        assert_eq!(chosen("audit=false\n"), None);
    }

    #[test]
    fn with_nothing_chosen_it_comes_from_where_npm_itself_would_look() {
        let path = format!("/npm/-/npm-{VERSION}.tgz");
        assert_eq!(archive(Some("http://one/")), format!("http://one{path}"));
        assert_eq!(archive(None), format!("https://registry.npmjs.org{path}"));
    }
}
