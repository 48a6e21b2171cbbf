//! Chooses the model of a run: a configured one, one of a known provider, or another one of the agent's own server.

use crate::base::secrets::Secret;
use crate::config::{AgentConfig, ApiKey, Config, Env, KeySource, ModelConfig, ModelProvider, Wire};
use crate::model::catalogue::choose_small;
use crate::model::catalogue::providers::{self, Provider as Known, ProviderRole};
use crate::model::is_configured;

use super::{RunOptions, SetupError};

/// The name of the model of agents that name none.
const DEFAULT_MODEL: &str = "default";

/// Resolves `--model`: a configured model, else `provider/id` of a known provider, else the id of another model at the
/// server of the agent's own model.
pub(super) fn chosen_model(
    config: &Config,
    agent: &AgentConfig,
    options: &RunOptions,
) -> Result<ModelConfig, SetupError> {
    let own = || config.model(agent.model_name()).map_err(SetupError::configuration);
    let mut model = match &options.model {
        None => take_by_key(own()?, &config.env).unwrap_or_else(|| Ok(own()?.clone()))?,
        Some(name) => match (config.models.get(name), providers::split_name(name)) {
            (Some(configured), _) => configured.clone(),
            (None, Some((provider, id))) => at_provider(provider, id, &config.env)?,
            (None, None) => at_cloud(name, &config.env).unwrap_or_else(|| with_id(own()?, name))?,
        },
    };
    model.reasoning_effort = options.effort.clone().or(model.reasoning_effort);
    Ok(model)
}

/// The model for a person who has configured none: the newest small one of the first provider whose key is set.
fn take_by_key(own: &ModelConfig, env: &Env) -> Option<Result<ModelConfig, SetupError>> {
    let is_asked_for = own.name != DEFAULT_MODEL || env.get("AGENT_MODEL").is_some() || is_configured(own);
    let has_key = |provider: &&Known| provider.keys.iter().any(|variable| env.get(variable).is_some());
    let mut known = providers::PROVIDERS.iter().filter(|_| !is_asked_for).filter(has_key);
    known.find_map(|provider| Some(at_provider(provider, choose_small(provider)?, env)))
}

/// The variable whose key chose the model, where nobody named one.
pub fn find_choosing_key(config: &Config, options: &RunOptions) -> Option<&'static str> {
    let agent = config.agent(options.agent.as_deref()).ok().filter(|_| options.model.is_none())?;
    let chosen = take_by_key(config.model(agent.model_name()).ok()?, &config.env)?.ok()?;
    let (provider, _) = providers::split_name(&chosen.name)?;
    provider.keys.iter().copied().find(|variable| config.env.get(variable).is_some())
}

/// Makes the configuration of a model at a known provider, with the provider's address and key.
pub(super) fn at_provider(provider: &Known, id: &str, env: &Env) -> Result<ModelConfig, SetupError> {
    let key = provider.keys.iter().find_map(|variable| env.get(variable));
    if key.is_none() && !provider.keys.is_empty() {
        let (name, variables) = (provider.name, provider.keys.join(" or "));
        let message = format!(
            "{name} needs a key: set {variables} (or keep it: agent key set {}), or name another model with -m",
            provider.id
        );
        return Err(SetupError::authentication(message));
    }
    let address = provider.address.and_then(|variable| env.get(variable));
    let address = address.map(str::trim).filter(|address| !address.is_empty());
    let base_url = match address {
        Some(address) if provider.kind == ProviderRole::Local => at_address(address, provider.base_url),
        Some(address) => address.to_owned(),
        None => provider.base_url.to_owned(),
    };
    let mut model = ModelConfig::of_server(format!("{}/{id}", provider.id), base_url, id.to_owned());
    // The host of a gateway does not tell the protocol. One of OpenAI's may speak either of its two.
    model.wire = address.filter(|_| provider.wire != Wire::Responses).map(|_| provider.wire);
    model.api_key = key.map(|key| ApiKey::Given(Secret::new(key.trim().to_owned())));
    Ok(model)
}

