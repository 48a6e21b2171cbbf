//! Finds the tools that a text forbids: `Never use run_command.`, a list under `Forbidden tools:`, `不要调用 write_file。`
//!
//! Only unconditional sentences count: one with a qualification (`unless asked`, `to read files`) restricts a tool that
//! may well be on, and one that only mentions a tool forbids nothing. A missed ban is better than a false one.

/// A line that forbids a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ban<'a> {
    pub tool: &'a str,
    /// The line, without surrounding spaces.
    pub line: &'a str,
}

const NEGATIONS: [&[&str]; 23] = [
    &["do", "not"],
    &["don't"],
    &["must", "not"],
    &["must", "never"],
    &["mustn't"],
    &["may", "not"],
    &["may", "never"],
    &["should", "not"],
    &["should", "never"],
    &["shouldn't"],
    &["shall", "not"],
    &["will", "not"],
    &["can", "not"],
    &["cannot"],
    &["can't"],
    &["are", "not", "allowed", "to"],
    &["are", "not", "permitted", "to"],
    &["are", "forbidden", "to"],
    &["are", "prohibited", "from"],
    &["refrain", "from"],
    &["never", "ever"],
    &["never"],
    &["avoid"],
];
const VERBS: [&str; 10] =
    ["use", "using", "call", "calling", "run", "running", "invoke", "invoking", "execute", "executing"];
/// Words that may precede a negation meant for the model.
const SUBJECTS: [&str; 12] =
    ["you", "please", "and", "but", "also", "so", "then", "agent", "assistant", "we", "important", "always"];
const DETERMINERS: [&str; 8] = ["the", "any", "of", "tool", "tools", "these", "this", "following"];
const PASSIVES: [&[&str]; 8] = [
    &["forbidden"],
    &["prohibited"],
    &["banned"],
    &["disallowed"],
    &["off-limits"],
    &["off", "limits"],
    &["not", "allowed"],
    &["not", "permitted"],
];
const CONDITIONS: [&str; 13] = [
    "if", "unless", "when", "whenever", "until", "before", "after", "except", "without", "while", "once",
    "instead", "than",
];
/// Words that qualify the rest of the sentence, up to its comma.
const OPENINGS: [&str; 8] = ["for", "to", "in", "during", "on", "with", "as", "at"];

const HAN_NEGATIONS: [&str; 17] = [
    "禁止",
    "严禁",
    "不要",
    "不得",
    "不可以",
    "不可",
    "不能",
    "不许",
    "不准",
    "不应该",
    "不应",
    "切勿",
    "请勿",
    "绝不",
    "决不",
    "不允许",
    "别",
];
const HAN_VERBS: [&str; 5] = ["使用", "调用", "运行", "执行", "用"];
/// Words that forbid without a verb.
const HAN_BANS: [&str; 3] = ["禁止", "严禁", "禁用"];
const HAN_CONDITIONS: [&str; 14] =
    ["如果", "若", "除非", "除了", "之前", "以前", "之后", "以后", "当", "时", "未经", "直到", "情况下", "用户"];
/// Phrases that look like a condition but are not.
const UNCONDITIONAL: [&str; 9] = [
    "在任何情况下",
    "任何时候",
    "当前",
    "时间",
    "同时",
    "随时",
    "under any circumstances",
    "in any case",
    "at any time",
];
const HAN_AND: [&str; 6] = ["和", "或", "与", "及", "以及", "或者"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// In lower case.
    Word(String),
    /// A run of Chinese characters.
    Han(String),
    Mark(char),
}

/// The tools that a text forbids, each once per line.
pub(super) fn find_bans<'a>(text: &'a str, tools: &[&'a str]) -> Vec<Ban<'a>> {
    let mut found: Vec<Ban<'a>> = Vec::new();
    let (mut in_code, mut in_list) = (false, false);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            in_code = !in_code;
        }
        // This runs for every prompt before its first request: most lines can be skipped.
        if in_code || line.is_empty() || !(in_list || may_ban(line, tools)) {
            continue;
        }
        let (is_item, rest) = split_item(line);
        let of_list = if in_list && is_item { named_first(&split_tokens(rest), tools) } else { Vec::new() };
        in_list = (in_list && is_item) || heads_a_list(rest);
        let of_sentences = split_sentences(rest).into_iter().flat_map(|sentence| of_sentence(&sentence, tools));
        for tool in of_list.into_iter().chain(of_sentences) {
            let ban = Ban { tool, line };
            if !found.contains(&ban) {
                found.push(ban);
            }
        }
    }
    found
}

