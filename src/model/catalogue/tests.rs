//! The catalogue that comes with the program: its rows are sound, and an id finds its own row.

use std::fs;

use super::providers::{PROVIDERS, Provider, ProviderRole};
use super::table::{open_embedded, write_catalogue};
use super::{FILE, ModelCatalogue, ModelFacts, choose_small_on, providers};
use crate::config::{ModelConfig, Prices};
use crate::model::effort::Effort;
use crate::model::{Surroundings, gather_facts};

#[test]
fn every_row_is_sound() {
    let table = open_embedded();
    table.check().expect("every line is read");
    assert!(table.origin.contains("MIT"), "the sources are named with their licences");
    let mut sections = Vec::new();
    for provider in PROVIDERS {
        let rows: Vec<ModelFacts> = table.rows(provider.id).collect();
        for (at, row) in rows.iter().enumerate() {
            let name = format!("{}/{}", provider.id, row.id);
            assert_eq!(table.find(provider.id, &row.id).as_ref(), Some(row), "{name}: two rows of one id");
            assert!(at == 0 || rows[at - 1].id < row.id, "{name}: sorted");
            assert!(row.ends.is_none_or(|day| (2026..2030).contains(&day.year())), "{name}");
            let Some(prices) = &row.prices else { continue };
            assert!(prices.tiers.is_sorted_by(|a, b| a.above < b.above), "{name}");
            for tier in prices.tiers.iter().copied().chain([prices.base()]) {
                assert!(tier.above < row.window && tier.output >= tier.input / 2.0, "{name}");
                assert!(tier.cached_input.is_none_or(|price| price < tier.input), "{name}");
                assert!(tier.cache_write.is_none_or(|price| price > tier.input), "{name}");
            }
            assert!(!row.id.ends_with("latest"), "{name}: an alias costs what it stands for at the time");
        }
        sections.push((provider.id, rows));
    }
    let count = sections.iter().map(|(_, rows)| rows.len()).sum::<usize>();
    assert!((250..600).contains(&count), "{count}");
    let written = write_catalogue(table.date, table.origin, &sections);
    assert_eq!(written.lines().count(), include_str!("models.txt").lines().count(), "no row is lost");
    assert!(PROVIDERS.iter().all(|row| row.kind != ProviderRole::Maker || table.rows(row.id).next().is_some()));
}

#[test]
fn every_model_leaves_room_for_a_request_and_a_reply() {
    for (provider, row) in ModelCatalogue::default().rows() {
        let config = ModelConfig::of_server("m".to_owned(), provider.base_url.to_owned(), row.id.clone());
        let (info, known) = gather_facts(&config, &row.id, &Surroundings::default());
        let (window, reply) = (row.window, info.max_output_tokens.unwrap_or_default());
        assert_eq!(info.context_window, window, "{}: its own row answers", row.id);
        assert!(reply <= window / 3 && known.most_output_tokens == info.max_output_tokens, "{}: {reply}", row.id);
        let half = ModelConfig { context_window: Some(window / 2), ..config };
        let (info, _) = gather_facts(&half, &row.id, &Surroundings::default());
        assert!(info.max_output_tokens.unwrap_or_default() <= window / 6, "{}", row.id);
    }
}

/// The id of the row that answers, and whether it knows a price.
fn found(place: &str, id: &str) -> Option<(String, bool)> {
    ModelCatalogue::default().lookup(place, id).map(|facts| (facts.id, facts.prices.is_some()))
}

#[test]
fn an_id_is_matched_as_it_is_or_without_its_date_and_never_by_its_beginning() {
    for (place, id, row) in [
        ("openai", "gpt-5", Some(("gpt-5", true))),
        ("openai", "gpt-5.6-sol", Some(("gpt-5.6-sol", true))),
        ("api.openai.com", "gpt-5-mini-2025-08-07", Some(("gpt-5-mini", true))),
        ("openai", "GPT-5-Mini", Some(("gpt-5-mini", true))),
        ("openai", "gpt-4o-2024-05-13", Some(("gpt-4o-2024-05-13", true))),
        ("openai", "gpt-5-2025-13-45", None),
        ("openai", "gpt-5-20250929-preview", None),
        ("openai", "gpt-5.6-none-such", None),
        ("openai", "gpt-", None),
        ("openai", "", None),
        ("openai", "-20250929", None),
        // A maker is asked for its own models only.
        ("openai", "claude-sonnet-5", None),
        ("api.anthropic.com", "claude-sonnet-4-5-20250929", Some(("claude-sonnet-4-5", true))),
        ("anthropic", "claude-sonnet-4", None),
        // An alias has facts, and no price.
        ("google", "gemini-flash-latest", Some(("gemini-flash-latest", false))),
        // The sources disagree.
        ("mistral", "mistral-large-4", Some(("mistral-large-4", false))),
        // A subscription.
        ("zai", "glm-5.3-highspeed", Some(("glm-5.3-highspeed", false))),
        ("openrouter.ai", "anthropic/claude-sonnet-5", Some(("anthropic/claude-sonnet-5", true))),
        ("openrouter.ai", "anthropic/claude-sonnet-4-5-20250929", Some(("claude-sonnet-4-5", false))),
        ("groq", "openai/gpt-oss-120b", Some(("openai/gpt-oss-120b", true))),
        // A model that others serve is the maker's, at an unknown price.
        ("gateway.example", "gpt-5-mini", Some(("gpt-5-mini", false))),
        ("gateway.example", "openai/gpt-5-mini-2025-08-07", Some(("gpt-5-mini", false))),
        (
            "bedrock-runtime.eu-west-1.amazonaws.com",
            "eu.anthropic.claude-sonnet-5-5-20260901-v1:0",
            Some(("claude-sonnet-5-5", false)),
        ),
        ("aiplatform.googleapis.com", "claude-sonnet-5-5@20260901", Some(("claude-sonnet-5-5", false))),
        ("gateway.example", "x/kimi-v3", None),
        ("127.0.0.1", "team/claude-sonnet-5-5", Some(("claude-sonnet-5-5", false))),
        ("127.0.0.1", "llama3.1:8b", None),
        ("gateway.example", "my-model", None),
    ] {
        let row = row.map(|(id, priced)| (id.to_owned(), priced));
        assert_eq!(found(place, id), row, "{id} at {place}");
    }
}

