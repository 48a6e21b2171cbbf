//! Templates that could run away are rendered apart, in a process that can be ended: steps count what the engine does,
//! not how long it takes. A template without loops, slices and the like is rendered here, with steps.
//!
//! This file writes the order, `apart` carries it out: the same engine gives the same text on both sides. What is looked
//! up while a template is rendered (a variable of the environment, an included file) is asked for. The process itself is
//! the business of whoever calls [`render_apart_with`]; without one, everything is rendered here.

use std::sync::{Arc, OnceLock};

use minijinja::value::ValueKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::objects::{Lookup, TemplateClock};
use super::{Syntax, TemplateError, Undefined, Value};

/// Takes an order to the process, with what answers its questions. Returns its result, or why there is none.
pub type ApartRenderer = fn(&str, &mut dyn FnMut(&str) -> String) -> Result<String, String>;

/// Finds the text of an included file.
pub(super) type FileLoader = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

static RENDERER: OnceLock<ApartRenderer> = OnceLock::new();

/// Keys of values that are looked up. No text of a person has a zero byte in it.
pub(super) const CLOCK: &str = "\0clock";
pub(super) const LOOKUP: &str = "\0lookup";

/// Lets this render what could run away, from now on.
#[cfg(target_os = "linux")]
pub fn render_apart_with(renderer: ApartRenderer) {
    RENDERER.get_or_init(|| renderer);
}

/// The form of what is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OrderForm {
    Text,
    Pieces,
    Expression,
}

/// What is rendered, without its values.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RenderSource {
    pub form: OrderForm,
    pub syntax: Syntax,
    pub name: String,
    pub source: String,
    pub lenient: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RenderOrder<S> {
    #[serde(flatten)]
    pub source: S,
    pub context: Json,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OrderQuestionText {
    /// An attribute of a lookup.
    Value(usize, String),
    File(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OrderResult {
    Value(Json),
    Undefined,
    Error(TemplateError),
}

/// The guard of one template: how it is rendered.
pub(super) struct RenderGuard {
    /// `None` if it is rendered here.
    apart: Option<RenderSource>,
    loader: Option<FileLoader>,
}

impl std::fmt::Debug for RenderGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RenderGuard").field(&self.apart).finish()
    }
}

impl RenderGuard {
    /// What is rendered in this process whatever it contains, since the program brings it along.
    pub fn here() -> Self {
        Self { apart: None, loader: None }
    }

    pub fn apart(form: OrderForm, syntax: Syntax, name: &str, source: &str, undefined: Undefined) -> Self {
        let (name, source, lenient) = (name.to_owned(), source.to_owned(), undefined == Undefined::Empty);
        Self { apart: Some(RenderSource { form, syntax, name, source, lenient }), loader: None }
    }

    pub fn with_loader(self, loader: FileLoader) -> Self {
        Self { loader: Some(loader), ..self }
    }

    /// Renders apart where that is due and possible, else `here`; `read` converts what comes back.
    pub fn render<T>(
        &self,
        context: &Value,
        here: impl FnOnce() -> Result<T, TemplateError>,
        read: impl FnOnce(Option<Json>) -> T,
    ) -> Result<T, TemplateError> {
        let (Some(source), Some(renderer)) = (&self.apart, RENDERER.get()) else { return here() };
        let mut lookups = Vec::new();
        let order = RenderOrder { source, context: pack_value(context, &mut lookups) };
        let order = serde_json::to_string(&order).map_err(|error| TemplateError::new(error.to_string()))?;
        let result = renderer(&order, &mut |question| {
            let found = match serde_json::from_str(question) {
                Ok(OrderQuestionText::Value(at, name)) => {
                    let found = lookups.get(at).and_then(|lookup: &Value| lookup.get_attr(&name).ok());
                    found.and_then(|value| value.as_str().map(str::to_owned))
                }
                Ok(OrderQuestionText::File(name)) => self.loader.as_ref().and_then(|loader| loader(&name)),
                Err(_) => None,
            };
            json!(found).to_string()
        });
        let result = result.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        match result.map_err(TemplateError::new)? {
            OrderResult::Value(value) => Ok(read(Some(value))),
            OrderResult::Undefined => Ok(read(None)),
            OrderResult::Error(error) => Err(error),
        }
    }
}

/// A value as data; lookups are numbered and stay here.
pub(super) fn pack_value(value: &Value, lookups: &mut Vec<Value>) -> Json {
    if let Some(clock) = value.downcast_object_ref::<TemplateClock>() {
        let (moment, offset) = (clock.0.timestamp().to_string(), clock.0.offset().seconds());
        return json!({ CLOCK: [clock.0.to_string(), moment, offset] });
    }
    if let Some(lookup) = value.downcast_object_ref::<Lookup>() {
        lookups.push(value.clone());
        return json!({ LOOKUP: [lookups.len() - 1, lookup.names] });
    }
    match value.kind() {
        ValueKind::Map => {
            let keys = value.try_iter().into_iter().flatten();
            let entries = keys.map(|key| (key.clone(), value.get_item(&key).unwrap_or_default()));
            let known = entries.filter(|(_, item)| !item.is_undefined());
            Json::Object(
                known.map(|(key, item)| (key.to_string(), pack_value(&item, lookups))).collect::<Map<_, _>>(),
            )
        }
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().into_iter().flatten().map(|item| pack_value(&item, lookups)).collect()
        }
        _ => serde_json::to_value(value).unwrap_or_else(|_| json!(value.to_string())),
    }
}
