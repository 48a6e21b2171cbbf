//! What a server is asked about its skills (SEP-2640). One whose files have no fixed digests is not taken, as nothing could be
//! held against them.

use rmcp::model::{ReadResourceRequestParams, ResourceContents, Skill, SkillResource, SkillResources};

use crate::base::digest::percent_decode;
use crate::base::image::decode_base64;
use crate::skills::{ServedFile, ServedSkill};

use super::client::McpConnection;
use super::pages::PageWalk;
use super::refusals::word_refusal;

/// The most files of a skill.
const MOST_FILES: usize = 2000;
/// The longest head of a skill, in bytes of JSON.
const LONGEST_HEAD: usize = 64 * 1024;

impl McpConnection {
    /// The skills of the server; none if it does not say that it has some.
    ///
    /// # Errors
    /// The end of a sentence about the server.
    pub async fn list_skills(&self, most: usize) -> Result<Vec<ServedSkill>, String> {
        if !self.service.peer_info().is_some_and(|info| info.capabilities.supports_skills()) {
            return Ok(Vec::new());
        }
        let (mut walk, mut skills) = (PageWalk::of("skills", most), Vec::new());
        loop {
            let page =
                self.service.list_skills(Some(walk.request())).await.map_err(|error| walk.refuse(&error))?;
            skills.extend(page.skills.iter().filter_map(convert_skill));
            if !walk.advance(skills.len(), page.next_cursor)? {
                return Ok(skills);
            }
        }
    }

    /// The bytes of a resource.
    ///
    /// # Errors
    /// The server has none at this address.
    pub async fn fetch_resource(&self, uri: &str) -> Result<Vec<u8>, String> {
        let read = self.service.read_resource(ReadResourceRequestParams::new(uri)).await;
        let first = read.map_err(|error| word_refusal(&error))?.contents.into_iter().next();
        match first {
            Some(ResourceContents::TextResourceContents { text, .. }) => Ok(text.into_bytes()),
            Some(ResourceContents::BlobResourceContents { blob, .. }) => {
                decode_base64(&blob).ok_or_else(|| "a file that is not valid base64".to_owned())
            }
            _ => Err("there is nothing at the address of the file".to_owned()),
        }
    }
}

/// A skill that can be held against what is fetched of it; `None` for another.
fn convert_skill(skill: &Skill) -> Option<ServedSkill> {
    let SkillResources::Files(files) = &skill.resources else { return None };
    let head = serde_json::to_string(&skill.frontmatter).ok()?;
    if skill.validate().is_err() || files.len() > MOST_FILES || head.len() > LONGEST_HEAD {
        return None;
    }
    let root = skill.uri.strip_suffix("SKILL.md")?;
    let files = files.iter().filter_map(|file| convert_file(root, file)).collect();
    Some(ServedSkill { uri: skill.uri.clone(), head, files })
}

/// A file by its path below the skill; `None` for a path that no file of a folder could have.
fn convert_file(root: &str, file: &SkillResource) -> Option<ServedFile> {
    let path = percent_decode(file.uri.strip_prefix(root)?)?;
    let is_plain =
        !path.chars().any(char::is_control) && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let digest = file.digest.strip_prefix("sha256:")?.to_owned();
    is_plain.then(|| ServedFile { path, uri: file.uri.clone(), digest, size: file.size })
}
