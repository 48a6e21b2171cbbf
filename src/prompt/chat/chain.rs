//! A chain: parts that run one after another, each of which names its output for the parts after it.
//!
//! ```
//! use agent::facade::prompt::chat::{Chain, ChatMessage, ChatTemplate, FillOptions, ChainPart, system, user};
//! use agent::facade::template::Syntax;
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let translate = ChatTemplate::from_messages(Syntax::Jinja, [user("Translate into {{ language }}: {{ text }}")])?;
//! let check = ChatTemplate::from_messages(Syntax::Jinja, [
//!     system("You compare a text with its translation."),
//!     user("{{ text }}\n\n{{ translation }}\n\n{{ words }} words. Is anything missing?"),
//! ])?;
//! let chain = Chain::default()
//!     .then("question", ChainPart::messages(translate))
//!     // Here a model would be asked.
//!     .then("translation", ChainPart::model("question", async |_messages: Vec<ChatMessage>| Ok(json!("Guten Tag"))))
//!     .then("words", ChainPart::function(["translation"], |variables| {
//!         Ok(json!(variables["translation"].as_str().unwrap_or_default().split(' ').count()))
//!     }))
//!     .then("messages", ChainPart::messages(check))
//!     .compile(["language", "text"], FillOptions::default())?;
//! let given = json!({ "language": "German", "text": "Good day" });
//! let outcome = chain.run(given.as_object().cloned().unwrap_or_default()).await?;
//! let messages = outcome.messages()?;
//! assert_eq!(messages[1], ChatMessage::user("Good day\n\nGuten Tag\n\n2 words. Is anything missing?"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Chain::compile`] finds a name that no earlier part gives before anything runs.

use std::fmt;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value as Json};

use crate::template;

use super::chat_template::ChatTemplate;
use super::message::ChatMessage;
use super::options::FillOptions;

/// Variables by name.
type ChainVariables = Map<String, Json>;

/// Parts, each with the name of its output.
#[derive(Debug, Default)]
pub struct Chain {
    parts: Vec<(String, ChainPart)>,
}

/// A part of a chain.
pub struct ChainPart(PartWork);

enum PartWork {
    Messages(ChatTemplate),
    Function(Vec<String>, Box<ChainFunction>),
    Model(String, Box<ChainModel>),
}

type ChainFunction = dyn Fn(&ChainVariables) -> Result<Json, String> + Send + Sync;
type ChainModel = dyn Fn(Vec<ChatMessage>) -> BoxFuture<'static, Result<Json, String>> + Send + Sync;

/// A chain in which every name that a part reads is given before it.
#[derive(Debug)]
pub struct CompiledChain {
    parts: Vec<(String, ChainPart)>,
    options: FillOptions,
}

/// The result of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainOutcome {
    /// The name of the last part's output.
    pub key: String,
    /// The given variables and the output of every part.
    pub variables: ChainVariables,
}

/// The reason that a chain cannot run, or stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    #[error("a chain needs at least one part")]
    Empty,
    #[error("{}", describe_unknown(.0))]
    /// Parts by the name of their output, and the names that they read and nothing before them gives.
    Unknown(Vec<(String, Vec<String>)>),
    #[error("two parts of the chain give `{0}`, or it is given already: name one of them otherwise")]
    Twice(String),
    #[error("the part `{part}` of the chain failed: {why}")]
    Failed { part: String, why: String },
}

impl ChainPart {
    /// Fills a template with the variables. The output is its messages.
    pub fn messages(template: ChatTemplate) -> Self {
        Self(PartWork::Messages(template))
    }

