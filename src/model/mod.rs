//! Models, behind a server or scripted, behind one trait.
//!
//! A conversation becomes turns (`history`), turns a request of one of five wires (`chat`, `responses`, `anthropic`,
//! `gemini`, `ollama`); bytes become events (`sse`), events a reply (the decoder of the wire, `assembly`), words an error
//! (`errors`): all pure. The differences between servers are data (`dialect`), and a server's refusals change the plan
//! (`learn`). Only `server`, `endpoint` and `reply` use the network. The public modules are public for benches/inside/.
//!
//! Invariants:
//! - A reply is read within limits (`bounds.rs`).
//! - A conversation knows no provider. Only `history.rs` changes it to suit a server, before every request; data that a
//!   provider wants back (`message::Opaque`) goes only to its origin. An encoder decides nothing, a decoder knows no
//!   other wire (`chat`, `responses`, `anthropic`), and neither does I/O. A server's refusal changes the plan of its
//!   requests (`learn.rs`), never the conversation; it is remembered for a week (`memory.rs`).
//! - A catalogue states facts about models. Hosts, keys and protocols are rows of the program
//!   (`catalogue/providers.rs`, `dialects.yaml`), whatever catalogue a user installs.
//!
//! To add:
//! - a quirk of a stream: one file in `tests/wire_cases/WIRE/`; a request, one in `tests/request_cases/`.
//! - a host with its own quirks: one row in `dialects.yaml`; a new quirk, one flag in the wire's `flags.rs`.
//! - a server's wording of an error or a refusal: one mark in `errors/table.rs`, and the answer it comes from in
//!   `tests/refusal_cases/`; of an overflow, its numbers in `stated.rs`. A new change of the requests: a `Remedy`, and its
//!   arm in `learn.rs`.
//! - a provider for `-m PROVIDER/ID`: one row in `catalogue/providers.rs`, one in its `generate.py` if its models have
//!   facts.
//! - facts about models: new versions in `catalogue/generate.py`, then run it.

pub mod ledger;
mod tool_definition;
mod allowance;
mod interface;
mod surrogates;
mod arguments;
pub mod effort;
mod extra;
mod strict;
mod functions;
pub mod sse;
pub mod event_stream;
mod frame;
mod lenient;
mod stated;
mod errors;
mod refused;
mod bounds;
pub mod assembly;
mod usage;
pub mod decode;
mod result_text;
pub mod turns;
pub mod written;
pub mod asked;
pub mod history;
pub mod chat;
pub mod responses;
pub mod anthropic;
mod ollama;
mod gemini;
pub mod dialect;
pub mod wires;
pub mod plan;
mod learn;
mod memory;
mod changed_keys;
mod wire_log;
mod clouds;
mod key;
mod endpoint;
mod reply;
mod embeddings;
pub mod catalogue;
mod neutral;
mod script;
mod scripted;
mod recording;
mod local;
mod key_check;
mod key_login;
mod probe;
mod unconfigured;
mod server;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::secrets::LateSecrets;
use crate::config::{CacheLifetime, Env, GuidanceProfile, ModelConfig, ModelProvider};
use crate::safety::net::Net;

use embeddings::Embeddings;
use plan::KnownFacts;

pub use allowance::{Allowance, AllowanceLeft};
pub use endpoint::is_configured;
pub use interface::{
    CallRecord, ChatModel, Delta, Learnt, ModelError, ModelErrorKind, ModelInfo, ModelRequest, PictureLimits,
    ReplyEnd, ReplyStream, ServerWindow, TakenTokens, ToolChoice, WindowSource,
};
pub use key_check::is_key_refused;
pub use key_login::KeyLogin;
pub use local::{LocalServer, list_served, probe_local};
pub use memory::{RefusalMemory, RememberedRefusal};
pub use probe::Probed;
pub use recording::{Recorder, Recording, Tape, ToolRename, record_session};
pub use refused::{PictureRefusal, PointedPart};
pub use stated::Stated;
pub use tool_definition::ToolDefinition;
pub use unconfigured::{Face, advise_setup};
pub use wire_log::WireLog;

/// The window of a model, in tokens, if its size is unknown.
const ASSUMED_WINDOW: u64 = 128_000;

/// The smallest window, in tokens, in which a recipe and examples leave room for work.
const ROOM_FOR_ADVICE: u64 = 8192;

/// The reason that a configured model cannot be used. Nothing has been sent yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("models.{model}.{key}: {why}")]
pub struct ConnectError {
    model: String,
    /// The key of the model's file that is wrong.
    key: String,
    why: String,
}

impl ConnectError {
    fn wrong(model: &str, key: &str, why: impl Into<String>) -> Self {
        Self { model: model.to_owned(), key: key.to_owned(), why: why.into() }
    }
}

/// Services that all models share.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub net: Arc<Net>,
    /// The directory of the run.
    pub workspace: PathBuf,
    /// `session.user_id` in scripts.
    pub user_id: String,
    /// Takes the keys that are fetched, to mask them.
    pub late_secrets: LateSecrets,
    /// Records the traffic.
    pub wire_log: Option<Arc<WireLog>>,
    /// Records replies, or gives recorded ones back.
    pub tape: Option<Tape>,
    /// The known facts about models.
    pub catalogue: Arc<catalogue::ModelCatalogue>,
    /// The variables in which the programs of clouds find their credentials.
    pub env: Env,
    /// What servers refused before.
    pub memory: Arc<RefusalMemory>,
}

