//! What the binary, the tests and the benchmarks use, and nothing else. The folders are private, so that rustc finds code that
//! nothing uses; a test that needs one more name adds it here.

pub mod base {
    pub use crate::base::output::{Encoding, ResponseFormat, ToolError, ToolOutput};
    pub use crate::base::validator::Validator;
    pub use crate::base::yaml::parse_document;
    pub mod tokens {
        pub use crate::base::tokens::{TokenMix, count_tokens, counts_exactly, estimate_tokens};
    }
    pub mod frontmatter {
        pub use crate::base::frontmatter::split_head;
    }
    pub mod present {
        pub use crate::base::present::{Occasion, ResultSource, encode_view, select_view};
    }
    pub mod text {
        pub use crate::base::text::{is_safe, make_visible, take_head};
    }
}
pub mod template {
    pub use crate::template::{
        LONGEST_OUTPUT, Syntax, Template, TemplateError, Undefined, Value, convert_value, layer_values,
        make_clock, make_object,
    };
}
pub mod files {
    pub mod workspace {
        pub use crate::files::workspace::Workspace;
    }
}
pub mod config {
    pub use crate::config::{
        ApprovalMode, Config, Env, GuidanceProfile, LoadOptions, ModelConfig, Permission, SettingFlags, SkillDir,
        SkillScope, Strategy, ToolEffect, Wire, load_config,
    };
}
pub mod conversation {
    pub use crate::conversation::{Archive, EventSink};
    pub mod event {
        pub use crate::conversation::event::{CallTelemetry, Compressed, CompressionReason, Event, EventKind};
        pub mod plan {
            pub use crate::conversation::event::plan::{
                PlanAuthor, PlanCreated, PlanEvent, PlanStep, Reflection, ScoreDecision, StepFinished,
                StepStarted, StepStatus,
            };
        }
    }
    pub mod message {
        pub use crate::conversation::message::{
            Author, Call, CallAnswer, CallStatus, FinishReason, Item, Opaque, Origin, ReplyPart, Step, Summary,
            ToolCall, Usage, UserText,
        };
    }
    pub mod session {
        pub use crate::conversation::session::{About, ItemChange, ItemId, Session, Store, ViewEdit};
    }
    pub mod spill {
        pub use crate::conversation::spill::Spill;
    }
}
pub mod safety {
    pub use crate::safety::{Approval, Approver, Hold, Nobody, PlanReview, PlanSheet, Question};
    pub mod policy {
        pub use crate::safety::policy::{
            Grounds, Invocation, ParsedLine, PolicyRules, ProposedCall, Verdict, judge_call, look_up_targets,
            read_line,
        };
    }
    pub mod process {
        pub use crate::safety::process::{ChildPatience, Launch, SHELL, run_child};
    }
    pub mod sandbox {
        pub use crate::safety::sandbox::{
            Boundary, Network, Protection, Sandbox, SandboxProfile, Walls, explain_denial, serve_part,
        };
    }
}
pub mod model {
    pub use crate::model::asked::{OutgoingRequest, RequestSettings};
    pub use crate::model::assembly::Assembly;
    pub use crate::model::catalogue::providers::PROVIDERS;
    pub use crate::model::decode::ReplyReading;
    pub use crate::model::plan::{KnownFacts, RequestPlan};
    pub use crate::model::sse::{SseDecoder, SseEvent};
    pub use crate::model::wires::create_decoder;
    pub use crate::model::written::WrittenResults;
    pub use crate::model::{
        ChatModel, Delta, ModelError, ModelInfo, ModelRequest, ReplyEnd, ReplyStream, ToolChoice, ToolDefinition,
    };
    pub mod dialect {
        pub use crate::model::dialect::{list_names, resolve_dialect};
    }
    pub mod chat {
        pub use crate::model::chat::{ChatFlags, encode_request};
    }
    pub mod history {
        pub use crate::model::history::{CallIds, HistoryRules, Pictures, write_turns};
    }
}
pub mod prompt {
    pub use crate::prompt::{MODULES, PRODUCTION, Prompt, PromptContext, Registry, SkillFacts, Version};
    /// Chat templates, as docs/chat-templates.md shows them.
    pub mod chat {
        pub use crate::prompt::chat::{
            ChatError, ChatMessage, ChatPart, ChatRole, ChatTemplate, FillOptions, MessageProblem,
            MessageTemplate, assistant, calling, parts, placeholder, system, tool, user,
        };
    }
    pub mod test {
        pub use crate::prompt::test::{Suite, judge_standing, parse_suite, run_all_rendered};
    }
}
pub mod skills {
    pub use crate::skills::{RunVariables, SkillCatalogue};
}
pub mod tools {
    pub use crate::tools::{CallContext, NAMES, Tool};
}
pub mod agent {
    pub use crate::agent::{
        Agent, Cancel, Conversation, Emitter, LoopDetector, LoopVerdict, ObservedCall, ObservedEnd, Run, RunEnd,
        RunInput, Steering, ToolTerms, TurnStop, call_by_hand, measure_fill, run_compression, run_input,
    };
    pub mod assembly {
        pub use crate::agent::assembly::{RunOptions, Services, assemble_services, new_run_id};
    }
    pub mod orchestration {
        pub mod graph {
            pub use crate::agent::orchestration::graph::{Choices, check_plan};
        }
        pub mod reply {
            pub use crate::agent::orchestration::reply::{
                ExecutorReply, ParsedReply, PlanReply, ReflectorReply, RouteReply, read_reply,
            };
        }
        pub mod progress {
            pub use crate::agent::orchestration::progress::{PlanAction, PlanProgress};
        }
        pub mod reference {
            pub use crate::agent::orchestration::reference::fill_references;
        }
        pub mod verdict {
            pub use crate::agent::orchestration::verdict::decide_step;
        }
    }
    pub mod window {
        pub use crate::agent::window::{Budget, MeasuredRequest, PARTS, Ruler};
    }
}
pub mod screen {
    pub mod ink {
        pub use crate::screen::ink::{Line, Style, Theme, is_link};
    }
    pub mod markdown {
        pub use crate::screen::markdown::Printer;
    }
}
pub mod faces {
    pub mod chat {
        pub mod fuzzy {
            pub use crate::faces::chat::fuzzy::find_best;
        }
    }
    pub mod cli {
        pub use crate::faces::cli::main;
    }
}
