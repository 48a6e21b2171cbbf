//! The ways in which servers of chat completions differ. The defaults suit an unknown server.

use serde::Deserialize;

use super::super::effort::Effort;
use super::super::history::{CallIds, Pictures};
use crate::config::CacheLifetime;

/// The behaviours of one server with one model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatFlags {
    /// PDFs may be sent.
    pub documents: bool,
    /// Usage comes only when it is asked for (`stream_options`).
    pub stream_options: bool,
    pub output_field: OutputField,
    /// `parallel_tool_calls` may be sent.
    pub parallel_field: bool,
    /// `tool_choice: none` may be sent. Without it a closing request leaves the choice open.
    pub choice_none: bool,
    pub answer_format: AnswerFormat,
    /// A request may have both an answer format and tools.
    pub format_with_tools: bool,
    /// Tools may be declared strict.
    pub strict: bool,
    pub temperature: bool,
    pub effort: EffortField,
    /// Function tools are refused while the model reasons: with tools the effort is `none`.
    pub tools_forbid_reasoning: bool,
    pub echo: Echo,
    /// The content of a reply that only calls is `""` instead of `null`.
    pub empty_content: bool,
    /// The user may speak right after results. Otherwise the words are added to the last result.
    pub user_after_results: bool,
    pub ids: CallIds,
    pub pictures: Pictures,
    /// Caches up to marks in the messages (`cache_control`).
    pub cache_marks: bool,
    pub cache_lifetime: CacheLifetime,
    /// `prompt_cache_key` may be sent.
    pub cache_key: bool,
    /// A call of the running turn that came from another model needs a stand-in for its signature.
    pub stand_in_signature: bool,
    /// Schemas contain only what Gemini reads.
    pub plain_schemas: bool,
    /// A stream begins inside reasoning whose opening tag is in the prompt.
    pub prefilled_think: bool,
    /// The server has no parser for calls: they are in the text, in the model's own notation.
    pub calls_in_text: bool,
    /// The reported total includes tokens of reasoning that the reported output does not.
    pub reasoning_in_total: bool,
}

impl Default for ChatFlags {
    fn default() -> Self {
        Self {
            documents: false,
            stream_options: true,
            output_field: OutputField::default(),
            parallel_field: false,
            choice_none: true,
            answer_format: AnswerFormat::default(),
            format_with_tools: true,
            strict: true,
            temperature: true,
            effort: EffortField::default(),
            tools_forbid_reasoning: false,
            echo: Echo::default(),
            empty_content: false,
            user_after_results: true,
            ids: CallIds::default(),
            pictures: Pictures::AfterResults,
            cache_marks: false,
            cache_lifetime: CacheLifetime::default(),
            cache_key: false,
            stand_in_signature: false,
            plain_schemas: false,
            prefilled_think: false,
            calls_in_text: false,
            reasoning_in_total: false,
        }
    }
}

/// The field that limits the reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputField {
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

/// The strictest form in which a server takes a schema for the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    Absent,
    JsonObject,
    #[default]
    JsonSchema,
}

/// The fields that say how much the model reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortField {
    /// None: the server knows no such field.
    Absent,
    /// `reasoning_effort: LEVEL`
    #[default]
    ReasoningEffort,
    /// `reasoning: { effort: LEVEL }`
    Reasoning,
    /// `reasoning: { enabled: BOOL }`
    ReasoningEnabled,
    /// `thinking: { type: enabled | disabled }`, with `reasoning_effort` beside it while it is enabled
    Thinking,
    /// `thinking: { type: enabled | disabled }` alone
    ThinkingSwitch,
    /// `enable_thinking: BOOL`
    EnableThinking,
    /// `chat_template_kwargs: { enable_thinking: BOOL }`
    TemplateKwargs,
}

/// The way that reasoning goes back to the server that sent it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Echo {
    /// Not at all, except for signatures and encrypted data, which every server that sent them gets back.
    #[default]
    Never,
    /// In the field in which it came.
    Field,
    /// In `reasoning_content`, on every reply that calls, even if it is empty.
    Always,
    /// In front of the text, as it came.
    Text,
    /// As a part of the content.
    Content,
}

impl EffortField {
    /// True if the field distinguishes levels, not only thinking from not thinking.
    pub fn has_levels(self) -> bool {
        matches!(self, Self::ReasoningEffort | Self::Reasoning | Self::Thinking)
    }

    /// The levels that the field can express, if the model's own are unknown.
    pub fn levels(self) -> Vec<Effort> {
        match self {
            Self::Absent => Vec::new(),
            _ if self.has_levels() => Effort::ALL.to_vec(),
            _ => vec![Effort::None, Effort::High],
        }
    }
}