/// Prepares a configured model for requests. Sends nothing.
///
/// # Errors
/// A mistake in the model's configuration.
pub fn connect_model(config: &ModelConfig, around: &Surroundings) -> Result<Arc<dyn ChatModel>, ConnectError> {
    let model: Arc<dyn ChatModel> = match config.provider {
        ModelProvider::Openai => {
            let id = config.model.as_deref().map(str::trim).filter(|id| !id.is_empty());
            let id =
                id.ok_or_else(|| ConnectError::wrong(&config.name, "model", "the provider's model is not named"))?;
            let (info, known) = gather_facts(config, id, around);
            Arc::new(server::ModelServer::new(config, info, known, around)?)
        }
        ModelProvider::Scripted => {
            let id = config.model.as_deref().unwrap_or(&config.name);
            let (info, _) = gather_facts(config, id, around);
            Arc::new(scripted::Scripted::new(config, info, around.user_id.clone())?)
        }
        ModelProvider::Replay => {
            let id = config.model.as_deref().unwrap_or(&config.name);
            let (info, _) = gather_facts(config, id, around);
            let path = config.recording.as_deref().unwrap_or(Path::new(""));
            let recording = Recording::open(path, &around.workspace, &[], false);
            let recording = recording.map_err(|why| ConnectError::wrong(&config.name, "recording", why))?;
            Arc::new(recording::ReplayedModel::new(info, Arc::new(recording)))
        }
    };
    Ok(match &around.tape {
        Some(tape) => tape.attach_model(model),
        None => model,
    })
}

/// Asks a server on this machine or in a private network which program it is, and what window the model has there.
/// Takes two seconds at most; public hosts are never asked.
///
/// # Errors
/// A mistake in the model's configuration.
pub async fn probe_server(config: &ModelConfig, around: &Surroundings) -> Result<Option<Probed>, ConnectError> {
    let (info, known) = gather_facts(config, config.model.as_deref().unwrap_or_default(), around);
    Ok(server::ModelServer::new(config, info, known, around)?.probed().await)
}

/// What the server of this model refused lately, the oldest first. It is forgotten.
///
/// # Errors
/// A mistake in the model's configuration.
pub fn forget_refusals(
    config: &ModelConfig,
    around: &Surroundings,
) -> Result<Vec<RememberedRefusal>, ConnectError> {
    let (info, known) = gather_facts(config, config.model.as_deref().unwrap_or_default(), around);
    let server = server::ModelServer::new(config, info, known, around)?;
    let (host, model) = server.name();
    let refusals = around.memory.recall(&host, &model);
    around.memory.forget(&host, &model);
    Ok(refusals)
}

/// Prepares `id`, another model of the same server, to turn texts into vectors. Sends nothing.
///
/// # Errors
/// A mistake in the model's configuration, or a script, which has no vectors.
pub fn connect_embedder(
    config: &ModelConfig,
    id: &str,
    around: &Surroundings,
) -> Result<Embeddings, ConnectError> {
    if config.provider != ModelProvider::Openai {
        return Err(ConnectError::wrong(&config.name, "provider", "a script makes no embeddings"));
    }
    Ok(Embeddings::new(endpoint::Endpoint::new(config, id, around)?, id.to_owned()))
}

/// Facts about a model: those that its file declares, else those of the catalogue, else assumptions.
fn gather_facts(config: &ModelConfig, id: &str, around: &Surroundings) -> (ModelInfo, KnownFacts) {
    let scripted = config.provider != ModelProvider::Openai;
    let place = catalogue::providers::place_of(config.base_url.as_deref());
    let known = if scripted { None } else { around.catalogue.lookup(place, id) };
    let (context_window, window_source) = match (config.context_window, &known) {
        (Some(window), _) => (window, WindowSource::Declared),
        (None, Some(entry)) => (entry.window, WindowSource::Catalogue),
        (None, None) => (ASSUMED_WINDOW, WindowSource::Assumed),
    };
    let output = config.max_output_tokens.map(|most| most.min(context_window));
    let output = output.or_else(|| Some(room_for_a_reply(known.as_ref()?.output?, context_window)));
    let input = known.as_ref().and_then(|facts| facts.input).filter(|_| config.context_window.is_none());
    let sees = known.as_ref().map(|facts| facts.sees);
    let info = ModelInfo {
        name: config.name.clone(),
        id: id.to_owned(),
        provider: "scripted".to_owned(),
        context_window,
        window_source,
        max_input_tokens: input,
        max_output_tokens: output,
        largest_output: config.max_output_tokens.or_else(|| known.as_ref()?.output),
        thinking_budget: None,
        prices: config.prices.clone().or_else(|| {
            let prices = known.as_ref()?.prices.clone()?;
            Some(if config.cache == Some(CacheLifetime::Hour) { prices.with_hourly_cache() } else { prices })
        }),
        ends: known.as_ref().and_then(|facts| facts.ends),
        calls_tools: config.capabilities.tools,
        sees: config.capabilities.vision.or(sees).unwrap_or(false),
        pictures: known.as_ref().map(|facts| facts.pictures).unwrap_or_default(),
        reads_documents: false,
        // A script needs no advice, and a small window has no room for it.
        profile: if scripted || context_window < ROOM_FOR_ADVICE {
            GuidanceProfile::Concise
        } else {
            catalogue::choose_profile(id, known.is_some())
        },
        retry: config.retry.clone(),
        scripted,
        configured: true,
    };
    let (wire, levels) = known.map_or((None, None), |facts| (facts.wire, facts.levels));
    (info, KnownFacts { wire, sees, levels, most_output_tokens: output })
}

/// The part of the window that is kept for a reply. Some models could fill all of it, but never do.
fn room_for_a_reply(most: u64, window: u64) -> u64 {
    const USUAL: u64 = 32_768;
    if most <= window / 3 { most } else { USUAL.min(window / 4) }
}