    /// Computes a value of variables; `reads` names them.
    pub fn function<'a>(
        reads: impl IntoIterator<Item = &'a str>,
        compute: impl Fn(&ChainVariables) -> Result<Json, String> + Send + Sync + 'static,
    ) -> Self {
        Self(PartWork::Function(reads.into_iter().map(str::to_owned).collect(), Box::new(compute)))
    }

    /// Passes the messages that an earlier part gave as `messages` to `ask`. The output is its answer.
    pub fn model<F, R>(messages: &str, ask: F) -> Self
    where
        F: Fn(Vec<ChatMessage>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        Self(PartWork::Model(messages.to_owned(), Box::new(move |messages| Box::pin(ask(messages)))))
    }

    /// The names that it needs besides these.
    fn lacks(&self, known: &[&str], options: &FillOptions) -> Vec<String> {
        let unknown = |name: &&String| !known.contains(&name.as_str());
        match &self.0 {
            PartWork::Messages(template) => template.lacks(known, options),
            PartWork::Function(reads, _) => reads.iter().filter(unknown).cloned().collect(),
            PartWork::Model(messages, _) => std::iter::once(messages).filter(unknown).cloned().collect(),
        }
    }

    async fn run(&self, variables: &ChainVariables, options: &FillOptions) -> Result<Json, String> {
        match &self.0 {
            PartWork::Messages(template) => {
                let messages = template.format(&template::convert_value(variables), options);
                let messages = messages.map_err(|error| error.to_string())?;
                serde_json::to_value(messages).map_err(|error| error.to_string())
            }
            PartWork::Function(_, compute) => compute(variables),
            PartWork::Model(key, ask) => ask(read_messages(variables, key)?).await,
        }
    }
}

impl fmt::Debug for ChainPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            PartWork::Messages(template) => f.debug_tuple("Messages").field(template).finish(),
            PartWork::Function(reads, _) => f.debug_tuple("Function").field(reads).finish_non_exhaustive(),
            PartWork::Model(messages, _) => f.debug_tuple("Model").field(messages).finish_non_exhaustive(),
        }
    }
}

impl Chain {
    /// Adds a part, whose output the parts after it read as `output_key`.
    pub fn then(mut self, output_key: impl Into<String>, part: ChainPart) -> Self {
        self.parts.push((output_key.into(), part));
        self
    }

    /// Checks that every part finds what it reads: `given`, a default value, or the output of a part before it.
    ///
    /// # Errors
    /// Names are not given, or a name is given twice, or the chain has no parts.
    pub fn compile<'a>(
        self,
        given: impl IntoIterator<Item = &'a str>,
        options: FillOptions,
    ) -> Result<CompiledChain, ChainError> {
        let mut known: Vec<&str> = given.into_iter().collect();
        let mut unknown = Vec::new();
        for (key, part) in &self.parts {
            let defaults = options.defaults.keys().map(String::as_str);
            let all: Vec<&str> = known.iter().copied().chain(defaults).collect();
            let lacks = part.lacks(&all, &options);
            if !lacks.is_empty() {
                unknown.push((key.clone(), lacks));
            }
            if known.contains(&key.as_str()) {
                return Err(ChainError::Twice(key.clone()));
            }
            known.push(key);
        }
        if !unknown.is_empty() {
            return Err(ChainError::Unknown(unknown));
        }
        if self.parts.is_empty() {
            Err(ChainError::Empty)
        } else {
            Ok(CompiledChain { parts: self.parts, options })
        }
    }
}

impl CompiledChain {
    /// Runs the parts in order.
    ///
    /// # Errors
    /// A part failed.
    pub async fn run(&self, given: ChainVariables) -> Result<ChainOutcome, ChainError> {
        let (mut key, mut variables) = (String::new(), given);
        for (name, default) in &self.options.defaults {
            variables.entry(name).or_insert_with(|| default.clone());
        }
        for (output_key, part) in &self.parts {
            let output = part.run(&variables, &self.options).await;
            let output = output.map_err(|why| ChainError::Failed { part: output_key.clone(), why })?;
            variables.insert(output_key.clone(), output);
            key.clone_from(output_key);
        }
        Ok(ChainOutcome { key, variables })
    }
}

impl ChainOutcome {
    /// The output of the last part.
    pub fn value(&self) -> &Json {
        self.variables.get(&self.key).unwrap_or(&Json::Null)
    }

    /// The output of the last part, if it is messages.
    ///
    /// # Errors
    /// It is not.
    pub fn messages(&self) -> Result<Vec<ChatMessage>, ChainError> {
        read_messages(&self.variables, &self.key).map_err(|why| ChainError::Failed { part: self.key.clone(), why })
    }
}