/// True if a line names a tool, or could be the head of a list of them.
fn may_ban(line: &str, tools: &[&str]) -> bool {
    const HEADS: [&str; 5] = ["forbidden", "prohibited", "banned", "disallowed", "禁"];
    let line = line.to_ascii_lowercase();
    HEADS.iter().chain(tools).any(|word| line.contains(word))
}

/// Returns true and the text if a line is an item of a list, else false and the line.
fn split_item(line: &str) -> (bool, &str) {
    let rest = line.trim_start_matches('#').trim_start();
    if let Some(rest) = ["- ", "* ", "+ ", "• "].iter().find_map(|mark| rest.strip_prefix(mark)) {
        return (true, rest.trim_start());
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    match rest[digits..].strip_prefix(['.', ')', '、']) {
        Some(rest) if digits > 0 => (true, rest.trim_start()),
        _ => (false, rest),
    }
}

/// `Forbidden tools:`, `禁止使用的工具：`, with the list on this line or below.
fn heads_a_list(line: &str) -> bool {
    let head = line.split([':', '：']).next().unwrap_or_default();
    let tokens = split_tokens(head);
    if is_conditional(head) || tokens.len() > 6 {
        return false;
    }
    let word = |wanted: &[&str]| {
        tokens.iter().any(|token| matches!(token, Token::Word(word) if wanted.contains(&word.as_str())))
    };
    let forbids = word(&["forbidden", "prohibited", "banned", "disallowed"]);
    let han = tokens.iter().any(|token| matches!(token, Token::Han(run) if HAN_BANS.iter().any(|ban| run.starts_with(ban)) && run.ends_with("工具")));
    (forbids && (tokens.len() == 1 || word(&["tool", "tools"]))) || han
}

/// The sentences of a line. A full stop ends one only before a space, so not in `v1.0`.
fn split_sentences(line: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let ends = match c {
            '.' => chars.peek().is_none_or(|next| next.is_whitespace()),
            c => ";；。!！?？".contains(c),
        };
        match sentences.last_mut() {
            Some(sentence) if !ends => sentence.push(c),
            _ => sentences.push(String::new()),
        }
    }
    sentences
}

fn of_sentence<'a>(sentence: &str, tools: &[&'a str]) -> Vec<&'a str> {
    let sentence = UNCONDITIONAL.iter().fold(sentence.to_lowercase(), |text, phrase| text.replace(phrase, ""));
    if is_conditional(&sentence) {
        return Vec::new();
    }
    let tokens = split_tokens(&sentence);
    if matches!(tokens.first(), Some(Token::Word(word)) if OPENINGS.contains(&word.as_str())) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let named = match_active(&tokens, at)
            .map(|at| named_first(&tokens[at..], tools))
            .or_else(|| match_passive(&tokens, at, tools))
            .unwrap_or_default();
        found.extend(named);
    }
    if heads_a_list(&sentence)
        && let Some(colon) = tokens.iter().position(|token| matches!(token, Token::Mark(':' | '：')))
    {
        found.extend(named_first(&tokens[colon + 1..], tools));
    }
    found
}

fn is_conditional(sentence: &str) -> bool {
    split_tokens(sentence).iter().any(|token| match token {
        Token::Word(word) => CONDITIONS.contains(&word.as_str()),
        Token::Han(run) => HAN_CONDITIONS.iter().any(|condition| run.contains(condition)),
        Token::Mark(_) => false,
    })
}

/// The index of the forbidden tools, if a ban begins here: `never use …`, `不要使用…`.
fn match_active(tokens: &[Token], at: usize) -> Option<usize> {
    if let Token::Han(run) = &tokens[at] {
        return han_forbids(run).then_some(at + 1);
    }
    let is_meant = match at.checked_sub(1).map(|before| &tokens[before]) {
        None | Some(Token::Mark(_)) => true,
        Some(Token::Word(word)) => SUBJECTS.contains(&word.as_str()),
        Some(Token::Han(_)) => false,
    };
    let rest = &tokens[at..];
    let negation = NEGATIONS.iter().find(|negation| begins_with(rest, negation)).filter(|_| is_meant)?;
    let verb = at + negation.len();
    matches!(tokens.get(verb), Some(Token::Word(word)) if VERBS.contains(&word.as_str())).then_some(verb + 1)
}

