//! Where a session of an editor works: the directory, those beside it, and the servers of tools that are passed.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::rpc::RpcError;
use crate::base::secrets::Secret;
use crate::config::{McpPermission, McpSandbox, McpServerConfig, WrittenDuration, refuse_server_name};
use crate::faces::serving::ClientAdditions;
use crate::files::canonicalize;

/// The workspace, and what is added to it.
///
/// # Errors
/// What is passed is wrong; nothing is opened for it.
pub fn read_place(params: &Value) -> Result<(&Path, ClientAdditions), RpcError> {
    let cwd = params["cwd"].as_str().map(Path::new).filter(|cwd| cwd.is_absolute());
    let cwd = cwd.ok_or_else(|| RpcError::params("`cwd` is an absolute path"))?;
    let servers = read_servers(&params["mcpServers"])?;
    Ok((cwd, ClientAdditions { servers, dirs: read_dirs(&params["additionalDirectories"])? }))
}

/// The directories beside the workspace that an editor passes, with links followed.
fn read_dirs(passed: &Value) -> Result<Vec<String>, RpcError> {
    let read = |dir: &Value| {
        let dir = dir.as_str().map(Path::new).filter(|dir| dir.is_absolute());
        let real = dir.and_then(|dir| canonicalize(dir).ok()).filter(|dir| dir.is_dir());
        real.and_then(|dir| dir.to_str().map(str::to_owned))
            .ok_or_else(|| RpcError::params("an additional directory is an absolute path that exists"))
    };
    passed.as_array().into_iter().flatten().map(read).collect()
}

/// The servers of tools that an editor passes, under the same policy as the person's own.
fn read_servers(passed: &Value) -> Result<Vec<McpServerConfig>, RpcError> {
    let read = |server: &Value| {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pairs = |list: &Value| -> BTreeMap<String, Secret> {
            let all = list.as_array().into_iter().flatten();
            all.map(|pair| (word(&pair["name"]), Secret::new(word(&pair["value"])))).collect()
        };
        let mut command: Vec<String> = server["command"].as_str().map(str::to_owned).into_iter().collect();
        command.extend(server["args"].as_array().into_iter().flatten().map(word));
        let name = word(&server["name"]);
        if name.is_empty() || command.is_empty() && !server["url"].is_string() {
            return Err(RpcError::params("a server of tools has a name, and a command or an address"));
        }
        if let Some(why) = refuse_server_name(&name) {
            return Err(RpcError::params(why));
        }
        Ok(McpServerConfig {
            name,
            enabled: true,
            command,
            env: pairs(&server["env"]),
            url: server["url"].as_str().map(str::to_owned),
            headers: pairs(&server["headers"]),
            oauth: None,
            tools: vec!["*".to_owned()],
            permission: McpPermission::Ask,
            timeout: WrittenDuration::from_secs(60),
            sandbox: McpSandbox::default(),
        })
    };
    passed.as_array().into_iter().flatten().map(read).collect()
}