/// Makes the configuration of a Claude model at Amazon (`bedrock/ID`) or Google (`vertex/ID`), with the region, project and
/// credentials that the clouds' own programs use. `None` if the name is of neither.
fn at_cloud(name: &str, env: &Env) -> Option<Result<ModelConfig, SetupError>> {
    let (cloud, id) = name.split_once('/').filter(|(_, id)| !id.is_empty())?;
    let find =
        |names: &[&str]| names.iter().find_map(|name| env.get(name)).map(str::trim).filter(|it| !it.is_empty());
    let missing = |what: &str, variable: &str| {
        SetupError::authentication(format!("{name} needs {what}: set {variable}, or write a file of the model"))
    };
    // What stands in a host's name must not end it.
    let is_word = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-:.".contains(&byte));
    let made = match cloud {
        "bedrock" => find(&["AWS_REGION", "AWS_DEFAULT_REGION"])
            .filter(|region| is_word(region))
            .ok_or_else(|| missing("a region", "AWS_REGION"))
            .map(|region| {
                let given =
                    find(&["AWS_BEARER_TOKEN_BEDROCK"]).map(|key| ApiKey::Given(Secret::new(key.to_owned())));
                let signed = KeySource { aws: Some("default".to_owned()), ..KeySource::default() };
                let url = format!("https://bedrock-runtime.{region}.amazonaws.com");
                (url, given.unwrap_or(ApiKey::Source(signed)))
            }),
        "vertex" => find(&["GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"])
            .filter(|project| is_word(project))
            .ok_or_else(|| missing("a project", "GOOGLE_CLOUD_PROJECT"))
            .map(|project| {
                let asked = find(&["GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"]).filter(|region| is_word(region));
                let region = asked.unwrap_or("global");
                let host = if region == "global" { String::new() } else { format!("{region}-") };
                let url =
                    format!("https://{host}aiplatform.googleapis.com/v1/projects/{project}/locations/{region}");
                let signed = KeySource { google: Some("default".to_owned()), ..KeySource::default() };
                (url, ApiKey::Source(signed))
            }),
        _ => return None,
    };
    Some(made.map(|(url, key)| {
        let mut model = ModelConfig::of_server(name.to_owned(), url, id.to_owned());
        model.api_key = Some(key);
        model
    }))
}

/// Makes the base URL of a local server from `HOST[:PORT]` or an address without a path.
fn at_address(address: &str, usual: &str) -> String {
    let (scheme, rest) = address.trim().split_once("://").unwrap_or(("http", address.trim()));
    let rest = rest.trim_end_matches('/');
    let (host, path) = rest.split_once('/').unwrap_or((rest, "v1"));
    // A server that listens on all interfaces also answers on this one.
    let host = match host.strip_prefix("0.0.0.0") {
        Some(port) => format!("127.0.0.1{port}"),
        None if host.starts_with(':') => format!("127.0.0.1{host}"),
        None => host.to_owned(),
    };
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = usual.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let port = if has_port || scheme == "https" { String::new() } else { format!(":{port}") };
    format!("{scheme}://{host}{port}/{path}")
}