/// `run_command is forbidden`, `run_command must not be used`, `run_command 禁止使用`: the tools.
fn match_passive<'a>(tokens: &[Token], at: usize, tools: &[&'a str]) -> Option<Vec<&'a str>> {
    let denied = |back: usize| {
        at.checked_sub(back).is_some_and(|at| matches!(&tokens[at], Token::Word(word) if word == "not"))
    };
    let in_a_list = at.checked_sub(1).is_some_and(|before| separates_tools(&tokens[before]));
    let (named, after) = match_list(&tokens[at..], tools);
    if named.is_empty() || in_a_list || (1..=3).any(denied) {
        return None;
    }
    let rest = &tokens[at + after..];
    if let Some(Token::Han(run)) = rest.first() {
        return (han_is_forbidden(run) && ends_ban(&rest[1..])).then_some(named);
    }
    let said = match rest {
        [Token::Word(verb), rest @ ..] if verb == "is" || verb == "are" => {
            PASSIVES.iter().any(|words| begins_with(rest, words) && ends_ban(&rest[words.len()..]))
        }
        rest => NEGATIONS.iter().filter(|negation| begins_with(rest, negation)).any(|negation| {
            let rest = &rest[negation.len()..];
            let used = ["used", "called", "invoked", "run", "executed"];
            used.iter().any(|used| begins_with(rest, &["be", used]) && ends_ban(&rest[2..]))
        }),
    };
    said.then_some(named)
}

/// The tools that are named here, if nothing after them qualifies.
fn named_first<'a>(tokens: &[Token], tools: &[&'a str]) -> Vec<&'a str> {
    let skipped = tokens.iter().take_while(|token| match token {
        Token::Word(word) => DETERMINERS.contains(&word.as_str()) && !tools.contains(&word.as_str()),
        Token::Mark(c) => matches!(c, ':' | '：'),
        Token::Han(_) => false,
    });
    let tokens = &tokens[skipped.count()..];
    let (named, after) = match_list(tokens, tools);
    if ends_ban(&tokens[after..]) { named } else { Vec::new() }
}

/// A list of tools, and the number of its words.
fn match_list<'a>(tokens: &[Token], tools: &[&'a str]) -> (Vec<&'a str>, usize) {
    let (mut named, mut at, mut after) = (Vec::new(), 0, 0);
    while let Some(Token::Word(word)) = tokens.get(at) {
        let Some(tool) = tools.iter().find(|tool| tool.eq_ignore_ascii_case(word)) else { break };
        named.push(*tool);
        at += 1;
        let is_tool = match tokens.get(at) {
            Some(Token::Word(word)) => word == "tool" || word == "tools",
            Some(Token::Han(run)) => run == "工具",
            _ => false,
        };
        at += usize::from(is_tool);
        after = at;
        let article = |token: &Token| matches!(token, Token::Word(word) if word == "the");
        at += tokens[at..].iter().take_while(|token| separates_tools(token) || article(token)).count();
    }
    (named, after)
}

fn separates_tools(token: &Token) -> bool {
    match token {
        Token::Word(word) => ["and", "or", "nor"].contains(&word.as_str()),
        Token::Han(run) => HAN_AND.contains(&run.as_str()),
        Token::Mark(c) => ",，、/&".contains(*c),
    }
}

/// True if what comes next leaves the ban as it is.
fn ends_ban(rest: &[Token]) -> bool {
    match rest {
        [] | [Token::Mark(_), ..] => true,
        rest if begins_with(rest, &["and", "then"]) => false,
        rest if begins_with(rest, &["at", "all"]) => ends_ban(&rest[2..]),
        rest if begins_with(rest, &["ever"]) => ends_ban(&rest[1..]),
        [first, ..] => separates_tools(first),
    }
}

fn begins_with(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len()
        && tokens.iter().zip(words).all(|(token, word)| matches!(token, Token::Word(said) if said == word))
}

/// `…不要使用`, `…禁止`, before what it forbids.
fn han_forbids(run: &str) -> bool {
    let mut run = run;
    while let Some(shorter) = ["工具", "任何", "以下", "下列", "这些"].iter().find_map(|end| run.strip_suffix(end))
    {
        run = shorter;
    }
    let verb = HAN_VERBS.iter().find_map(|verb| run.strip_suffix(verb));
    HAN_BANS.iter().any(|ban| run.ends_with(ban))
        || verb.is_some_and(|before| HAN_NEGATIONS.iter().any(|negation| before.ends_with(negation)))
}

/// `禁止使用`, `不得被调用`, after what it forbids.
fn han_is_forbidden(run: &str) -> bool {
    let mut run = run;
    while let Some(rest) =
        ["工具", "已", "被", "是", "一律", "均", "都"].iter().find_map(|word| run.strip_prefix(word))
    {
        run = rest;
    }
    let run = run.trim_end_matches(['的', '了']);
    let negations = HAN_NEGATIONS.iter().filter_map(|negation| run.strip_prefix(negation));
    HAN_BANS.contains(&run)
        || negations.map(|rest| rest.trim_start_matches('被')).any(|verb| HAN_VERBS.contains(&verb))
}

