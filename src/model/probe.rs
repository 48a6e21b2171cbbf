//! Asks a server on this machine or in a private network which program it is, and which window the model has there.
//! The questions are sent when a second request is to be expected and nothing declares the window; never to a public
//! host.
//!
//! No question loads a model. Each is listed with the function that reads its answer, the most reliable program first;
//! answers about the same program are merged, and the first value wins.

use std::ops::Range;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Url};
use serde_json::{Value, json};

use crate::safety::net::{self, Net};

/// The facts that a server stated about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// The program: `Ollama`.
    pub server: &'static str,
    /// The tokens that the model takes as it runs there; `None` if it is not loaded or no answer says so.
    pub window: Option<u64>,
    /// The tokens that it could take, if a request may ask for them.
    pub largest: Option<u64>,
    /// True if a person has set the window, in the model's own file.
    pub is_set: bool,
    /// True if the model sees pictures; `None` if no answer says so.
    pub vision: Option<bool>,
}

/// The most time for all answers together.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest answer that is read; some contain chat templates.
const LONGEST: usize = 4 * 1024 * 1024;
/// The window that Ollama gives a model if nothing else is set and the machine is small.
const OLLAMA_DEFAULT: u64 = 4096;
/// The window that is asked for where nobody has set one: the default has no room for work, and the largest may not fit
/// the memory.
const USUAL_WINDOW: u64 = 32_768;

/// A question to a server, and the function that reads its answer.
struct ProbeQuestion {
    at: ProbePlace,
    path: &'static str,
    read: fn(&ProbeAnswer, &str) -> Option<Probed>,
}

enum ProbePlace {
    /// Below the root of the server.
    Root,
    /// Below `base_url`.
    Base,
    /// Below the root, by `POST` with the name of the model.
    RootByPost,
}

/// An answer with a status of success.
struct ProbeAnswer {
    body: Value,
    /// True if LiteLLM names itself in a header.
    is_litellm: bool,
}

const QUESTIONS: [ProbeQuestion; 7] = [
    // A router of several models is asked about this one without making it load the model.
    ProbeQuestion { at: ProbePlace::Root, path: "/props?autoload=false&model=", read: llama_cpp },
    ProbeQuestion { at: ProbePlace::Root, path: "/api/ps", read: ollama_running },
    ProbeQuestion { at: ProbePlace::RootByPost, path: "/api/show", read: ollama_model },
    ProbeQuestion { at: ProbePlace::Root, path: "/api/v1/models", read: lm_studio },
    ProbeQuestion { at: ProbePlace::Root, path: "/api/v0/models", read: lm_studio_before },
    ProbeQuestion { at: ProbePlace::Root, path: "/model/info", read: read_litellm },
    ProbeQuestion { at: ProbePlace::Base, path: "/models", read: list_of_models },
];

/// The servers that are asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ProbeScope {
    All,
    Ollama,
}

/// The questions to Ollama among them.
const OLLAMA_QUESTIONS: Range<usize> = 1..3;

impl Probed {
    /// What a server of this name is known to have, before anything else is known.
    fn of(server: &'static str) -> Self {
        Self { server, window: None, largest: None, is_set: false, vision: None }
    }

    /// The window to ask for.
    pub fn choose_window(&self) -> Option<u64> {
        let window = self.window.filter(|_| self.is_set).or_else(|| {
            let usual = self.window?.max(USUAL_WINDOW);
            Some(self.largest.map_or(usual, |largest| usual.min(largest)))
        });
        window.or(self.largest.map(|largest| largest.min(USUAL_WINDOW)))
    }
}

/// Asks the server of `base_url` which program it is and what window `model` has, all questions at once. `headers` are
/// those of a request, including the key. Takes two seconds at most.
pub async fn probe_server(
    net: &Net,
    base_url: &Url,
    headers: &HeaderMap,
    model: &str,
    scope: ProbeScope,
) -> Option<Probed> {
    let questions = if scope == ProbeScope::Ollama { &QUESTIONS[OLLAMA_QUESTIONS] } else { &QUESTIONS };
    if !net::is_private(base_url) {
        return None;
    }
    let client = net.client(base_url, PATIENCE).ok()?;
    let mut headers = headers.clone();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let asked = questions.iter().map(async |question| {
        let url = question.url(base_url, model)?;
        let request = match question.at {
            ProbePlace::RootByPost => client.post(url).body(json!({ "model": model }).to_string()),
            ProbePlace::Root | ProbePlace::Base => client.get(url),
        };
        read_answer(request.headers(headers.clone())).await
    });
    let answers = join_all(asked).await;
    let said =
        questions.iter().zip(&answers).filter_map(|(question, answer)| (question.read)(answer.as_ref()?, model));
    merge_answers(said)
}

