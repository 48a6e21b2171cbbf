//! Exact counts of tokens, compared with tiktoken-rs.

use agent::facade::agent::window::{MeasuredRequest, Ruler};
use agent::facade::base::tokens::{TokenMix, count_tokens, counts_exactly};
use agent::facade::conversation::message::{Item, UserText};
use agent::facade::conversation::session::ItemId;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton, p50k_base_singleton};

fn count_by_reference(text: &str) -> u64 {
    o200k_base_singleton().count_ordinary(text) as u64
}

/// Texts where splitting or merging is easily wrong.
const HARD: &[&str] = &[
    "",
    "a",
    "hello world",
    "<|endoftext|><|fim_prefix|>",
    // Contractions: case, the long s, what is none, after a space and after capitals.
    "don't DON'T I'Ve we'LL he'd she's 'tis 'S'ſ it'ſ x'rr l'l 'l 're' ''s \"'m\" can't've 's's's",
    "日本's 語'll Ω'd ά'VE",
    // Case: capitals before small letters, title case, modifiers, letters without case between others.
    "XMLHttpRequest parseURL aBC ABc ABC ABc's ǅungla ǅǅ ʰA Aʰ AʰB Aʰb 日A日a A日B ªºA",
    // Marks: after letters, alone, at the start, after spaces and symbols, before capitals.
    "e\u{301}te\u{301} \u{301} \u{301}\u{301}ABC \u{301}abc !\u{301}a !\u{301} A\u{301}B\u{301}C \u{301}",
    "हिन्दी में ไทยก็ได้ தமிழ் العَرَبِيَّة עִבְרִית ខ្មែរ",
    // Numbers: in threes, of other scripts, fractions and roman ones, with letters.
    "1 12 123 1234 1234567 ١٢٣٤ ①②③④ ½¾ ⅣⅣⅣⅣ a1b2 1a 3.14 1,000,000 x²",
    // White space: before words and symbols, at the end, over lines, of other kinds.
    " a  a   a \ta \t a a\t\tb  ",
    "  !  !! \t!",
    "a\n b\n\n  c \n\n d\r\n\r\n e \r f\n",
    "a \n",
    "a\n ",
    "a\n  ",
    "a  \n  \n  b",
    "   \n   \n   ",
    "\n",
    " \n",
    "\n ",
    "\r\n  \r\n\t\r\n\t\tx",
    "a\u{a0}b\u{a0}\u{a0}c \u{3000}\u{3000}d\u{2003}e\u{2028}f\u{2029}\u{85}g\u{200b}h\u{feff}i\u{1680}1",
    "\u{a0}\u{a0}",
    "\u{a0}1 \u{a0}!",
    // Symbols and what follows them.
    "a/b//c ///\n/\n//x ?/\r\n/ !\n\n!  //\n\n",
    "fn main() {\n    println!(\"{}\", 1 + 2);\n}\n\n\n// end\n",
    "=====  ---- ____ #### **bold** ``` ```\n~~~\n",
    "🙂👨‍👩‍👧‍👦🏳️‍🌈 🙂a 🙂 a🙂 ☃️\n🇩🇪🇫🇷 👍🏽",
    "\0\u{1}\u{7f}\u{80}\u{fffd}\u{10ffff}\u{e000}\u{378}",
    "ﬁ ﷺ ㍿ 𝔘𝔫𝔦 𝟘𝟙𝟚𝟛 Ⅻ ㋿",
];

#[test]
fn hard_cases_are_counted_as_the_reference_counts_them() {
    for text in HARD {
        assert_eq!(count_tokens(text), count_by_reference(text), "{text:?}");
    }
}

/// The class of a character decides where a text is cut, so each is put where the cut shows. Of the long stretches of
/// one kind (ideographs, Hangul, private and unassigned ones) every seventh is enough.
#[test]
fn every_character_is_of_the_class_that_the_reference_has_it_in() {
    let is_tested = |c: &char| {
        !matches!(c, '\u{3400}'..'\u{a000}' | '\u{ac00}'..'\u{f900}' | '\u{17000}'..'\u{1bc00}' | '\u{20000}'..)
            || u32::from(*c) % 7 == 0
    };
    let tested: Vec<char> = ('\0'..='\u{32fff}').chain('\u{e0000}'..='\u{e0fff}').filter(is_tested).collect();
    for block in tested.chunks(64) {
        let text: String = block.iter().map(|c| format!("ab{c}cd{c}EF {c}12{c}3\n{c} {c}!{c}{c}\n\n")).collect();
        assert_eq!(count_tokens(&text), count_by_reference(&text), "{:?}", block[0]);
    }
}

