//! Facts about well-known models: windows, prices, pictures, levels of effort. A model file overrides them.
//!
//! `generate.py` makes `models.txt` from two published packages (`NOTICE.md`), and `agent model update` may put another
//! one into the data directory, which can state facts, but not how or where a model is reached. Nothing is read until
//! it is needed, and then one section at most.
//!
//! An id is matched as it is, else without the date at its end. If a place has no such id, the part after the last
//! slash is looked up at the makers of models. A common prefix is not a match: gpt-5.6 is not gpt-5. Unknown facts
//! stay unknown.

mod row;
mod table;
pub mod providers;
mod models_dev;
mod profile;
pub mod update;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::{Zoned, civil::Date};

use super::dialect::name_of_maker;
use crate::files::regular::{self, Links};
use providers::{PROVIDERS, Provider, ProviderRole};
use row::without_date;
use table::{CatalogueText, FILE, MOST_BYTES, open_embedded};

pub use profile::choose_profile;
pub use row::{ModelFacts, Off};

/// The catalogue that comes with the program, with the user's own over it.
#[derive(Debug, Default)]
pub struct ModelCatalogue {
    path: Option<PathBuf>,
    user: OnceLock<UserCatalogue>,
}

/// The outcome of reading the user's catalogue.
#[derive(Debug, Default)]
struct UserCatalogue {
    text: Option<String>,
    notice: Option<String>,
}

impl ModelCatalogue {
    /// The catalogue for a user with this data directory. Reads nothing yet.
    pub fn of_user(data_dir: &Path) -> Self {
        Self { path: Some(data_dir.join(FILE)), user: OnceLock::new() }
    }

    /// The facts about a model at a place, which is the id of a provider or a host.
    pub fn lookup(&self, place: &str, id: &str) -> Option<ModelFacts> {
        let provider = providers::by_id(place).or_else(|| providers::by_host(place));
        let here = provider.and_then(|provider| {
            let facts = self.find(provider, id)?;
            Some(ModelFacts { wire: Some(provider.wire), ..facts })
        });
        here.or_else(|| self.at_makers(provider, id))
    }

    /// The facts of the maker's own service, for another place that serves the model.
    fn at_makers(&self, provider: Option<&Provider>, id: &str) -> Option<ModelFacts> {
        if provider.is_some_and(|provider| provider.kind == ProviderRole::Maker) {
            return None;
        }
        let name = &plain_name(id);
        // Most private servers have models that no catalogue knows.
        let is_known =
            |id: &str| open_embedded().mentions(id) || self.user().is_some_and(|table| table.mentions(id));
        if !is_known(name) && !without_date(name).is_some_and(is_known) {
            return None;
        }
        let makers = PROVIDERS.iter().filter(|provider| provider.kind == ProviderRole::Maker);
        makers.into_iter().find_map(|maker| self.find(maker, name)).map(ModelFacts::elsewhere)
    }

    /// The facts about an id, else about the id without its date.
    fn find(&self, provider: &Provider, id: &str) -> Option<ModelFacts> {
        self.exact(provider, id).or_else(|| self.exact(provider, without_date(id)?))
    }

    /// The facts about an id: the user's numbers override those that came with the program.
    fn exact(&self, provider: &Provider, id: &str) -> Option<ModelFacts> {
        let own = open_embedded().find(provider.id, id);
        match self.user().and_then(|table| table.find(provider.id, id)) {
            Some(user) => Some(merge_facts(own, user)),
            None => own,
        }
    }