impl ProbeQuestion {
    fn url(&self, base_url: &Url, model: &str) -> Option<Url> {
        let base = base_url.as_str().trim_end_matches('/');
        let root = base.strip_suffix("/v1").unwrap_or(base);
        let is_bare = base_url.path().trim_matches('/').is_empty();
        let before = match self.at {
            // The requests of one wire are below a version even if the address has none.
            ProbePlace::Base if is_bare => &format!("{root}/v1"),
            ProbePlace::Base => base,
            ProbePlace::Root | ProbePlace::RootByPost => root,
        };
        let mut url = Url::parse(&format!("{before}{}", self.path)).ok()?;
        if self.path.ends_with('=') {
            url.query_pairs_mut().clear().append_pair("autoload", "false").append_pair("model", model);
        }
        Some(url)
    }
}

async fn read_answer(request: RequestBuilder) -> Option<ProbeAnswer> {
    let mut response = request.timeout(PATIENCE).send().await.ok()?.error_for_status().ok()?;
    let is_litellm = response.headers().contains_key("x-litellm-version");
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.ok()? {
        body.extend_from_slice(&piece);
        if body.len() > LONGEST {
            return None;
        }
    }
    Some(ProbeAnswer { body: serde_json::from_slice(&body).ok()?, is_litellm })
}

/// Merges the answers about the program that the first one names.
fn merge_answers(said: impl Iterator<Item = Probed>) -> Option<Probed> {
    said.reduce(|first, next| {
        if first.server != next.server {
            return first;
        }
        Probed {
            window: first.window.or(next.window),
            largest: first.largest.or(next.largest),
            is_set: first.is_set || next.is_set,
            vision: first.vision.or(next.vision),
            ..first
        }
    })
}

fn llama_cpp(answer: &ProbeAnswer, _model: &str) -> Option<Probed> {
    let settings = answer.body.get("default_generation_settings")?;
    let vision = answer.body.pointer("/modalities/vision").and_then(Value::as_bool);
    Some(Probed { window: read_tokens(settings.get("n_ctx")), vision, ..Probed::of("llama.cpp") })
}

/// The models that are loaded, with the window of each.
fn ollama_running(answer: &ProbeAnswer, model: &str) -> Option<Probed> {
    let models = answer.body.get("models")?.as_array()?;
    let running = models.iter().find(|running| is_named(running, &["name", "model"], model));
    let window = read_tokens(running.and_then(|it| it.get("context_length")));
    Some(Probed { window, ..Probed::of("Ollama") })
}

fn ollama_model(answer: &ProbeAnswer, _model: &str) -> Option<Probed> {
    let info = answer.body.get("model_info")?.as_object()?;
    let set = answer.body.get("parameters").and_then(Value::as_str).and_then(|lines| {
        let mut lines = lines.lines().filter_map(|line| line.trim().strip_prefix("num_ctx"));
        lines.next()?.trim().parse().ok()
    });
    let trained = info.iter().find(|(key, _)| key.ends_with(".context_length")).map(|(_, value)| value);
    let trained = read_tokens(trained);
    let can = answer.body.get("capabilities").and_then(Value::as_array);
    Some(Probed {
        window: set.or_else(|| trained.map(|trained| trained.min(OLLAMA_DEFAULT))),
        largest: trained,
        is_set: set.is_some(),
        vision: can.map(|can| can.iter().any(|can| can == "vision")),
        ..Probed::of("Ollama")
    })
}

fn lm_studio(answer: &ProbeAnswer, model: &str) -> Option<Probed> {
    let models = answer.body.get("models")?.as_array()?;
    // Another program may have a list of this name.
    models.iter().find(|known| known.get("loaded_instances").is_some())?;
    let instances =
        |known: &Value| known.get("loaded_instances").and_then(Value::as_array).cloned().unwrap_or_default();
    let known = models.iter().find(|known| {
        is_named(known, &["key"], model) || instances(known).iter().any(|loaded| is_named(loaded, &["id"], model))
    });
    let window = known.and_then(|known| {
        let loaded = instances(known);
        let named = loaded.iter().find(|loaded| is_named(loaded, &["id"], model)).or(loaded.first());
        read_tokens(named?.pointer("/config/context_length"))
    });
    let vision = known.and_then(|known| known.pointer("/capabilities/vision")?.as_bool());
    Some(Probed { window, vision, ..Probed::of("LM Studio") })
}