/// A piece of a text: of any script, or what the splitters treat in a way of its own.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        select(HARD).prop_map(str::to_owned),
        select(&["'s", "'T", "'re", "'VE", "'ll", "'d", "'", "’s", "'ſ"][..]).prop_map(str::to_owned),
        select(&[" ", "  ", "\t", "\n", "\r\n", "\r", "\n\n", " \n", "\u{a0}", "\u{3000}", "\u{2028}"][..])
            .prop_map(str::to_owned),
        "[a-z]{1,12}",
        "[A-Z]{1,4}[a-z]{0,6}",
        "[0-9]{1,8}",
        "[!-/:-@\\[-`{-~]{1,6}",
        "\\p{L}{1,4}",
        "\\p{Lu}{1,3}",
        "\\p{Lm}{1,2}",
        "\\p{M}{1,3}",
        "\\p{N}{1,4}",
        "[\\p{Cyrillic}\\p{Greek}]{1,8}",
        "[\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Hangul}]{1,6}",
        "[\\p{Arabic}\\p{Hebrew}\\p{Thai}\\p{Devanagari}]{1,6}",
        "[\\p{So}\\p{Sk}\u{200d}\u{fe0f}]{1,4}",
        any::<char>().prop_map(String::from),
        (select(&["a", " ", "=", "é", "字", "\t", "ab", "\n", "🙂"][..]), 1..300_usize)
            .prop_map(|(c, n)| c.repeat(n)),
        Just("the quick brown fox".to_owned()),
    ]
}

proptest! {
    #[test]
    fn any_text_is_counted_as_the_reference_counts_it(text in proptest::collection::vec(fragment(), 1..24)) {
        let text = text.concat();
        prop_assert_eq!(count_tokens(&text), count_by_reference(&text));
    }
}

/// Texts of one kind each: what people and programs write, and what machines do.
fn kinds() -> Vec<(&'static str, String)> {
    const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const HEX: &[u8] = b"0123456789abcdef";
    const IDS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = fastrand::Rng::with_seed(3);
    let mut many = |count: usize, make: &mut dyn FnMut(&mut fastrand::Rng) -> String| -> String {
        (0..count).map(|_| make(&mut random)).collect()
    };
    let of = |letters: &'static [u8], length: usize| {
        move |random: &mut fastrand::Rng| -> String {
            (0..length).map(|_| char::from(letters[random.usize(..letters.len())])).collect()
        }
    };
    let (base64, hex, id) = (of(BASE64, 76), of(HEX, 64), of(IDS, 12));
    vec![
        ("documentation", include_str!("../../docs/context.md").to_owned()),
        ("code", include_str!("../../src/agent/window/ruler.rs").to_owned()),
        ("a lock file", include_str!("../../Cargo.lock").to_owned()),
        ("settings", include_str!("../../Cargo.toml").to_owned()),
        (
            "prose",
            "She had not slept well; the letter was still in her pocket, and she knew what it said. ".repeat(9),
        ),
        ("the output of tests", many(99, &mut |random| format!("test window::fits_{} ... ok\n", random.u32(..)))),
        ("base64", many(99, &mut |random| base64(random) + "\n")),
        ("base64 in one line", many(99, &mut |random| base64(random))),
        ("checksums", many(99, &mut |random| hex(random) + "  src/lib.rs\n")),
        ("hex", many(99, &mut |random| hex(random) + "\n")),
        ("identifiers", many(99, &mut |random| id(random) + "\n")),
        ("floats", many(99, &mut |random| format!("{:.6},{:.3}\n", random.f64(), random.f64() * 100.0))),
        ("integers", many(99, &mut |random| format!("{},{},", random.u16(..), random.u32(..)))),
        ("a drawing", many(99, &mut |random| format!("M{:.2},{:.2} ", random.f64() * 900.0, random.f64() * 9.0))),
        (
            "a log",
            many(99, &mut |random| {
                let (time, number) = (random.u32(10..60), random.u32(1000..99999));
                format!(
                    "2026-11-24T20:{time}:07.{time}3Z INFO [worker-7] request {number} took {time}ms status=200\n"
                )
            }),
        ),
        ("data", many(99, &mut |random| format!("{{\"id\":{},\"name\":\"alpha\",\"ok\":true}},", random.u16(..)))),
    ]
}

#[test]
fn a_text_of_any_kind_is_reckoned_within_a_tenth() {
    for (kind, text) in kinds() {
        let (mix, counted) = (TokenMix::of_text(&text), count_tokens(&text) as f64);
        let error = (mix.tokens() / counted - 1.0) * 100.0;
        assert!(error.abs() <= 10.0, "{kind}: {error:.1} % of {counted}, {mix:?}");
    }
}

/// Other scripts differ more: the first counts teach their kinds.
#[test]
fn a_text_in_another_script_is_reckoned_within_a_third() {
    for text in [
        "Мы исправили ошибку в обработке сообщений и добавили новые проверки.",
        "根据你的需求场景，你可以用不同的方式使用它，程序将以错误代码结束。",
        "設定を変更する前に、必ず説明書をお読みください。",
        "설정을 변경하기 전에 문서를 읽어 주십시오.",
        "कृपया सेटिंग बदलने से पहले दस्तावेज़ पढ़ें।",
        "Die Größe hängt davon ab, ob die Änderungen wirklich nötig sind.",
    ] {
        let (mix, counted) = (TokenMix::of_text(text), count_tokens(text) as f64);
        assert!((mix.tokens() / counted - 1.0).abs() <= 0.34, "{text}: {} of {counted}", mix.tokens());
    }
}