/// Words, runs of Chinese characters, and punctuation; quotes and emphasis are skipped.
fn split_tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut is_joined = false;
    for c in text.replace('’', "'").chars() {
        let is_han = matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
        let is_word = !is_han && (c.is_alphanumeric() || "_-'".contains(c));
        match tokens.last_mut() {
            Some(Token::Word(word)) if is_joined && is_word => word.extend(c.to_lowercase()),
            Some(Token::Han(run)) if is_joined && is_han => run.push(c),
            _ if is_word => tokens.push(Token::Word(c.to_lowercase().collect())),
            _ if is_han => tokens.push(Token::Han(c.to_string())),
            _ if c.is_whitespace() || "`*\"“”‘「」".contains(c) => {}
            _ => tokens.push(Token::Mark(c)),
        }
        is_joined = is_word || is_han;
    }
    for token in &mut tokens {
        if let Token::Word(word) = token {
            let plain = word.trim_matches(['_', '-', '\'']);
            *token = if plain.is_empty() { Token::Mark('-') } else { Token::Word(plain.to_owned()) };
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::find_bans;

    const TOOLS: [&str; 5] = ["fetch_url", "grep", "read_file", "run_command", "write_file"];

    fn forbidden(text: &str) -> String {
        find_bans(text, &TOOLS).iter().map(|ban| ban.tool).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_forbidden_is_found() {
        for (text, expected) in [
            ("Never use `run_command`.", "run_command"),
            ("Do not call run_command, `write_file` or the fetch_url tool.", "run_command write_file fetch_url"),
            ("You **must not** use the `run_command` tool; read instead.", "run_command"),
            ("- Don’t ever mind. Don't run \"grep\" at all!", "grep"),
            ("IMPORTANT: never invoke `fetch_url` (it is slow), answer from memory.", "fetch_url"),
            ("Please do not use any of the tools: `grep`", "grep"),
            ("The `run_command` tool is forbidden.", "run_command"),
            ("Use of run_command is not allowed, ever.", "run_command"),
            ("`run_command` and `write_file` must not be used.", "run_command write_file"),
            ("In any case never use grep. You are not allowed to use `run_command`", "grep run_command"),
            ("Forbidden tools: run_command, write_file", "run_command write_file"),
            (
                "## Forbidden tools\n\n- `run_command`: too strong\n- fetch_url\n\nThen `grep`.",
                "run_command fetch_url",
            ),
            ("Forbidden:\n1. run_command", "run_command"),
            ("不要使用 `run_command`。", "run_command"),
            ("禁止调用run_command、write_file和`fetch_url`工具。", "run_command write_file fetch_url"),
            ("在任何情况下都不得使用任何工具 grep", "grep"),
            ("`run_command` 工具禁止使用", "run_command"),
            ("run_command、grep 不得被调用，请直接回答。", "run_command grep"),
            ("禁用工具：run_command", "run_command"),
            ("禁止使用的工具：\n- run_command\n- grep\n", "run_command grep"),
        ] {
            assert_eq!(forbidden(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_mentioned_or_restricted_is_not_forbidden() {
        for text in [
            "Do not guess; use `read_file`.",
            "Do not guess, use `read_file`.",
            "Do not use `run_command` to read files.",
            "Never use `write_file` before reading the file.",
            "Unless asked, never use `write_file`.",
            "If tests fail, do not call `run_command`.",
            "Never use `run_command`, unless you are asked to.",
            "To search, do not use `run_command`: use `grep`.",
            "For small edits, do not use `write_file`.",
            "Never hesitate to use `grep`.",
            "Do not forget to call `read_file`.",
            "Never use anything but `read_file`.",
            "Do not use tools other than `read_file`.",
            "Do not use `run_command` for what `grep` does.",
            "Do not call `read_file` twice.",
            "Never call `write_file` and then `run_command`.",
            "Not using `read_file` is forbidden.",
            "Subagents must not use `run_command`.",
            "Always use `run_command`. Never lie.",
            "Never run greps.",
            "Never use run_commands.",
            "Guessing is forbidden: `read_file` tells.",
            "- `grep` finds text",
            "```\nNever use `grep`.\n```",
            "不要猜，使用 `read_file`。",
            "不要忘记使用 `read_file`。",
            "未经允许不要使用 `write_file`。",
            "如果测试失败，不要使用 `run_command`。",
            "不要使用 `run_command` 来读取文件。",
            "读取文件时不要使用 `run_command`。",
            "可以使用 `grep`，不要重复。",
            "不要不使用 `read_file`。",
        ] {
            assert_eq!(forbidden(text), "", "{text}");
        }
    }

    #[test]
    fn the_line_is_told() {
        let found = find_bans("You help.\n\n  - Never use `grep`.  \n", &TOOLS);
        assert_eq!(found[0].line, "- Never use `grep`.");
    }
}
