//! In place of the door to rmcp in a build without the feature `mcp`: every server says so when it is wanted.

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio::sync::mpsc::UnboundedSender;

use crate::skills::ServedSkill;

use super::offers::BegunArgument;
use super::{CallNews, McpCallError, McpEra, McpPart, McpReply, McpTransport};

/// There is none.
pub(super) struct NoConnection(Infallible);

impl NoConnection {
    pub async fn open(_transport: McpTransport, _era: Option<McpEra>) -> Result<Self, String> {
        Err("cannot be used: this program was built without the feature `mcp`".to_owned())
    }

    pub fn era(&self) -> McpEra {
        match self.0 {}
    }

    pub fn hear_changes(&self) -> broadcast::Receiver<()> {
        match self.0 {}
    }

    pub fn describe(&self) -> String {
        match self.0 {}
    }

    pub fn is_closed(&self) -> bool {
        match self.0 {}
    }

    pub async fn list_tools(&self, _most: usize) -> Result<Vec<Arc<Value>>, String> {
        match self.0 {}
    }

    pub async fn list_skills(&self, _most: usize) -> Result<Vec<ServedSkill>, String> {
        match self.0 {}
    }

    pub async fn fetch_resource(&self, _uri: &str) -> Result<Vec<u8>, String> {
        match self.0 {}
    }

    pub async fn call_tool(
        &self,
        _name: &str,
        _arguments: Map<String, Value>,
        _heard: &UnboundedSender<CallNews>,
    ) -> Result<McpReply, McpCallError> {
        match self.0 {}
    }

    pub async fn read_resource(&self, _uri: &str) -> Result<Vec<McpPart>, String> {
        match self.0 {}
    }

    pub async fn list_resources(&self) -> Result<Vec<(String, String)>, String> {
        match self.0 {}
    }

    pub async fn list_templates(&self) -> Result<Vec<(String, String)>, String> {
        match self.0 {}
    }

    pub async fn complete_argument(&self, _begun: &BegunArgument) -> Result<Vec<String>, String> {
        match self.0 {}
    }

    pub async fn list_prompts(&self) -> Result<Vec<(String, Vec<String>)>, String> {
        match self.0 {}
    }

    pub async fn write_prompt(&self, _name: &str, _arguments: Map<String, Value>) -> Result<Vec<McpPart>, String> {
        match self.0 {}
    }
}
