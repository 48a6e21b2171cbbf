//! The skills of servers (SEP-2640): listed when a server is up, fetched through it when one of them is loaded.

use std::sync::{Arc, Weak};

use tokio::time::timeout;

use crate::skills::{ServedFuture, ServedSkill, SkillServer};

use super::{McpConnection, McpServer, McpServers};

/// One server as the catalogue of skills sees it.
#[derive(Debug)]
struct ServerOfSkills {
    name: String,
    /// Weak, as the servers end with the agent, and not with a skill that somebody kept.
    servers: Weak<McpServers>,
}

impl McpServers {
    /// The skills that are known, by server, after the same wait as for the first tools.
    pub fn skills(self: &Arc<Self>) -> Vec<(Arc<dyn SkillServer>, Vec<ServedSkill>)> {
        self.await_first_lists();
        let of_server = |server: &Arc<McpServer>| {
            let skills = server.skills();
            let way = ServerOfSkills { name: server.name().to_owned(), servers: Arc::downgrade(self) };
            (!skills.is_empty()).then(|| (Arc::new(way) as Arc<dyn SkillServer>, skills))
        };
        self.iter().filter_map(of_server).collect()
    }
}

impl ServerOfSkills {
    /// Asks the server on its own thread, within its time limit.
    async fn ask<T, F>(
        &self,
        ask: impl FnOnce(Arc<McpServer>, Arc<McpConnection>) -> F + Send + 'static,
    ) -> Result<T, String>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, String>> + Send,
    {
        let gone = || "the servers have ended with their run".to_owned();
        let servers = self.servers.upgrade().ok_or_else(gone)?;
        let server = Arc::clone(servers.find(&self.name).ok_or_else(gone)?);
        let (limit, quoted) = (server.timeout(), Arc::clone(&server));
        let asked = async move {
            let connection = server.connect().await?;
            ask(server, connection).await
        };
        let asked = servers.runtime().ok_or_else(gone)?.spawn(timeout(limit, asked));
        let late = |_| format!("no answer within {} s", limit.as_secs());
        asked.await.map_err(|_| gone())?.map_err(late)?.map_err(|why| quoted.quote(&why, 300))
    }
}

impl SkillServer for ServerOfSkills {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe_skill<'a>(&'a self, uri: &'a str) -> ServedFuture<'a, ServedSkill> {
        let uri = uri.to_owned();
        Box::pin(self.ask(|server, _| async move {
            let skill = server.skills().into_iter().find(|skill| skill.uri == uri);
            skill.ok_or_else(|| "it has the skill no more".to_owned())
        }))
    }

    fn fetch_file<'a>(&'a self, uri: &'a str) -> ServedFuture<'a, Vec<u8>> {
        let uri = uri.to_owned();
        Box::pin(self.ask(|_, connection| async move { connection.fetch_resource(&uri).await }))
    }
}