/// The list of LM Studio before 0.4.
fn lm_studio_before(answer: &ProbeAnswer, model: &str) -> Option<Probed> {
    let models = answer.body.get("data")?.as_array()?;
    models.iter().find(|known| known.get("max_context_length").is_some() && known.get("state").is_some())?;
    let known = models.iter().find(|known| is_named(known, &["id"], model));
    Some(Probed {
        window: read_tokens(known.and_then(|known| known.get("loaded_context_length"))),
        vision: known.and_then(|known| Some(known.get("type")?.as_str()? == "vlm")),
        ..Probed::of("LM Studio")
    })
}

fn read_litellm(answer: &ProbeAnswer, model: &str) -> Option<Probed> {
    let models = answer.body.get("data")?.as_array()?;
    models.iter().find(|known| known.get("model_info").is_some())?;
    let known = models.iter().find(|known| is_named(known, &["model_name"], model));
    let info = known.and_then(|known| known.get("model_info"));
    Some(Probed {
        window: read_tokens(info.and_then(|info| info.get("max_input_tokens"))),
        vision: info.and_then(|info| info.get("supports_vision")?.as_bool()),
        ..Probed::of("LiteLLM")
    })
}

/// The list that every server has; vLLM and SGLang state the window in it.
fn list_of_models(answer: &ProbeAnswer, model: &str) -> Option<Probed> {
    if answer.is_litellm {
        return Some(Probed::of("LiteLLM"));
    }
    let models = answer.body.get("data")?.as_array()?;
    let known = models.iter().find(|known| is_named(known, &["id"], model));
    let known = known.or_else(|| models.first().filter(|_| models.len() == 1))?;
    let window = read_tokens(known.get("max_model_len"))?;
    let server = match known.get("owned_by").and_then(Value::as_str) {
        Some("sglang") => "SGLang",
        _ => "vLLM",
    };
    Some(Probed { window: Some(window), ..Probed::of(server) })
}

fn is_named(known: &Value, keys: &[&str], model: &str) -> bool {
    let is = |name: &str| name == model || name.strip_suffix(":latest") == Some(model);
    keys.iter().filter_map(|key| known.get(*key)?.as_str()).any(is)
}