#[test]
fn the_window_is_the_whole_and_its_cheap_part_a_tier() {
    let sol = ModelCatalogue::default().lookup("openai", "gpt-5.6-sol").expect("it is known");
    assert_eq!((sol.window, sol.input, sol.output), (1_050_000, Some(922_000), Some(128_000)));
    let prices = sol.prices.expect("it has prices");
    assert_eq!((prices.choose_tier(272_000).input, prices.choose_tier(272_001).input), (4.0, 8.0));
    assert_eq!((prices.choose_tier(0).cached_input, prices.choose_tier(0).cache_write), (Some(0.4), Some(5.0)));
    assert!(!prices.about, "two sources say so");
    assert!(sol.levels.expect("it thinks").contains(&Effort::None));
}

/// A catalogue of a user, with these lines below its head.
fn of_user(date: &str, lines: &str) -> (tempfile::TempDir, ModelCatalogue) {
    let dir = tempfile::tempdir().expect("a directory");
    let text = format!("agent-models 1 {date}\norigin by hand\n\n{lines}");
    fs::write(dir.path().join(FILE), text).expect("written");
    let catalogue = ModelCatalogue::of_user(dir.path());
    (dir, catalogue)
}

#[test]
fn a_catalogue_of_the_user_changes_windows_and_prices_and_nothing_else() {
    let lines = "@openai\ngpt-5 w=500000 p=7///8 c=1\ngpt-9 w=9000 s p=1///2 c=2\n";
    let (_dir, catalogue) = of_user("2999-01-01", lines);
    let own = ModelCatalogue::default().lookup("openai", "gpt-5").expect("it is known");
    let facts = catalogue.lookup("openai", "gpt-5").expect("it is known");
    assert_eq!(facts.window, 500_000);
    assert!(matches!(&facts.prices, Some(Prices { input: 7.0, about: true, .. })));
    assert_eq!((facts.levels, facts.sees, facts.wire), (own.levels, own.sees, own.wire));
    let new = catalogue.lookup("api.openai.com", "gpt-9").expect("it is known");
    assert_eq!((new.window, new.wire), (9000, own.wire));
    assert!(catalogue.lookup("openai", "gpt-5-mini").is_some(), "what it does not name is as before");
    assert_eq!(catalogue.notice(), None);
    let ids: Vec<String> =
        catalogue.rows().into_iter().map(|(provider, row)| format!("{}/{}", provider.id, row.id)).collect();
    assert_eq!(ids.iter().filter(|id| *id == "openai/gpt-5" || *id == "openai/gpt-9").count(), 2);
}

#[test]
fn a_catalogue_that_is_old_or_broken_is_named_and_left_out() {
    for (date, lines, why) in
        [("2020-01-01", "@openai\ngpt-5 w=1\n", "older"), ("soon", "@openai\ngpt-5 w=1\n", "not a catalogue")]
    {
        let (_dir, catalogue) = of_user(date, lines);
        assert_eq!(catalogue.notice(), None, "nothing was asked yet");
        assert_eq!(catalogue.lookup("openai", "gpt-5"), ModelCatalogue::default().lookup("openai", "gpt-5"));
        let notice = catalogue.notice().expect("it is said");
        assert!(notice.contains(why), "{notice}");
    }
    // A line that was broken later is as if it were not there.
    let (_dir, catalogue) = of_user("2999-01-01", "@openai\ngpt-5 w=none\n");
    assert_eq!(catalogue.lookup("openai", "gpt-5"), ModelCatalogue::default().lookup("openai", "gpt-5"));
}

#[test]
fn the_small_models_of_a_provider_are_known_there_and_the_newest_stays() {
    let today = open_embedded().date;
    for provider in PROVIDERS {
        for id in provider.small {
            assert!(open_embedded().find(provider.id, id).is_some(), "{}: {id}", provider.id);
        }
        let chosen = choose_small_on(provider, today);
        assert_eq!(chosen, provider.small.first().copied());
        let ends = chosen.and_then(|id| open_embedded().find(provider.id, id)?.ends);
        assert_eq!(ends, None, "{}: {chosen:?}", provider.id);
    }
    let built_in = include_str!("../../../configs/models/default.yaml");
    let openai = providers::by_id("openai").expect("it is known");
    assert!(built_in.contains(&format!("default('{}')", openai.small[0])), "the built-in file names the same");
}

#[test]
fn a_model_that_has_ended_gives_way_to_the_next() {
    let day = |text: &str| text.parse().expect("a date");
    let provider = Provider { small: &["gpt-5-mini", "gpt-6-luna"], ..PROVIDERS[0] };
    assert_eq!(choose_small_on(&provider, day("2026-12-10")), Some("gpt-5-mini"));
    assert_eq!(choose_small_on(&provider, day("2026-12-11")), Some("gpt-6-luna"));
    let ended = Provider { small: &["gpt-5-mini"], ..PROVIDERS[0] };
    assert_eq!(
        choose_small_on(&ended, day("2027-01-01")),
        Some("gpt-5-mini"),
        "the server says what became of it"
    );
}
