//! What the binary, the tests and the benchmarks use, and nothing else. The folders are private, so that rustc finds code that
//! nothing uses; a test that needs one more name adds it here.

pub mod base {
    pub mod tokens {
        pub use crate::base::tokens::{Vocabulary, count, estimate};
    }
    pub mod yaml {
        pub use crate::base::yaml::parse;
    }
    pub mod validator {
        pub use crate::base::validator::Validator;
    }
    pub mod frontmatter {
        pub use crate::base::frontmatter::split;
    }
    pub mod output {
        pub use crate::base::output::{Encoding, ResponseFormat, ToolError, ToolOutput};
    }
    pub mod present {
        pub use crate::base::present::{Occasion, Source, encode, view};
    }
    pub mod text {
        pub use crate::base::text::{head, is_safe, visible};
    }
}
pub mod template {
    pub use crate::template::{
        LONGEST_OUTPUT, Syntax, Template, TemplateError, Undefined, Value, clock, object, value,
    };
}
pub mod files {
    pub mod workspace {
        pub use crate::files::workspace::Workspace;
    }
}
pub mod config {
    pub use crate::config::{
        ApprovalMode, Config, Effect, Env, LoadOptions, ModelConfig, Permission, Profile, SettingFlags, SkillDir,
        SkillScope, Strategy, Wire, load,
    };
}
pub mod conversation {
    pub use crate::conversation::{Archive, EventSink};
    pub mod event {
        pub use crate::conversation::event::{CallTelemetry, Compressed, CompressionReason, Event, EventKind};
        pub mod plan {
            pub use crate::conversation::event::plan::{
                Decision, PlanCreated, PlanStep, Progress, Reflection, StepFinished, StepStarted, StepStatus,
            };
        }
    }
    pub mod message {
        pub use crate::conversation::message::{
            Answer, Author, Call, CallStatus, FinishReason, Item, Opaque, Origin, Part, Said, Step, Summary,
            ToolCall, Usage,
        };
    }
    pub mod session {
        pub use crate::conversation::session::{About, Change, Edit, ItemId, Session, Store};
    }
    pub mod spill {
        pub use crate::conversation::spill::Spill;
    }
}
pub mod safety {
    pub use crate::safety::{Approval, Approver, Hold, Nobody, PlanReview, PlanSheet, Question};
    pub mod policy {
        pub use crate::safety::policy::{
            Call, Grounds, Invocation, Line, Rules, Verdict, judge, read_line, targets,
        };
    }
    pub mod process {
        pub use crate::safety::process::{Launch, Patience, SHELL, run};
    }
    pub mod sandbox {
        pub use crate::safety::sandbox::{Boundary, Network, Profile, Protection, Sandbox, Walls, serve};
    }
}
pub mod model {
    pub use crate::model::{
        ChatModel, Delta, ModelError, ModelInfo, ReplyEnd, ReplyStream, Request, ToolChoice, ToolDefinition,
    };
    pub mod catalogue {
        pub mod providers {
            pub use crate::model::catalogue::providers::PROVIDERS;
        }
    }
    pub mod dialect {
        pub use crate::model::dialect::{names, resolve};
    }
    pub mod assembly {
        pub use crate::model::assembly::Assembly;
    }
    pub mod decode {
        pub use crate::model::decode::{Decode, Reading};
    }
    pub mod plan {
        pub use crate::model::plan::{Known, Plan};
    }
    pub mod sse {
        pub use crate::model::sse::{Decoder, Event};
    }
    pub mod written {
        pub use crate::model::written::Written;
    }
    pub mod anthropic {
        pub use crate::model::anthropic::Decoder;
    }
    pub mod chat {
        pub use crate::model::chat::{Decoder, Flags, encode};
    }
    pub mod responses {
        pub use crate::model::responses::Decoder;
    }
    pub mod asked {
        pub use crate::model::asked::{Asked, Settings};
    }
    pub mod history {
        pub use crate::model::history::{Ids, Pictures, Rules, turns};
    }
}
pub mod prompt {
    pub use crate::prompt::{MODULES, PRODUCTION, Prompt, PromptContext, Registry, SkillFacts, Version};
    /// Chat templates and chains, as docs/chat-templates.md shows them.
    pub mod chat {
        pub use crate::prompt::chat::{
            Callbacks, Chain, ChainError, ChatError, ChatMessage, ChatPart, ChatTemplate, Compiled, Ended, Failed,
            MessageTemplate, Options, Outcome, Part, Problem, Role, Started, assistant, calling, parts,
            placeholder, system, tool, user,
        };
    }
    pub mod test {
        pub use crate::prompt::test::{Suite, parse, run_all_rendered, standing};
    }
}
pub mod skills {
    pub use crate::skills::{Catalogue, Variables};
}
pub mod tools {
    pub use crate::tools::{CallContext, NAMES, Tool};
}
pub mod agent {
    pub use crate::agent::{
        Agent, Cancel, Conversation, Emitter, LoopDetector, LoopVerdict, ObservedCall, ObservedEnd, Run, RunEnd,
        RunInput, Steering, Stop, Terms, call_by_hand, fill, run_compression, run_input,
    };
    pub mod assembly {
        pub use crate::agent::assembly::{Options, Services, assemble, new_run_id};
    }
    pub mod orchestration {
        pub mod graph {
            pub use crate::agent::orchestration::graph::{Choices, check};
        }
        pub mod reply {
            pub use crate::agent::orchestration::reply::{
                ExecutorReply, PlanReply, Read, ReflectorReply, RouteReply, ScratchpadReply, read,
            };
        }
        pub mod progress {
            pub use crate::agent::orchestration::progress::{Next, Progress};
        }
        pub mod reference {
            pub use crate::agent::orchestration::reference::fill;
        }
        pub mod verdict {
            pub use crate::agent::orchestration::verdict::decide;
        }
    }
    pub mod window {
        pub use crate::agent::window::{Budget, PARTS, Request, Ruler};
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
            pub use crate::faces::chat::fuzzy::best;
        }
    }
    pub mod cli {
        pub use crate::faces::cli::main;
    }
}
