//! Providers, one row each: address, key and protocol.
//!
//! These rows come only with the program: no catalogue from outside names a host, an address or a variable.

use crate::config::Env;
use crate::config::Wire::{self, Anthropic, Chat, Gemini, Ollama, Responses};

/// A provider of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// The word before the slash of `-m anthropic/claude-sonnet-5`.
    pub id: &'static str,
    /// The name for people.
    pub name: &'static str,
    pub base_url: &'static str,
    /// The hosts with these models and prices, besides that of `base_url`.
    pub hosts: &'static [&'static str],
    /// The environment variables that may contain the key; the first that is set wins. Empty if no key is needed.
    pub keys: &'static [&'static str],
    /// The protocol of its models.
    pub wire: Wire,
    pub kind: ProviderRole,
    /// The variable that names another address, as the provider's own programs read it.
    pub address: Option<&'static str>,
    /// The page on which a person allows a program of this machine a key of its own.
    pub login: Option<&'static str>,
    /// Its small models (its usual one, where it has none), the newest first, for users who have named no model.
    pub small: &'static [&'static str],
}

/// The role of a provider for its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderRole {
    /// It makes them: an id that another place lacks is looked up here.
    Maker,
    /// It serves those of other makers.
    Gateway,
    /// A server on this machine.
    Local,
}

/// All providers. Makers come first: if two have an id, the first one counts.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        address: Some("OPENAI_BASE_URL"),
        ..define_maker("openai", "OpenAI", "https://api.openai.com/v1", &["OPENAI_API_KEY"], Responses)
            .with_small(&["gpt-6-luna", "gpt-5.4-mini"])
    },
    Provider {
        address: Some("ANTHROPIC_BASE_URL"),
        ..define_maker("anthropic", "Anthropic", "https://api.anthropic.com/v1", &["ANTHROPIC_API_KEY"], Anthropic)
            .with_small(&["claude-haiku-5-5", "claude-haiku-4-5"])
    },
    define_maker(
        "google",
        "Google Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        Gemini,
    )
    .with_small(&["gemini-3.8-flash", "gemini-3.7-flash"]),
    define_maker("xai", "xAI", "https://api.x.ai/v1", &["XAI_API_KEY"], Responses).with_small(&["grok-4.7"]),
    define_maker("deepseek", "DeepSeek", "https://api.deepseek.com", &["DEEPSEEK_API_KEY"], Chat)
        .with_small(&["deepseek-flash"]),
    define_maker("moonshotai", "Moonshot AI", "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"], Chat)
        .with_small(&["kimi-k3.1-pro"]),
    define_maker("zai", "Z.ai", "https://api.z.ai/api/paas/v4", &["ZAI_API_KEY"], Chat)
        .with_small(&["glm-5.3-flash"]),
    define_maker("minimax", "MiniMax", "https://api.minimax.io/v1", &["MINIMAX_API_KEY"], Chat)
        .with_small(&["MiniMax-M3.1-Flash", "MiniMax-M3"]),
    define_maker("mistral", "Mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], Chat)
        .with_small(&["mistral-small-2603"]),
    define_maker(
        "dashscope",
        "Alibaba DashScope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_KEY"],
        Chat,
    )
    .with_small(&["qwen3.8-flash"]),
    define_maker("meta", "Meta", "https://api.meta.ai/v1", &["META_API_KEY"], Responses)
        .with_small(&["muse-ember-1.0"]),
    define_maker("xiaomi", "Xiaomi MiMo", "https://api.xiaomimimo.com/v1", &["XIAOMI_API_KEY"], Chat)
        .with_small(&["mimo-v2.6-flash"]),
    Provider {
        login: Some("https://openrouter.ai/auth"),
        ..define_gateway("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"])
            .with_small(&["anthropic/claude-haiku-5.5"])
    },
    define_gateway("groq", "Groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"])
        .with_small(&["openai/gpt-oss-120b"]),
    define_gateway("cerebras", "Cerebras", "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"])
        .with_small(&["gpt-oss-120b"]),
    Provider {
        hosts: &["api.together.xyz"],
        ..define_gateway("together", "Together AI", "https://api.together.ai/v1", &["TOGETHER_API_KEY"])
            .with_small(&["zai-org/GLM-5.3-Flash"])
    },
    define_gateway("fireworks", "Fireworks AI", "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"])
        .with_small(&["accounts/fireworks/models/glm-5p3-flash"]),
    define_gateway("huggingface", "Hugging Face", "https://router.huggingface.co/v1", &["HF_TOKEN"]),
    define_gateway("nvidia", "NVIDIA NIM", "https://integrate.api.nvidia.com/v1", &["NVIDIA_API_KEY"]),
    Provider {
        address: Some("OLLAMA_HOST"),
        wire: Ollama,
        ..define_local("ollama", "Ollama", "http://localhost:11434/v1")
    },
    define_local("llamacpp", "llama.cpp", "http://localhost:8080/v1"),
    define_local("lmstudio", "LM Studio", "http://localhost:1234/v1"),
    define_local("vllm", "vLLM", "http://localhost:8000/v1"),
];