/// A number of tokens; servers that do not know it say 0.
fn read_tokens(value: Option<&Value>) -> Option<u64> {
    value?.as_u64().filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The facts stated by these answers, each to the question of its path.
    fn said(answers: &[(&str, &str)], model: &str) -> Option<Probed> {
        let said = QUESTIONS.iter().filter_map(|question| {
            let (_, body) = answers.iter().find(|(path, _)| question.path.starts_with(path))?;
            let answer =
                ProbeAnswer { body: serde_json::from_str(body).ok()?, is_litellm: body.contains("litellm") };
            (question.read)(&answer, model)
        });
        merge_answers(said)
    }

    const PROPS: &str = r#"{"default_generation_settings":{"id":0,"n_ctx":8192},"total_slots":2,"modalities":{"vision":true,"audio":false},"chat_template":"…"}"#;
    const PS: &str = r#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b","context_length":32768,"size_vram":1}]}"#;
    const SHOW: &str = r#"{"parameters":"temperature 0.6\nnum_ctx                        16384","model_info":{"general.architecture":"qwen3","qwen3.context_length":40960},"capabilities":["completion","tools"]}"#;
    const SHOW_PLAIN: &str =
        r#"{"model_info":{"gemma3.context_length":131072},"capabilities":["completion","vision"]}"#;
    const STUDIO: &str = r#"{"models":[{"key":"qwen/qwen3-8b","max_context_length":40960,"loaded_instances":[{"id":"qwen/qwen3-8b:2","config":{"context_length":8192}},{"id":"mine","config":{"context_length":12000}}],"capabilities":{"vision":false}},{"key":"other","max_context_length":9,"loaded_instances":[]}]}"#;
    const STUDIO_BEFORE: &str = r#"{"object":"list","data":[{"id":"gemma","type":"vlm","state":"loaded","max_context_length":131072,"loaded_context_length":4096},{"id":"cold","type":"llm","state":"not-loaded","max_context_length":8192}]}"#;
    const VLLM: &str =
        r#"{"object":"list","data":[{"id":"Qwen/Qwen3-8B","owned_by":"vllm","max_model_len":40960}]}"#;
    const SGLANG: &str = r#"{"object":"list","data":[{"id":"m","owned_by":"sglang","max_model_len":2048},{"id":"n","owned_by":"sglang","max_model_len":1024}]}"#;
    const LITELLM: &str = r#"{"object":"list","data":[{"id":"m"}],"note":"litellm"}"#;
    const INFO: &str = r#"{"data":[{"model_name":"m","litellm_params":{},"model_info":{"max_input_tokens":128000,"supports_vision":null}}]}"#;
    /// The answer of LM Studio to any path that it does not have.
    const ANYWAY: &str = r#"{"error":"Unexpected endpoint or method. Returning 200 anyway"}"#;

    #[test]
    fn every_server_tells_the_window_in_its_own_way() {
        for (answers, model, expected) in [
            (
                &[("/props", PROPS), ("/api/show", SHOW_PLAIN)][..],
                "any",
                Some(("llama.cpp", Some(8192), Some(true))),
            ),
            (&[("/api/ps", PS), ("/api/show", SHOW)], "qwen3:8b", Some(("Ollama", Some(32768), Some(false)))),
            (&[("/api/ps", PS), ("/api/show", SHOW)], "other", Some(("Ollama", Some(16384), Some(false)))),
            (&[("/api/ps", PS), ("/api/show", SHOW_PLAIN)], "gemma3", Some(("Ollama", Some(4096), Some(true)))),
            (&[("/api/ps", r#"{"models":[]}"#)], "gemma3", Some(("Ollama", None, None))),
            (
                &[
                    ("/props", ANYWAY),
                    ("/api/ps", ANYWAY),
                    ("/api/v1/models", STUDIO),
                    ("/api/v0/models", STUDIO_BEFORE),
                ],
                "qwen/qwen3-8b",
                Some(("LM Studio", Some(8192), Some(false))),
            ),
            (&[("/api/v1/models", STUDIO)], "mine", Some(("LM Studio", Some(12000), Some(false)))),
            (&[("/api/v1/models", STUDIO)], "other", Some(("LM Studio", None, None))),
            (&[("/api/v0/models", STUDIO_BEFORE)], "gemma", Some(("LM Studio", Some(4096), Some(true)))),
            (&[("/api/v0/models", STUDIO_BEFORE)], "cold", Some(("LM Studio", None, Some(false)))),
            (&[("/models", VLLM)], "an alias", Some(("vLLM", Some(40960), None))),
            (&[("/models", SGLANG)], "n", Some(("SGLang", Some(1024), None))),
            (&[("/models", SGLANG)], "an alias", None),
            (&[("/models", LITELLM), ("/model/info", INFO)], "m", Some(("LiteLLM", Some(128_000), None))),
            (&[("/models", LITELLM)], "m", Some(("LiteLLM", None, None))),
            (&[("/models", r#"{"object":"list","data":[{"id":"m"}]}"#)], "m", None),
            (&[("/props", "[]"), ("/api/ps", "null"), ("/models", "7")], "m", None),
            (&[], "m", None),
        ] {
            let got = said(answers, model).map(|probed| (probed.server, probed.window, probed.vision));
            assert_eq!(got, expected, "{model} of {answers:?}");
        }
    }

    #[test]
    fn the_window_that_ollama_is_asked_for() {
        for (answers, window) in [
            // Loaded with enough, set in the model's file, neither, small by training, nothing known.
            (&[("/api/ps", PS.replace("32768", "65536")), ("/api/show", SHOW_PLAIN.to_owned())][..], Some(65_536)),
            (&[("/api/show", SHOW.to_owned())], Some(16_384)),
            (&[("/api/show", SHOW_PLAIN.to_owned())], Some(32_768)),
            (&[("/api/show", SHOW_PLAIN.replace("131072", "8192"))], Some(8192)),
            (&[("/api/ps", r#"{"models":[]}"#.to_owned())], None),
        ] {
            let answers: Vec<(&str, &str)> = answers.iter().map(|(path, body)| (*path, &**body)).collect();
            let probed = said(&answers, "qwen3:8b").expect("it is Ollama");
            assert_eq!(probed.choose_window(), window, "{answers:?}");
        }
        assert!(QUESTIONS[OLLAMA_QUESTIONS].iter().all(|question| question.path.starts_with("/api/")));
    }

    #[test]
    fn questions_go_to_the_root_of_the_server_and_name_the_model() {
        let base = Url::parse("http://127.0.0.1:8080/below/v1/").expect("an address");
        let urls = QUESTIONS.map(|question| question.url(&base, "a/b c").expect("an address").to_string());
        assert_eq!(urls[0], "http://127.0.0.1:8080/below/props?autoload=false&model=a%2Fb+c");
        assert_eq!(urls[1], "http://127.0.0.1:8080/below/api/ps");
        assert_eq!(urls[6], "http://127.0.0.1:8080/below/v1/models");
        for (base, list) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/models"),
            ("http://127.0.0.1:8080/api", "http://127.0.0.1:8080/api/models"),
        ] {
            let url = QUESTIONS[6].url(&Url::parse(base).expect("an address"), "m").expect("an address");
            assert_eq!(url.as_str(), list);
        }
    }
}
