//! What an agent must find in its HOME so that it starts without questions and talks to the service alone.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

/// A key in the shape that Claude Code expects.
const KEY: &str = "sk-ant-api03-loopback-0000000000000000000000000000";

/// Writes the agent's own settings below `home`, and gives the variables that it needs.
pub(crate) fn prepare(
    agent: &str,
    home: &Path,
    work: &Path,
    service: &str,
) -> Result<Vec<(&'static str, String)>> {
    let write = |path: &str, text: String| -> Result<()> {
        let path = home.join(path);
        let dir = path.parent().context("a file stands in a directory")?;
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        fs::write(&path, text).with_context(|| path.display().to_string())
    };
    let work = work.display().to_string();
    Ok(match agent {
        "claude" => {
            let settings = json!({
                "hasCompletedOnboarding": true,
                "theme": "dark",
                "customApiKeyResponses": { "approved": [&KEY[KEY.len() - 20..]], "rejected": [] },
                "projects": { work: { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true } },
            });
            write(".claude.json", settings.to_string())?;
            vec![
                ("ANTHROPIC_BASE_URL", service.to_owned()),
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ]
        }
        "codex" => {
            let settings = format!(
                "model = \"loopback\"\nmodel_provider = \"loopback\"\ncheck_for_update_on_startup = false\n\
                 approval_policy = \"on-request\"\n\n[model_providers.loopback]\nname = \"loopback\"\n\
                 base_url = \"{service}/v1\"\nwire_api = \"responses\"\nenv_key = \"LOOPBACK_KEY\"\n\n\
                 [projects.\"{work}\"]\ntrust_level = \"trusted\"\n"
            );
            write(".codex/config.toml", settings)?;
            vec![("LOOPBACK_KEY", "none".to_owned())]
        }
        "opencode" => {
            let settings = json!({
                "autoupdate": false,
                "model": "loopback/loopback",
                "small_model": "loopback/loopback",
                "permission": { "bash": "ask" },
                "provider": { "loopback": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "Loopback",
                    "options": { "baseURL": format!("{service}/v1"), "apiKey": "none" },
                    "models": { "loopback": { "name": "Loopback" } },
                } },
            });
            write(".config/opencode/opencode.json", settings.to_string())?;
            vec![("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned())]
        }
        "gemini" => {
            let settings = json!({
                "security": {
                    "auth": { "selectedType": "gemini-api-key" },
                    "folderTrust": { "enabled": false },
                },
                "general": { "disableAutoUpdate": true, "enableAutoUpdate": false },
                "privacy": { "usageStatisticsEnabled": false },
            });
            write(".gemini/settings.json", settings.to_string())?;
            vec![("GEMINI_API_KEY", "none".to_owned()), ("GOOGLE_GEMINI_BASE_URL", service.to_owned())]
        }
        _ => vec![
            ("OPENAI_API_BASE", format!("{service}/v1")),
            ("OPENAI_API_KEY", "none".to_owned()),
            // It would fetch a list of prices before it starts.
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True".to_owned()),
        ],
    })
}