/// The provider of this id.
pub fn by_id(id: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.id == id)
}

/// The environment variables of all providers that may contain keys.
pub fn list_keys() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().flat_map(|provider| provider.keys).copied()
}

/// Those of the variables that are set.
pub fn list_set_keys(env: &Env) -> Vec<&'static str> {
    list_keys().filter(|variable| env.get(variable).is_some()).collect()
}

/// The provider behind a host, given without its port. `None` for a host of this machine: its address does not tell
/// what listens there.
pub fn by_host(host: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().filter(|provider| provider.kind != ProviderRole::Local).find(|provider| provider.is_at(host))
}

/// The provider and the id in `provider/id`.
pub fn split_name(name: &str) -> Option<(&'static Provider, &str)> {
    let (provider, id) = name.split_once('/')?;
    by_id(provider).map(|provider| (provider, id.trim())).filter(|(_, id)| !id.is_empty())
}

impl Provider {
    const fn with_small(self, small: &'static [&'static str]) -> Self {
        Self { small, ..self }
    }

    fn is_at(&self, host: &str) -> bool {
        let own = host_of(self.base_url);
        std::iter::once(own).chain(self.hosts.iter().copied()).any(|known| known.eq_ignore_ascii_case(host))
    }
}

/// The place of a model with this base URL: a host, or the provider that is the default without one.
pub fn place_of(base_url: Option<&str>) -> &str {
    base_url.map(str::trim).filter(|url| !url.is_empty()).map_or("openai", host_of)
}

/// The `host[:port]` of an address, without user and password.
pub fn find_authority(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The host of an address, without its port.
fn host_of(address: &str) -> &str {
    let host = find_authority(address);
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

const fn define_maker(
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    keys: &'static [&'static str],
    wire: Wire,
) -> Provider {
    Provider {
        id,
        name,
        base_url,
        hosts: &[],
        keys,
        wire,
        kind: ProviderRole::Maker,
        address: None,
        login: None,
        small: &[],
    }
}

const fn define_gateway(
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    keys: &'static [&'static str],
) -> Provider {
    Provider { kind: ProviderRole::Gateway, ..define_maker(id, name, base_url, keys, Chat) }
}

const fn define_local(id: &'static str, name: &'static str, base_url: &'static str) -> Provider {
    Provider { kind: ProviderRole::Local, ..define_maker(id, name, base_url, &[], Chat) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::secrets::looks_secret;

    #[test]
    fn every_row_can_be_reached_and_named() {
        for (at, row) in PROVIDERS.iter().enumerate() {
            assert!(PROVIDERS[..at].iter().all(|other| other.id != row.id), "two rows of {}", row.id);
            assert!(row.id.bytes().all(|byte| byte.is_ascii_lowercase()), "{}", row.id);
            assert_eq!(row.base_url.starts_with("https://"), row.kind != ProviderRole::Local, "{}", row.id);
            assert!(!row.base_url.ends_with('/'), "{}", row.id);
            assert_eq!(row.keys.is_empty(), row.kind == ProviderRole::Local, "{}", row.id);
            // Commands never get such variables, and their values are masked wherever they turn up.
            assert!(row.keys.iter().all(|key| looks_secret(key)), "{}", row.id);
        }
    }

    #[test]
    fn a_host_is_known_whatever_stands_around_it() {
        for (address, id) in [
            ("https://api.openai.com/v1", Some("openai")),
            ("https://API.OpenAI.com:443/v1?x=1", Some("openai")),
            ("https://api.together.xyz/v1", Some("together")),
            ("https://user:password@openrouter.ai/api/v1", Some("openrouter")),
            ("https://api.openai.com.evil.example/v1", None),
            ("https://evil.example/api.openai.com", None),
            ("http://localhost:11434/v1", None),
            ("http://[::1]:8000/v1", None),
            ("", None),
        ] {
            assert_eq!(by_host(host_of(address)).map(|provider| provider.id), id, "{address}");
        }
        assert_eq!(
            (place_of(None), place_of(Some(" ")), place_of(Some("http://x:1/v1"))),
            ("openai", "openai", "x")
        );
    }

    #[test]
    fn a_name_is_of_a_provider_only_before_a_slash() {
        for (name, parts) in [
            ("anthropic/claude-sonnet-5", Some(("anthropic", "claude-sonnet-5"))),
            ("openrouter/anthropic/claude-sonnet-5", Some(("openrouter", "anthropic/claude-sonnet-5"))),
            ("ollama/qwen3:8b", Some(("ollama", "qwen3:8b"))),
            ("anthropic/", None),
            ("anthropic", None),
            ("meta-llama/Llama-3.3-70B-Instruct", None),
            ("/gpt-5", None),
        ] {
            assert_eq!(split_name(name).map(|(provider, id)| (provider.id, id)), parts, "{name}");
        }
    }
}