/// The messages in a variable.
fn read_messages(variables: &ChainVariables, key: &str) -> Result<Vec<ChatMessage>, String> {
    let value = variables.get(key).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| format!("`{key}` contains no messages: {error}"))
}

fn describe_unknown(parts: &[(String, Vec<String>)]) -> String {
    let tell = |(part, names): &(String, Vec<String>)| {
        let names = names.join("`, `");
        format!("the part `{part}` of the chain reads `{names}`, which nothing before it gives")
    };
    parts.iter().map(tell).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::entry::{placeholder, system, user};
    use super::*;
    use crate::template::Syntax;

    fn template(text: &str) -> ChatTemplate {
        ChatTemplate::from_messages(Syntax::Jinja, [system("s"), user(text)]).expect("sound")
    }

    #[test]
    fn a_name_that_no_earlier_part_gives_is_found_before_running() {
        let history = ChatTemplate::from_messages(Syntax::Jinja, [placeholder("history", false)]).expect("sound");
        let chain = Chain::default()
            .then("first", ChainPart::messages(template("{{ given.name }} {{ later }} {{ or | default('') }}")))
            .then("second", ChainPart::model("firs", async |_| Ok(Json::Null)))
            .then("later", ChainPart::function(["first", "third"], |_| Ok(Json::Null)))
            .then("last", ChainPart::messages(template("{{ later }}{{ tone }}")))
            .then("end", ChainPart::messages(history));
        let defaults = json!({"tone": "plain"}).as_object().cloned().expect("a map");
        let error = chain.compile(["given"], FillOptions::with_defaults(defaults)).expect_err("four are unknown");
        let ChainError::Unknown(parts) = &error else { panic!("{error}") };
        let told = |part: &str, name: &str| (part.to_owned(), vec![name.to_owned()]);
        let expected =
            [told("first", "later"), told("second", "firs"), told("later", "third"), told("end", "history")];
        assert_eq!(*parts, expected);
        assert!(
            error.to_string().starts_with("the part `first` of the chain reads `later`, which nothing"),
            "{error}"
        );
    }

    #[test]
    fn names_are_given_once_and_a_chain_has_parts() {
        let part = || ChainPart::function([], |_| Ok(Json::Null));
        let twice = Chain::default().then("a", part()).then("a", part()).compile([], FillOptions::default());
        assert_eq!(twice.expect_err("twice"), ChainError::Twice("a".to_owned()));
        let given = Chain::default().then("a", part()).compile(["a"], FillOptions::default());
        assert_eq!(given.expect_err("given"), ChainError::Twice("a".to_owned()));
        assert_eq!(Chain::default().compile([], FillOptions::default()).expect_err("empty"), ChainError::Empty);
    }

    #[tokio::test]
    async fn the_first_part_that_fails_ends_the_chain() {
        let chain = Chain::default()
            .then("messages", ChainPart::messages(template("{{ topic }}")))
            .then(
                "answer",
                ChainPart::model("messages", async |messages: Vec<ChatMessage>| {
                    match messages[1].text().as_str() {
                        "{{ x }}" => Ok(json!("{{ y }}")),
                        _ => Err("the model is not reachable".to_owned()),
                    }
                }),
            )
            .then("end", ChainPart::messages(template("{{ answer }}")))
            .compile(["topic"], FillOptions::default())
            .expect("all is given");
        let run = |topic: &str| chain.run(json!({ "topic": topic }).as_object().cloned().expect("a map"));
        let outcome = run("{{ x }}").await.expect("it runs");
        assert_eq!(outcome.messages().expect("messages")[1], ChatMessage::user("{{ y }}"), "values are data");
        assert_eq!((outcome.key.as_str(), &outcome.variables["answer"]), ("end", &json!("{{ y }}")));
        let error = run("other").await.expect_err("the model fails");
        assert_eq!(error.to_string(), "the part `answer` of the chain failed: the model is not reachable");
    }
}