/// Servers whose vocabulary is another one: that of GPT-3, which has other words and numbers, and knows hardly a word of
/// other languages, and that of GPT-4.
#[test]
fn a_kind_of_text_that_another_server_counted_before_is_reckoned_within_fifteen_hundredths() {
    for server in [p50k_base_singleton(), cl100k_base_singleton()] {
        for (kind, text) in kinds() {
            hold_against(server, kind, &text);
        }
    }
}

fn hold_against(server: &CoreBPE, kind: &str, text: &str) {
    let count = |text: &str| server.count_ordinary(text) as u64;
    // Lines in turn, so that each part is like the others; bytes where there is one line.
    let lines: Vec<&str> = text.split_inclusive(['\n', ' ']).collect();
    let parts: [String; 4] = std::array::from_fn(|part| match lines.len() {
        0..8 => text[text.len() * part / 4..text.len() * (part + 1) / 4].to_owned(),
        _ => lines.chunks(8).skip(part).step_by(4).flatten().copied().collect(),
    });
    let said: Vec<Item> = parts.iter().map(|part| Item::Said(UserText::by_person(part.clone()))).collect();
    let ids: Vec<ItemId> = (1..=4).map(|number| ItemId { number, pass: 0 }).collect();
    let mut ruler = Ruler::default();
    let measure = |ruler: &mut Ruler, items: usize| {
        let (items, ids) = (&said[..items], &ids[..items]);
        ruler.measure(MeasuredRequest { model: "gpt-2", tools: &[], system: "", items, ids }, u64::MAX);
        ruler.weights()
    };
    for sent in 1..=3 {
        let expected = measure(&mut ruler, sent)[sent - 1];
        let counted = count(&parts[sent - 1]);
        assert!(sent > 1 || expected * 100 >= counted * 90, "{kind}: {expected} of {counted} before any count");
        ruler.report(parts[..sent].iter().map(|part| count(part) + 4).sum());
    }
    let (expected, counted) = (measure(&mut ruler, 4)[3], count(&parts[3]) + 4);
    let error = (expected as f64 / counted as f64 - 1.0) * 100.0;
    assert!(error.abs() <= 15.0, "{kind}: {error:.1} % of {counted}");
}

/// If the time grew with the square of the length, this would take minutes.
#[test]
fn a_long_text_without_a_break_is_counted() {
    const LENGTH: usize = 1 << 17;
    let mut random = fastrand::Rng::with_seed(1);
    let letters: String = (0..LENGTH).map(|_| random.lowercase()).collect();
    for (text, most) in [
        ("a".repeat(LENGTH), LENGTH / 4),
        (" ".repeat(LENGTH), LENGTH / 64),
        ("=".repeat(LENGTH), LENGTH / 32),
        ("\n ".repeat(LENGTH / 2), LENGTH),
        (letters, LENGTH),
    ] {
        let tokens = usize::try_from(count_tokens(&text)).expect("small");
        assert!(tokens > LENGTH / 256 && tokens <= most, "{tokens} of {:?}", &text[..8]);
    }
}

#[test]
fn a_model_has_the_vocabulary_that_the_reference_gives_it() {
    for id in [
        "gpt-5",
        "gpt-5-mini",
        "gpt-5.4-pro",
        "gpt-5.1-codex-mini",
        "gpt-6",
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-4o-2024-05-13",
        "gpt-4.1",
        "gpt-4.1-nano",
        "gpt-4.5-preview",
        "chatgpt-4o-latest",
        "codex-mini",
        "codex-mini-latest",
        "gpt-oss-20b",
        "gpt-oss-120b",
        "o1",
        "o1-mini",
        "o3",
        "o3-pro",
        "o4",
        "o4-mini",
        "o4-mini-2026-06-02",
        "gpt-4",
        "gpt-4-turbo",
        "gpt-4-32k-0314",
        "gpt-3.5-turbo",
        "gpt-3.5-turbo-0125",
        "gpt-3.5",
        "gpt-35-turbo",
        "gpt-35-turbo-16k",
        "ft:gpt-4o:org:name:id",
        "ft:gpt-3.5-turbo:org:2023-11-11",
        "ft:",
        "",
        "qwen3",
        "deepseek-chat",
        "claude-opus-4",
    ] {
        let is_exact = matches!(get_tokenizer(id), Some(Tokenizer::O200kBase | Tokenizer::O200kHarmony));
        assert_eq!(counts_exactly(id), is_exact, "{id}");
        assert_eq!(counts_exactly(&format!("openai/{id}")), is_exact, "{id}");
    }
}
