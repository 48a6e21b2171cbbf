//! The ways in which servers of the Messages API, and the models behind it, differ. The defaults suit an unknown
//! server: they send no field that only some servers read.

use serde::Deserialize;

use super::cloud::ClaudeCloud;
use crate::config::CacheLifetime;

/// The behaviours of one server with one model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnthropicFlags {
    /// PDFs may be sent.
    pub documents: bool,
    /// The cloud that serves the model, if it is not the maker's own.
    pub cloud: Option<ClaudeCloud>,
    pub thinking: Thinking,
    /// The text of thoughts comes only if it is asked for (`display: summarized`). For adaptive thinking only.
    pub thinking_display: bool,
    /// `output_config.effort` may be sent.
    pub effort_field: bool,
    /// Thoughts are tied to the messages before them: those that no longer fit are dropped instead of refused
    /// (`block_binding`, a beta).
    pub binding_controls: bool,
    /// Thinking between calls must be asked for (a beta). For thinking by budget only.
    pub interleaved_beta: bool,
    /// Thoughts without a signature go back too.
    pub empty_signature_ok: bool,
    pub temperature: bool,
    /// `tool_choice: none` may be sent. Without it a closing request leaves the choice open.
    pub choice_none: bool,
    /// `disable_parallel_tool_use` may be sent.
    pub parallel_switch: bool,
    /// Tools may be declared strict.
    pub strict: bool,
    /// Arguments of calls may be streamed as the model writes them, unchecked (`eager_input_streaming`).
    pub eager_stream: bool,
    /// The answer may be held to a schema (`output_config.format`).
    pub answer_format: bool,
    /// The prompt is cached up to marks (`cache_control`).
    pub cache_marks: bool,
    /// A tool may have a mark.
    pub cache_on_tools: bool,
    pub cache_lifetime: CacheLifetime,
    /// Results of failed calls may contain pictures.
    pub images_in_error_ok: bool,
}

impl Default for AnthropicFlags {
    fn default() -> Self {
        Self {
            documents: false,
            cloud: None,
            thinking: Thinking::default(),
            thinking_display: false,
            effort_field: false,
            binding_controls: false,
            interleaved_beta: false,
            empty_signature_ok: false,
            temperature: true,
            choice_none: true,
            parallel_switch: false,
            strict: false,
            eager_stream: false,
            answer_format: false,
            cache_marks: false,
            cache_on_tools: false,
            cache_lifetime: CacheLifetime::default(),
            images_in_error_ok: false,
        }
    }
}

/// The way in which a model is asked to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// It is not asked.
    #[default]
    Off,
    /// It is given a number of tokens; without one it does not think.
    Budget,
    /// It decides how much; it does not think unless asked.
    Adaptive,
    /// It decides how much, and thinks unless it is told not to.
    Unasked,
    /// It decides how much, and cannot be told not to.
    Always,
}
