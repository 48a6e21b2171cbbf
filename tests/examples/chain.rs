//! Chat templates in a program of one's own: a chain whose parts name their output for the parts after it, and observers
//! of each template that it fills.
//!
//!     cargo run --example chain
//!     cargo test --example chain

use std::error::Error;
use std::io::{Write, stdout};

use agent::facade::prompt::chat::{ChatError, ChatMessage, ChatTemplate, FillOptions, system, user};
use agent::facade::template::{Syntax, convert_value};
use serde_json::{Map, Value, json};

/// Variables by name.
type Variables = Map<String, Value>;

/// Is told before a template is filled, and how that ended.
trait TemplateObserver {
    fn on_start(&mut self, key: &str, variables: &Variables);
    fn on_end(&mut self, key: &str, messages: &[ChatMessage]);
    fn on_error(&mut self, key: &str, error: &ChatError);
}

/// What a part does with the variables.
enum PartWork {
    /// Fills a template; its messages are the output.
    Messages(ChatTemplate),
    /// Sends the messages in this variable to a model; its answer is the output.
    Model(&'static str, fn(Vec<ChatMessage>) -> Value),
    /// Computes a value of these variables.
    Function(&'static [&'static str], fn(&Variables) -> Value),
}

/// Parts in order, each with the name of its output.
struct Chain(Vec<(&'static str, PartWork)>);

impl Chain {
    /// Checks, before anything runs, that every part finds what it reads: in `given`, or in the output of a part before it.
    fn check(&self, given: &[&str]) -> Result<(), String> {
        let mut known: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
        for (key, work) in &self.0 {
            let reads: Vec<String> = match work {
                PartWork::Messages(template) => template.variables().into_iter().collect(),
                PartWork::Model(messages, _) => vec![(*messages).to_owned()],
                PartWork::Function(names, _) => names.iter().map(|name| (*name).to_owned()).collect(),
            };
            if let Some(name) = reads.iter().find(|name| !known.contains(name)) {
                return Err(format!("the part `{key}` reads `{name}`, which nothing before it gives"));
            }
            if known.iter().any(|name| name == key) {
                return Err(format!("two parts give `{key}`, or it is given already"));
            }
            known.push((*key).to_owned());
        }
        Ok(())
    }

    /// Runs the parts in order, and returns all variables.
    fn run(&self, given: Variables, observer: &mut dyn TemplateObserver) -> Result<Variables, Box<dyn Error>> {
        let mut variables = given;
        for (key, work) in &self.0 {
            let output = match work {
                PartWork::Messages(template) => {
                    observer.on_start(key, &variables);
                    match template.format(&convert_value(&variables), &FillOptions::default()) {
                        Ok(messages) => {
                            observer.on_end(key, &messages);
                            serde_json::to_value(messages)?
                        }
                        Err(error) => {
                            observer.on_error(key, &error);
                            return Err(error.into());
                        }
                    }
                }
                PartWork::Model(messages, ask) => ask(serde_json::from_value(variables[*messages].clone())?),
                PartWork::Function(_, compute) => compute(&variables),
            };
            variables.insert((*key).to_owned(), output);
        }
        Ok(variables)
    }
}

/// Keeps a line for each thing that it is told.
#[derive(Default)]
struct Journal(Vec<String>);

impl TemplateObserver for Journal {
    fn on_start(&mut self, key: &str, variables: &Variables) {
        let names: Vec<&str> = variables.keys().map(String::as_str).collect();
        self.0.push(format!("{key} is filled with {}", names.join(", ")));
    }

    fn on_end(&mut self, key: &str, messages: &[ChatMessage]) {
        self.0.push(format!("{key} has {} messages", messages.len()));
    }

    fn on_error(&mut self, key: &str, error: &ChatError) {
        self.0.push(format!("{key} failed: {error}"));
    }
}

/// Translates a text, and asks whether anything is missing in the translation.
fn translate_and_check() -> Result<Chain, ChatError> {
    let translate = [user("Translate into {{ language }}: {{ text }}")];
    let check = [
        system("You compare a text with its translation."),
        user("{{ text }}\n\n{{ translation }}\n\n{{ words }} words. Is anything missing?"),
    ];
    Ok(Chain(vec![
        ("question", PartWork::Messages(ChatTemplate::from_messages(Syntax::Jinja, translate)?)),
        // Here a model would be asked.
        ("translation", PartWork::Model("question", |_messages| json!("Guten Tag"))),
        ("words", PartWork::Function(&["translation"], count_words)),
        ("check", PartWork::Messages(ChatTemplate::from_messages(Syntax::Jinja, check)?)),
    ]))
}

fn count_words(variables: &Variables) -> Value {
    json!(variables["translation"].as_str().unwrap_or_default().split(' ').count())
}

fn main() -> Result<(), Box<dyn Error>> {
    let chain = translate_and_check()?;
    chain.check(&["language", "text"])?;
    let given =
        Variables::from_iter([("language".to_owned(), json!("German")), ("text".to_owned(), json!("Good day"))]);
    let mut journal = Journal::default();
    let variables = chain.run(given, &mut journal)?;
    Ok(writeln!(stdout(), "{}\n{:#}", journal.0.join("\n"), variables["check"])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    }

    #[test]
    fn each_part_reads_what_the_parts_before_it_gave() {
        let chain = translate_and_check().expect("sound templates");
        let mut journal = Journal::default();
        // A value that looks like a template is data.
        let given = make_variables(&[("language", "German"), ("text", "{{ words }}")]);
        let variables = chain.run(given, &mut journal).expect("all is given");
        let messages: Vec<ChatMessage> = serde_json::from_value(variables["check"].clone()).expect("messages");
        assert_eq!(messages[1], ChatMessage::user("{{ words }}\n\nGuten Tag\n\n2 words. Is anything missing?"));
        assert_eq!(
            journal.0,
            [
                "question is filled with language, text",
                "question has 1 messages",
                "check is filled with language, text, question, translation, words",
                "check has 2 messages",
            ]
        );
    }

    #[test]
    fn a_name_that_nothing_gives_is_found_before_anything_runs() {
        let chain = translate_and_check().expect("sound templates");
        let error = chain.check(&["text"]).expect_err("the language is not given");
        assert_eq!(error, "the part `question` reads `language`, which nothing before it gives");
        let twice = chain.check(&["language", "text", "words"]).expect_err("given twice");
        assert_eq!(twice, "two parts give `words`, or it is given already");
    }

    #[test]
    fn an_observer_hears_of_a_template_that_cannot_be_filled() {
        let chain = translate_and_check().expect("sound templates");
        let mut journal = Journal::default();
        chain.run(make_variables(&[("text", "x")]), &mut journal).expect_err("the language is not given");
        assert!(journal.0[1].starts_with("question failed: nothing defines `language`"), "{:?}", journal.0);
    }
}
