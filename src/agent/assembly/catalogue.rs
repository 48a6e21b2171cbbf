//! Lists the models that `-m` takes: the configured ones with their declared facts, then those of the catalogue.

use jiff::civil::Date;

use crate::config::{Config, ModelConfig, ModelProvider, Prices, Wire};
use crate::model;
use crate::model::catalogue::providers::{self, ProviderRole};
use crate::model::catalogue::{ModelCatalogue, ModelFacts, Off};
use crate::model::effort::Effort;
use crate::safety::net::Net;

use super::models::at_provider;

/// The models and the source of the facts about them.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelListing {
    pub models: Vec<ListedModel>,
    /// The day of the catalogue.
    pub date: Date,
    pub origin: String,
    /// A sentence about a catalogue that is not used.
    pub notice: Option<String>,
}

/// One model. `None` means unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    /// The name for `-m`.
    pub name: String,
    /// The provider's name for it; `None` for a script.
    pub id: Option<String>,
    pub is_configured: bool,
    pub window: Option<u64>,
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub prices: Option<Prices>,
    pub sees: Option<bool>,
    pub levels: Option<Vec<Effort>>,
    pub off: Option<Off>,
    pub wire: Option<Wire>,
    pub ends: Option<Date>,
}

/// Lists the models whose name or id contains `filter`, in any case.
pub fn list_models(config: &Config, filter: &str) -> ModelListing {
    let catalogue = ModelCatalogue::of_user(&config.dirs.data);
    let configured = config.models.values().map(|model| merge_declared(model, &catalogue));
    let known = catalogue
        .rows()
        .into_iter()
        .map(|(provider, facts)| ListedModel::from_facts(format!("{}/{}", provider.id, facts.id), Some(facts)));
    let filter = filter.to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&filter);
    let is_asked = |model: &ListedModel| holds(&model.name) || model.id.as_deref().is_some_and(holds);
    let models = configured.chain(known).filter(is_asked).collect();
    let (date, origin) = catalogue.source();
    ModelListing { models, date, origin, notice: catalogue.notice().map(str::to_owned) }
}

/// Asks the server on this machine that `provider` names for its models. `None` if it names no such server.
///
/// # Errors
/// The server does not answer; a sentence.
pub async fn list_served(config: &Config, net: &Net, provider: &str) -> Option<Result<Vec<ListedModel>, String>> {
    let provider = providers::by_id(provider).filter(|provider| provider.kind == ProviderRole::Local)?;
    let base_url = at_provider(provider, "", &config.env).ok()?.base_url?;
    let Some(ids) = model::list_served(net, &base_url).await else {
        return Some(Err(format!("{} does not answer at {base_url}", provider.name)));
    };
    let listed = |id: String| ListedModel {
        id: Some(id.clone()),
        wire: Some(provider.wire),
        ..ListedModel::from_facts(format!("{}/{id}", provider.id), None)
    };
    Some(Ok(ids.into_iter().map(listed).collect()))
}

/// Merges the declared facts about a model over those of the catalogue.
fn merge_declared(model: &ModelConfig, catalogue: &ModelCatalogue) -> ListedModel {
    let id = model.model.clone().filter(|_| model.provider == ModelProvider::Openai);
    let place = providers::place_of(model.base_url.as_deref());
    let facts = id.as_deref().and_then(|id| catalogue.lookup(place, id));
    let known = ListedModel::from_facts(model.name.clone(), facts);
    ListedModel {
        id,
        is_configured: true,
        window: model.context_window.or(known.window),
        output: model.max_output_tokens.or(known.output),
        prices: model.prices.clone().or(known.prices),
        sees: model.capabilities.vision.or(known.sees),
        wire: model.wire.or(known.wire),
        ..known
    }
}

impl ListedModel {
    /// Formats the window briefly, as `400k`; `?` if it is unknown.
    pub fn window_in_short(&self) -> String {
        match self.window {
            None => "?".to_owned(),
            Some(count @ 1_000_000..) => format!("{}.{:02}M", count / 1_000_000, count % 1_000_000 / 10_000),
            Some(count @ 1000..) => format!("{}k", count / 1000),
            Some(count) => count.to_string(),
        }
    }

    /// Formats the prices in USD per million tokens in and out, as `~$2/$10`: `~` if only one source states them, `+`
    /// if larger requests cost more; `?` if they are unknown.
    pub fn price_in_short(&self) -> String {
        let Some(prices) = &self.prices else { return "?".to_owned() };
        let about = if prices.about { "~" } else { "" };
        let more = if prices.tiers.is_empty() { "" } else { "+" };
        format!("{about}${}/${}{more}", prices.input, prices.output)
    }

    fn from_facts(name: String, facts: Option<ModelFacts>) -> Self {
        let facts = facts.as_ref();
        Self {
            name,
            id: facts.map(|facts| facts.id.clone()),
            is_configured: false,
            window: facts.map(|facts| facts.window),
            input: facts.and_then(|facts| facts.input),
            output: facts.and_then(|facts| facts.output),
            prices: facts.and_then(|facts| facts.prices.clone()),
            sees: facts.map(|facts| facts.sees),
            levels: facts.and_then(|facts| facts.levels.clone()),
            off: facts.and_then(|facts| facts.off),
            wire: facts.and_then(|facts| facts.wire),
            ends: facts.and_then(|facts| facts.ends),
        }
    }
}
