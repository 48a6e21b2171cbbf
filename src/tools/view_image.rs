//! `view_image`: shows a picture of the workspace to a model with vision. For other models the tool does not
//! exist.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::image::{Image, MOST_BYTES};
use crate::base::output::{ToolError, ToolOutput};
use crate::config::Permission;
use crate::model::ToolDefinition;

use super::{CallContext, Tool, ToolFuture, define_tool, files, parse_arguments};

/// `view_image`: a picture for the model.
pub struct ViewImage(ToolDefinition);

#[derive(Debug, Deserialize)]
struct ViewImageArguments {
    path: String,
}

impl ViewImage {
    pub fn new() -> Self {
        Self(ToolDefinition {
            advice: "Only for pictures; text files take read_file.",
            reads: Some("path"),
            ..define_tool(
                "view_image",
                "Shows you a picture or PDF. PNG, JPEG, WebP or GIF, at most 3.75 MB.",
                (Permission::Read, &[]),
                json!({ "path": { "type": "string" } }),
                &["path"],
            )
        })
    }
}

impl Tool for ViewImage {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let ViewImageArguments { path } = parse_arguments(given)?;
            let mut found = files::find_file(context.reach, &path)?;
            let bytes = found.opened.facts.len;
            let size = files::format_size(bytes);
            if bytes > MOST_BYTES {
                let most = files::format_size(MOST_BYTES);
                return Err(ToolError::permanent(format!(
                    "{path} has {size}, more than {most}: make it smaller first"
                )));
            }
            let image = Image::read(&files::read_whole(&path, &mut found)?)
                .map_err(|why| ToolError::permanent(format!("{path} {why}")))?;
            let name = context.workspace.display(&found.path);
            Ok(ToolOutput {
                result: json!({ "path": name, "mime": image.mime, "bytes": bytes }),
                observation: format!(
                    "{name}: {}, {size}. The picture follows the results of this step.",
                    image.mime
                ),
                summary: format!("{}, {size}", image.mime),
                images: vec![image],
                ..ToolOutput::default()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Place;
    use super::*;

    #[test]
    fn pictures_are_shown_and_nothing_else() {
        let place = Place::with(&[("a.txt", "text")]);
        place.put("p.gif", b"GIF89a...");
        place.put("big.gif", vec![b'G'; 5 * 1024 * 1024 + 1]);
        let call = |path: &str| place.call(&ViewImage::new(), json!({ "path": path }));
        let output = call("p.gif").expect("it is a picture");
        assert_eq!(output.observation, "p.gif: image/gif, 9 B. The picture follows the results of this step.");
        assert_eq!(output.images[0].mime, "image/gif");
        place.put("p.pdf", b"%PDF-1.4 ...");
        assert_eq!(call("p.pdf").expect("it is a PDF").images[0].mime, "application/pdf");
        assert!(call("a.txt").expect_err("it is none").message.contains("is not a PNG"));
        assert!(call("big.gif").expect_err("it is too large").message.contains("make it smaller"));
    }
}