/// Makes the configuration of another model at the same server. Facts declared for the first model do not apply to it.
fn with_id(base: &ModelConfig, id: &str) -> Result<ModelConfig, SetupError> {
    if base.provider != ModelProvider::Openai {
        return Err(SetupError::usage(format!(
            "there is no configured model `{id}`, and `{}` is a script, which has no other models",
            base.name
        )));
    }
    if !is_configured(base) {
        return Err(SetupError::authentication(format!(
            "no server is known that could have the model `{id}`: set OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL for a \
             server of your own, or name a model as PROVIDER/ID"
        )));
    }
    let mut model = base.clone();
    model.model = Some(id.to_owned());
    if base.model.as_deref() != Some(id) {
        model.context_window = None;
        model.max_output_tokens = None;
        model.prices = None;
    }
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_needs_no_file_but_its_key() {
        for (name, variable, base_url) in [
            ("openai/gpt-5-mini", "OPENAI_API_KEY", "http://127.0.0.1:9/v1"),
            ("anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY", "https://api.anthropic.com/v1"),
            ("google/m", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
            ("google/m", "GOOGLE_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
            ("openrouter/anthropic/claude-sonnet-5", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
            ("groq/openai/gpt-oss-120b", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
        ] {
            let (provider, id) = providers::split_name(name).expect("it is known");
            // The address of another provider does not matter.
            let env = Env::from_pairs([("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), (variable, " the-key ")]);
            let model = at_provider(provider, id, &env).expect("it has a key");
            assert_eq!(model.base_url.as_deref(), Some(base_url));
            assert_eq!(model.api_key.as_ref().and_then(ApiKey::given), Some("the-key"));
            assert_eq!((model.name.as_str(), model.model.as_deref()), (name, Some(id)));

            let error = at_provider(provider, id, &Env::from_pairs([("OTHER", "x")])).expect_err("no key");
            assert!(error.message.contains(variable), "{}", error.message);
        }
    }

    #[test]
    fn a_model_of_a_cloud_needs_no_file_but_what_its_own_programs_read() {
        let made = |name: &str, env: &[(&str, &str)]| {
            at_cloud(name, &Env::from_pairs(env.iter().copied())).expect("it is a cloud's")
        };
        let address = |name: &str, env: &[(&str, &str)]| made(name, env).expect("it is known").base_url;
        let region = ("AWS_REGION", "eu-west-1");
        let url = "https://bedrock-runtime.eu-west-1.amazonaws.com";
        assert_eq!(address("bedrock/eu.anthropic.claude-opus-5-v1:0", &[region]).as_deref(), Some(url));
        let key =
            made("bedrock/m", &[region, ("AWS_BEARER_TOKEN_BEDROCK", "the-key")]).expect("it is known").api_key;
        assert_eq!(key.as_ref().and_then(ApiKey::given), Some("the-key"));
        let project = ("GOOGLE_CLOUD_PROJECT", "p");
        for (region, url) in [
            (("OTHER", ""), "https://aiplatform.googleapis.com/v1/projects/p/locations/global"),
            (
                ("GOOGLE_CLOUD_LOCATION", "europe-west1"),
                "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1",
            ),
        ] {
            assert_eq!(address("vertex/claude-sonnet-5-5", &[project, region]).as_deref(), Some(url));
        }
        for (name, env, expected) in [
            ("bedrock/m", vec![], "AWS_REGION"),
            ("bedrock/m", vec![("AWS_REGION", "eu/../evil.example#")], "AWS_REGION"),
            ("vertex/m", vec![], "GOOGLE_CLOUD_PROJECT"),
        ] {
            assert!(made(name, &env).expect_err("something is missing").message.contains(expected), "{name}");
        }
        assert!(at_cloud("other/m", &Env::default()).is_none() && at_cloud("bedrock", &Env::default()).is_none());
    }

    #[test]
    fn without_a_model_the_first_key_that_is_set_chooses_one() {
        let base = "https://api.openai.com/v1".to_owned();
        let own = || ModelConfig::of_server("default".to_owned(), base.clone(), "gpt-5-mini".to_owned());
        let chosen = |own: &ModelConfig, variables: &[(&str, &str)]| {
            let taken = take_by_key(own, &Env::from_pairs(variables.to_vec()));
            taken.map(|model| model.expect("it has a key").name)
        };
        let keys = [("MISTRAL_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k"), ("HF_TOKEN", "k")];
        assert_eq!(chosen(&own(), &keys).as_deref(), Some("anthropic/claude-haiku-5-5"));
        assert_eq!(chosen(&own(), &keys[2..]), None, "it has no list of small ones");
        assert_eq!(chosen(&own(), &[keys[1], ("AGENT_MODEL", "gpt-5")]), None);
        let api_key = Some(ApiKey::Given(Secret::new("k".to_owned())));
        for (own, why) in [
            (ModelConfig { api_key, ..own() }, "it has its key"),
            (ModelConfig { base_url: Some("http://127.0.0.1:1/v1".to_owned()), ..own() }, "a server of one's own"),
            (ModelConfig { name: "mine".to_owned(), ..own() }, "another one was chosen"),
        ] {
            assert_eq!(chosen(&own, &keys), None, "{why}");
        }
    }

    #[test]
    fn a_gateway_of_a_provider_is_asked_in_the_providers_protocol() {
        for (address, base_url, wire) in [
            ("https://gateway.example/x", "https://gateway.example/x", Some(Wire::Anthropic)),
            ("http://localhost:4000/v1", "http://localhost:4000/v1", Some(Wire::Anthropic)),
            (" ", "https://api.anthropic.com/v1", None),
        ] {
            let env = Env::from_pairs([("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", address)]);
            let anthropic = providers::by_id("anthropic").expect("it is known");
            let model = at_provider(anthropic, "claude-sonnet-5-5", &env).expect("it has a key");
            assert_eq!((model.base_url.as_deref(), model.wire), (Some(base_url), wire), "{address}");
        }
    }

    #[test]
    fn a_local_server_is_where_its_own_variable_says() {
        for (address, base_url) in [
            (None, "http://localhost:11434/v1"),
            (Some("10.0.0.7"), "http://10.0.0.7:11434/v1"),
            (Some("10.0.0.7:9999"), "http://10.0.0.7:9999/v1"),
            (Some("0.0.0.0"), "http://127.0.0.1:11434/v1"),
            (Some("0.0.0.0:80"), "http://127.0.0.1:80/v1"),
            (Some(":80"), "http://127.0.0.1:80/v1"),
            (Some("http://box:1/"), "http://box:1/v1"),
            (Some("https://ollama.example"), "https://ollama.example/v1"),
            (Some("http://box:1/api/v1"), "http://box:1/api/v1"),
        ] {
            let env = Env::from_pairs(address.map(|address| ("OLLAMA_HOST", address)));
            let ollama = providers::by_id("ollama").expect("it is known");
            let model = at_provider(ollama, "qwen3", &env).expect("it needs no key");
            assert_eq!(model.base_url.as_deref(), Some(base_url), "{address:?}");
            assert_eq!(model.api_key, None);
        }
    }
}
