//! Names: a search for one finds one thing, and a function says what it does. Each count is a ratchet: it may only fall.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{none, rust};

/// Types that may bear one name in several files: the data types of a wire, each in the module of its wire.
const WIRE_TYPES: &[&str] = &[
    "Call", "Content", "Cost", "Event", "Function", "Message", "Piece", "Role", "System", "Text", "TextVisitor",
    "Tool", "Tools",
];

/// Types that are one thing with one body for each platform or feature, of which only one is compiled.
const PLATFORM_TYPES: &[&str] = &[
    "Away", "Begun", "Confinement", "Console", "Dir", "DirWatch", "Focus", "HiddenTyping", "Highlighter", "Space",
    "Watch",
];

/// The most free functions of one word, in percent.
const MOST_ONE_WORD: usize = 5;
/// The most functions and methods whose name is a participle or a preposition, in percent.
const MOST_PARTICIPLES: usize = 1;
/// The most parameters that are patterns of tuples.
const MOST_TUPLES: usize = 3;

/// Prepositions and participles without a regular ending that have been names of functions.
const NO_VERBS: &[&str] = &[
    "of", "told", "within", "at", "by", "in", "on", "off", "over", "under", "above", "below", "beyond", "beside",
    "between", "among", "around", "about", "after", "before", "since", "until", "during", "for", "to", "toward",
    "via", "with", "without", "against", "along", "across", "onto", "through", "inside", "outside", "near",
    "past", "known", "unknown", "given", "shown", "seen", "unseen", "said", "taken", "kept", "left", "held",
    "made", "done", "found", "lost", "written", "drawn", "worn", "torn", "chosen", "spoken", "hidden", "begun",
    "gone", "grown", "bought", "brought", "caught", "thought", "sought", "sent", "spent", "built", "felt",
    "heard", "led", "meant", "met", "paid", "sold", "stood", "understood", "bound", "fed", "laid",
];

/// Words that end like a participle and are verbs or nouns, or a method of a trait that others wrote.
const VERBS_AND_NOUNS: &[&str] = &[
    "embed", "feed", "need", "seed", "speed", "string", "ring", "bring", "ping", "briefing", "closing", "elapsed",
    "ending", "everything", "expecting", "heading", "matched", "opening", "reasoning", "standing", "thinking",
    "warning",
];

/// A definition: its name and the file.
struct Definition {
    name: String,
    path: String,
}

#[test]
fn the_name_of_a_type_is_unique() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Definition { name, path } in definitions(&["struct", "enum", "trait", "type", "union"], true) {
        places.entry(name).or_default().insert(path);
    }
    let is_known = |name: &str| WIRE_TYPES.contains(&name) || PLATFORM_TYPES.contains(&name);
    let repeated: Vec<String> = places
        .iter()
        .filter(|(name, paths)| paths.len() > 1 && !is_known(name))
        .map(|(name, paths)| format!("{name}: {}", paths.iter().cloned().collect::<Vec<_>>().join(", ")))
        .collect();
    none("Give each type a name that says the thing, in the words of the field; these stand twice:", &repeated);
}

#[test]
fn a_free_function_says_what_it_does_to_what() {
    let all = definitions(&["fn"], true);
    let one_word: Vec<String> = all
        .iter()
        .filter(|function| !function.name.contains('_') && function.name != "main")
        .map(|function| format!("{}: {}", function.path, function.name))
        .collect();
    if one_word.len() * 100 > all.len() * MOST_ONE_WORD {
        none("Name a free function by a verb and its object (`parse_header`); of one word are:", &one_word);
    }
}

#[test]
fn a_function_is_no_participle_and_no_preposition() {
    let mut all = definitions(&["fn"], true);
    all.extend(definitions(&["fn"], false));
    let found: Vec<String> = all
        .iter()
        .filter(|function| is_no_verb(&function.name))
        .map(|function| format!("{}: {}", function.path, function.name))
        .collect();
    if found.len() * 100 > all.len() * MOST_PARTICIPLES {
        none("Name a function by a verb (`find_limits`, not `told`, `within`, `limited`):", &found);
    }
}

#[test]
fn a_parameter_has_a_name() {
    let mut found = Vec::new();
    for file in rust(&["src"]) {
        let code: String = file.code().into_iter().map(|(_, line)| line + "\n").collect();
        for (at, _) in code.match_indices("fn ") {
            let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let parameters = code[at..].find('(').map(|open| enclosed(&code[at + open..])).unwrap_or_default();
            if !name.is_empty() && has_tuple(parameters) {
                found.push(format!("{}: {name}", file.path));
            }
        }
    }
    if found.len() > MOST_TUPLES {
        none("Pass two parameters, or a type with named fields, in place of a tuple:", &found);
    }
}

#[test]
fn no_match_is_a_ladder_of_conditions() {
    let mut found = Vec::new();
    for file in rust(&["src"]) {
        let lines = file.code().into_iter().filter(|(_, line)| line.contains("match () {"));
        found.extend(lines.map(|(line, _)| format!("{}:{line}", file.path)));
    }
    none("Write `if … else if …`, or match on a value:", &found);
}

/// The definitions with one of these keywords at the start of a line; with `is_free` false, those that are indented.
fn definitions(keywords: &[&str], is_free: bool) -> Vec<Definition> {
    let mut found = Vec::new();
    // A type of a test is found by a search as well.
    let counts_tests = !keywords.contains(&"fn");
    for file in rust(&["src"]).iter().filter(|file| counts_tests || !file.is_test()) {
        for (_, line) in file.code() {
            if line.starts_with(' ') == is_free {
                continue;
            }
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            let modifiers = ["pub", "crate", "super", "in", "self", "agent", "async", "const", "unsafe"];
            let keyword = words.by_ref().find(|word| !modifiers.contains(word));
            if let (Some(keyword), Some(name)) = (keyword, words.next())
                && keywords.contains(&keyword)
            {
                found.push(Definition { name: name.to_owned(), path: file.path.clone() });
            }
        }
    }
    found
}

fn is_no_verb(name: &str) -> bool {
    let has_ending = name.len() > 4 && (name.ends_with("ed") || name.ends_with("ing"));
    NO_VERBS.contains(&name) || has_ending && !name.contains('_') && !VERBS_AND_NOUNS.contains(&name)
}

/// The text in the brackets that `text` opens with.
fn enclosed(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return &text[1..at],
            ')' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// True if a parameter is a pattern of a tuple: `(a, b): (A, B)`.
fn has_tuple(parameters: &str) -> bool {
    parameters.match_indices('(').any(|(at, _)| {
        let starts = parameters[..at].trim_end().is_empty() || parameters[..at].trim_end().ends_with(',');
        let inside = enclosed(&parameters[at..]);
        starts && parameters[at + 1 + inside.len()..].starts_with("):")
    })
}

#[test]
fn tuples_and_verbs_are_told_apart() {
    for (parameters, expected) in [
        ("a: &str, (b, c): (u64, u64)", true),
        ("(b, c): (u64, u64)", true),
        ("a: (u64, u64), f: impl Fn(u64, u64)", false),
        ("", false),
    ] {
        assert_eq!(has_tuple(parameters), expected, "{parameters}");
    }
    for (name, expected) in
        [("told", true), ("limited", true), ("embed", false), ("is_limited", false), ("read", false)]
    {
        assert_eq!(is_no_verb(name), expected, "{name}");
    }
}