    /// All rows, with their providers.
    pub fn rows(&self) -> Vec<(&'static Provider, ModelFacts)> {
        let mut rows = Vec::new();
        for provider in PROVIDERS {
            let mut of_user: Vec<ModelFacts> =
                self.user().map(|table| table.rows(provider.id).collect()).unwrap_or_default();
            for own in open_embedded().rows(provider.id) {
                let at = of_user.iter().position(|user| user.id.eq_ignore_ascii_case(&own.id));
                let facts = match at {
                    Some(at) => merge_facts(Some(own), of_user.swap_remove(at)),
                    None => own,
                };
                rows.push((provider, facts));
            }
            rows.extend(of_user.into_iter().map(|facts| (provider, facts)));
        }
        for (provider, facts) in &mut rows {
            facts.wire = Some(provider.wire);
        }
        rows.sort_by(|(a, x), (b, y)| (a.id, &x.id).cmp(&(b.id, &y.id)));
        rows
    }

    /// The date and the origin of the facts.
    pub fn source(&self) -> (Date, String) {
        let table = match self.user() {
            Some(user) => user,
            None => open_embedded(),
        };
        (table.date, table.origin.to_owned())
    }

    /// A sentence that says that the user's own catalogue is not used, if anything was looked up.
    pub fn notice(&self) -> Option<&str> {
        self.user.get()?.notice.as_deref()
    }

    fn user(&self) -> Option<CatalogueText<'_>> {
        self.read().text.as_deref().and_then(|text| CatalogueText::open(text).ok())
    }

    fn read(&self) -> &UserCatalogue {
        self.user.get_or_init(|| self.path.as_deref().map(read_catalogue).unwrap_or_default())
    }
}

/// The maker's name for a model in an id of a router or a cloud: `eu.anthropic.claude-opus-4-8-20260901-v1:0` and
/// `claude-opus-4-8@20260901` end in what only the clouds write.
fn plain_name(id: &str) -> String {
    let name = name_of_maker(id);
    let versioned = name.rsplit_once("-v").filter(|_| id.contains("anthropic."));
    let is_version = |end: &str| end.chars().all(|c| c.is_ascii_digit() || c == ':');
    versioned.filter(|(_, end)| is_version(end)).map_or(name, |(name, _)| name).replace('@', "-")
}

/// The model of a provider for a person who has named none: the newest of its small ones that has not ended.
pub fn choose_small(provider: &Provider) -> Option<&'static str> {
    choose_small_on(provider, Zoned::now().date())
}

fn choose_small_on(provider: &Provider, today: Date) -> Option<&'static str> {
    let has_ended = |id: &str| {
        let ends = open_embedded().find(provider.id, id).and_then(|facts| facts.ends);
        ends.is_some_and(|day| day <= today)
    };
    let mut small = provider.small.iter().copied();
    small.find(|id| !has_ended(id)).or_else(|| provider.small.first().copied())
}

/// Reads the user's catalogue.
fn read_catalogue(path: &Path) -> UserCatalogue {
    let ignored = |why: &str| {
        let path = path.display();
        let notice = format!("{path} {why}: it is not used. `agent model update` writes another, or remove it");
        UserCatalogue { text: None, notice: Some(notice) }
    };
    let bytes = match regular::read_bytes(path, Links::Follow, MOST_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return UserCatalogue::default(),
        Err(why) => return ignored(&why),
    };
    let Ok(text) = String::from_utf8(bytes) else { return ignored("is not UTF-8") };
    let opened = CatalogueText::open(&text).map_err(|why| format!("is not a catalogue: {why}"));
    match opened.and_then(|table| table.check_age()) {
        Ok(()) => UserCatalogue { text: Some(text), notice: None },
        Err(why) => ignored(&why),
    }
}

/// Merges a row of the user into one of the program: windows and prices replace, the rest only fills gaps.
fn merge_facts(own: Option<ModelFacts>, user: ModelFacts) -> ModelFacts {
    match own {
        None => user,
        Some(own) => ModelFacts {
            window: user.window,
            input: user.input,
            output: user.output.or(own.output).filter(|output| *output <= user.window),
            prices: user.prices.or(own.prices),
            ends: user.ends.or(own.ends),
            ..own
        },
    }
}

#[cfg(test)]
mod tests;
