//! Recognises keys by their shape, whatever their source: a file, a log, the output of a command.
//!
//! One pass searches the beginnings of all shapes at once; ordinary text contains hardly any, so that is the whole
//! cost. Only at a match is the rest of the shape checked. A shape requires more than its beginning (length, alphabet,
//! digits among letters), so that names and prose with the same beginning stay as they are.

mod bytes;
mod table;
mod armour;
mod aws;
mod named;

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use armour::{match_armour, material_before, measure_label};
use bytes::{count_run, has_scrambled_word, is_base64, is_in_word, is_random, measure_word};
use table::{KeyRest, SHAPES};

pub(super) use armour::{Goes, follow_key, open_key};

/// An engine that searches all beginnings, and what follows each of them.
type Search = (AhoCorasick, Vec<KeyRest>);

/// For a short text: made in a tenth of the time that the other takes, which a first command waits for.
static SEARCH: LazyLock<Search> = LazyLock::new(|| build_search(AhoCorasickKind::ContiguousNFA));
/// For a long text: several times as fast.
static FAST_SEARCH: LazyLock<Search> = LazyLock::new(|| build_search(AhoCorasickKind::DFA));

fn build_search(kind: AhoCorasickKind) -> Search {
    let rows = SHAPES.iter().flat_map(|(beginnings, rest)| beginnings.iter().map(|beginning| (*beginning, *rest)));
    let (beginnings, rests): (Vec<&str>, _) = rows.unzip();
    let mut engine = AhoCorasick::builder();
    engine.match_kind(MatchKind::LeftmostFirst).kind(Some(kind));
    (engine.build(beginnings).expect("a few dozen short words"), rests)
}

/// Replaces each key in `text` by `mask`; `None` if there is none.
pub(super) fn mask_keys(text: &str, mask: &str) -> Option<String> {
    /// No key is shorter; most notices of ours are, so the search engine need not be built for them.
    const SHORTEST: usize = 8;
    const LONG: usize = 64 * 1024;
    if text.len() < SHORTEST {
        return None;
    }
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut hide = |key: Range<usize>, copied: &mut usize| {
        let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
        out.push_str(&text[*copied..key.start.max(*copied)]);
        out.push_str(mask);
        *copied = key.end;
    };
    let (engine, rests) = if text.len() < LONG { &*SEARCH } else { &*FAST_SEARCH };
    for found in engine.find_iter(text) {
        if found.start() < copied {
            continue;
        }
        let rest = rests[found.pattern().as_usize()];
        let Some(key) = find_key(text, found.range(), rest) else { continue };
        let end = key.end;
        hide(key, &mut copied);
        if matches!(rest, KeyRest::AwsId)
            && let Some(secret) = aws::secret_after_id(&text.as_bytes()[end..])
        {
            hide(end + secret.start..end + secret.end, &mut copied);
        }
    }
    out.map(|out| out + &text[copied..])
}

/// The range of the key with this beginning, if it is one.
fn find_key(text: &str, beginning: Range<usize>, rest: KeyRest) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let (before, after) = (&bytes[..beginning.start], &bytes[beginning.end..]);
    // A beginning inside a word is part of that word, except for these, which are not words, or may follow other names.
    let stands_anywhere = matches!(
        rest,
        KeyRest::Armour
            | KeyRest::ArmourEnd
            | KeyRest::UserInfo
            | KeyRest::Bot
            | KeyRest::AwsSecret
            | KeyRest::SecretPath
            | KeyRest::Variable
    );
    if !stands_anywhere && before.last().is_some_and(|byte| is_in_word(*byte)) {
        return None;
    }
    let length = match rest {
        KeyRest::Plain(least) => {
            Some(count_run(after, u8::is_ascii_alphanumeric)).filter(|length| *length >= least)
        }
        KeyRest::Capitals(exact) => is_capitals(after, exact).then_some(exact),
        KeyRest::AwsId => is_capitals(after, 16).then_some(16),
        KeyRest::Hex(exact) => {
            let is_digit = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
            (count_run(after, is_digit) == exact && measure_word(after) == exact).then_some(exact)
        }
        KeyRest::Random(least) => {
            let length = measure_word(after);
            (length >= least && is_random(&after[..length])).then_some(length)
        }
        KeyRest::Scrambled(least) => {
            let length = measure_word(after);
            (length >= least && has_scrambled_word(&after[..length])).then_some(length)
        }
        KeyRest::BotParts => named::rest_of_bot_token(after),
        KeyRest::Dotted(id, secret) => match_dotted(after, id, secret),
        KeyRest::WebToken => web_token(after),
        KeyRest::Armour => match_armour(after),
        // The names and addresses before these stay, to show what is hidden.
        KeyRest::AwsSecret => {
            return aws::secret_after_name(after).map(|found| shift_range(found, beginning.end));
        }
        KeyRest::Base64(least) => {
            let length = count_run(after, |byte| is_base64(*byte));
            return (length >= least && is_random(&after[..length]))
                .then(|| beginning.end..beginning.end + length);
        }
        KeyRest::Bearer => return named::token_of_bearer(after).map(|found| shift_range(found, beginning.end)),
        KeyRest::Basic => return named::pair_of_basic(after).map(|found| shift_range(found, beginning.end)),
        KeyRest::Netrc => return named::password_of_netrc(after).map(|found| shift_range(found, beginning.end)),
        KeyRest::Variable => {
            return named::value_of_variable(before, after).map(|found| shift_range(found, beginning.end));
        }
        KeyRest::SecretPath => return secret_path(after).map(|found| shift_range(found, beginning.end)),
        KeyRest::UserInfo => return match_password(before, after).map(|found| shift_range(found, beginning.end)),
        KeyRest::Bot => return match_bot(before, after),
        KeyRest::ArmourEnd => {
            let length = measure_label(after)?;
            return Some(material_before(before)?..beginning.end + length);
        }
    };
    length.map(|length| beginning.start..beginning.end + length)
}

fn shift_range(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

fn is_capitals(after: &[u8], exact: usize) -> bool {
    let is_capital = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    count_run(after, is_capital) == exact && measure_word(after) == exact
}

fn match_dotted(after: &[u8], id: usize, secret: usize) -> Option<usize> {
    let rest = after.get(id..)?.strip_prefix(b".")?;
    (measure_word(after) == id && measure_word(rest) == secret).then_some(id + 1 + secret)
}

/// `T0/B0/LETTERS`: the last part of the path, if it is random.
fn secret_path(after: &[u8]) -> Option<Range<usize>> {
    let length = count_run(after, |byte| is_in_word(*byte) || *byte == b'/');
    let path = &after[..length];
    let start = path
        .iter()
        .position(u8::is_ascii_digit)
        .map(|digit| path[..digit].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1))?;
    is_random(path).then_some(start..length)
}

/// `123456789:AA…`, where the beginning is `:AA`.
fn match_bot(before: &[u8], after: &[u8]) -> Option<Range<usize>> {
    const SECRET: usize = 33;
    let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let start = before.len() - digits;
    let stands_alone = !before[..start].last().is_some_and(|byte| is_in_word(*byte));
    let is_bot = (8..=10).contains(&digits) && stands_alone && measure_word(after) == SECRET;
    is_bot.then(|| start..before.len() + b":AA".len() + SECRET)
}

/// The password of `user:password@host`, unless it is a placeholder (`${PASSWORD}`, `<password>`, `password`).
fn match_password(before: &[u8], after: &[u8]) -> Option<Range<usize>> {
    const SHORTEST: usize = 3;
    const LONGEST: usize = 512;
    const STAND_INS: [&[u8]; 10] =
        [b"password", b"passwd", b"pass", b"pwd", b"secret", b"token", b"...", b"***", b"xxx", b"PASSWORD"];
    if !before.last().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let is_over =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<');
    let authority = &after[..count_run(&after[..after.len().min(LONGEST)], |byte| !is_over(byte))];
    let end = authority.iter().rposition(|byte| *byte == b'@')?;
    let start = authority[..end].iter().position(|byte| *byte == b':')? + 1;
    let password = &authority[start..end];
    let stands_in = STAND_INS.contains(&password)
        || password.first().is_some_and(|byte| matches!(byte, b'$' | b'{' | b'[' | b'(' | b'%' | b'*'))
        || !authority[end + 1..].first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'[');
    (password.len() >= SHORTEST && !stands_in).then_some(start..end)
}

fn web_token(after: &[u8]) -> Option<usize> {
    const LEAST: usize = 10;
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=');
    let mut length = 0;
    for opening in [b"".as_slice(), b".eyJ", b"."] {
        let part = after[length..].strip_prefix(opening)?;
        let size = count_run(part, is_base64);
        if size < LEAST {
            return None;
        }
        length += opening.len() + size;
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::mask_keys;

    fn masked(text: &str) -> String {
        mask_keys(text, "***").unwrap_or_else(|| text.to_owned())
    }

    /// Made up here, so that no file of the repository contains text that looks like a key.
    fn letters(count: usize) -> String {
        "a1B2c3D4e5F6g7H8".chars().cycle().take(count).collect()
    }

    fn hex(count: usize) -> String {
        "0a1b2c3d4e5f6789".chars().cycle().take(count).collect()
    }

    #[test]
    fn every_shape_is_known() {
        let table = [
            format!("sk-{}", letters(48)),
            format!("sk-proj-{}_x-{}", letters(40), letters(20)),
            format!("sk-ant-api03-{}-AA", letters(90)),
            format!("ghp_{}", letters(36)),
            format!("ghs_{}", letters(36)),
            format!("github_pat_{}_{}", letters(22), letters(59)),
            format!("glpat-{}", letters(20)),
            format!("npm_{}", letters(36)),
            format!("hf_{}", letters(34)),
            format!("AKIA{}", letters(16).to_uppercase()),
            format!("AIza{}", letters(35)),
            format!("xoxb-1234567890-{}", letters(24)),
            format!("sk_live_{}", letters(24)),
            format!("eyJ{}.eyJ{}.{}", letters(20), letters(40), letters(43)),
            format!("sk_test_{}", letters(24)),
            format!("sk-or-v1-{}", hex(64)),
            format!("gsk_{}", letters(52)),
            format!("xai-{}", letters(80)),
            format!("pplx-{}", letters(48)),
            format!("pypi-AgEIcHlwaS5vcmc{}", letters(80)),
            format!("dckr_pat_{}", letters(27)),
            format!("hvs.CAES{}", letters(90)),
            format!("SG.{}.{}", letters(22), letters(43)),
            format!("SK{}", hex(32)),
            format!("shpat_{}", hex(32)),
            format!("dop_v1_{}", hex(64)),
            format!("dapi{}", hex(32)),
            format!("glsa_{}_{}", letters(32), hex(8)),
            format!("lin_api_{}", letters(40)),
            format!("ya29.{}", letters(60)),
            format!("GOCSPX-{}", letters(28)),
            format!("AGE-SECRET-KEY-1{}", letters(58).to_uppercase()),
            format!("1234567890:AA{}", letters(33)),
            "glpat-aB3_x-Y7zQ-k2_Lm9pR4".to_owned(),
            "glpat-a-b_cDeF-gHiJ_kLmN-oP".to_owned(),
            format!("key-{}", hex(32)),
            format!("MTE{}.Gx{}.{}", letters(21), letters(4), letters(38)),
            format!("sbp_{}", hex(40)),
            format!("sb_secret_{}_{}", letters(22), hex(8)),
        ];
        for key in table {
            for (before, after) in
                [("", ""), ("key=", "\n"), ("\"", "\","), ("https://x?k=", "&y=1"), ("中", "。")]
            {
                let text = format!("{before}{key}{after}");
                assert_eq!(masked(&text), format!("{before}***{after}"), "{text}");
            }
            assert_eq!(masked(&format!("{key} and {key}")), "*** and ***");
        }
    }

    #[test]
    fn keys_behind_a_name_go_and_the_name_stays() {
        let aws = format!("{}/+{}", letters(20), letters(18));
        let id = format!("AKIA{}", letters(16).to_uppercase());
        let base64 = format!("{}==", letters(86));
        for (text, expected) in [
            (format!("aws_secret_access_key = {aws}\n"), "aws_secret_access_key = ***\n"),
            (format!("export AWS_SECRET_ACCESS_KEY='{aws}'"), "export AWS_SECRET_ACCESS_KEY='***'"),
            (format!("{{\"SecretAccessKey\": \"{aws}\"}}"), "{\"SecretAccessKey\": \"***\"}"),
            (format!("AWS_ACCESS_KEY_ID={id}\nsecret {aws}\n"), "AWS_ACCESS_KEY_ID=***\nsecret ***\n"),
            (format!("{id},{aws}"), "***,***"),
            (format!("AccountName=a;AccountKey={base64};x"), "AccountName=a;AccountKey=***;x"),
            (
                format!("https://hooks.slack.com/services/T0{0}/B0{0}/{1}", letters(8), letters(24)),
                "https://hooks.slack.com/services/***",
            ),
            (
                format!("'https://discord.com/api/webhooks/123456789012345678/{}'", letters(68)),
                "'https://discord.com/api/webhooks/***'",
            ),
            ("postgres://app:s3cr3t@db:5432/app".to_owned(), "postgres://app:***@db:5432/app"),
            (format!("Authorization: Bearer {}", letters(24)), "Authorization: Bearer ***"),
            (format!("-H 'authorization: bearer {}.{}'", hex(20), hex(9)), "-H 'authorization: bearer ***'"),
            ("\"Authorization\": \"Basic dXNlcjpwYXNzd29yZA==\"".to_owned(), "\"Authorization\": \"Basic ***\""),
            ("X_API_TOKEN=q7Rt-22_pLx9\n".to_owned(), "X_API_TOKEN=***\n"),
            ("export DB_PASSWORD='hunter2hunter2'".to_owned(), "export DB_PASSWORD='***'"),
            (
                "machine h.example login me password s3cr3t\n".to_owned(),
                "machine h.example login me password ***\n",
            ),
            ("machine h\n  login me\n  password s3cr3t".to_owned(), "machine h\n  login me\n  password ***"),
            ("redis://:s3cr3t@cache".to_owned(), "redis://:***@cache"),
            ("(mongodb+srv://u:a@b@host/)".to_owned(), "(mongodb+srv://u:***@host/)"),
            ("http://u:s3cr3t@[::1]/".to_owned(), "http://u:***@[::1]/"),
            (
                format!("https://u:{}@host https://v:s3cr3t@host", letters(20)),
                "https://u:***@host https://v:***@host",
            ),
        ] {
            assert_eq!(masked(&text), expected, "{text}");
        }
    }

    #[test]
    fn private_keys_go_as_a_whole_however_they_are_quoted() {
        let (begin, end) = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----");
        let line = letters(64);
        let table = [
            (format!("a\n{begin}\n{line}\n{line}\nab==\n{end}\nb"), "a\n***\nb"),
            (format!("  1\t{begin}\n  2\t{line}\n  3\t{end}\n  4\tb"), "  1\t***\n  4\tb"),
            (format!("{{\"key\": \"{begin}\\n{line}\\n{end}\\n\"}}"), "{\"key\": \"***\\n\"}"),
            (format!("{begin}\nProc-Type: 4,ENCRYPTED\n\n{line}\n{end}"), "***"),
            (format!("{begin}\n{line}\n{line}\n[cut]"), "***\n[cut]"),
            (format!("the rest:\n{line}\nab==\n{end}\nb"), "the rest:\n***\nb"),
        ];
        for (text, expected) in table {
            assert_eq!(masked(&text), expected, "{text}");
        }
    }

    #[test]
    fn what_merely_looks_alike_stays() {
        for text in [
            "task-list-of-the-things-that-are-still-to-be-done-2024",
            "sk-loading-spinner-container-with-2-columns",
            "sk-550e8400-e29b-41d4-a716-446655440000",
            "the prefix is `sk-`, `ghp_` or AKIA",
            "AKIAN is a name, and AKIA0123456789ABCDEFGHIJ is too long",
            "npm_config_registry=https://registry.npmjs.org/",
            "npm_package_dependencies_some_thing_else",
            "eyJhbGciOiJIUzI1NiJ9 alone says nothing",
            "words before -----END PRIVATE KEY----- and after",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "if text.contains(\"-----BEGIN PRIVATE KEY-----\") { panic!() }",
            "hf_hub_download(repo_id, filename)",
            "aws_secret_access_key = ${AWS_SECRET_ACCESS_KEY}",
            "AWS_SECRET_ACCESS_KEY is 40 characters long and nothing else says so",
            "SecretAccessKey: da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "SKIP_THIS and SK0123456789abcdef",
            "SG.Alias.ParameterNames",
            "pypi-publish-to-the-test-index-and-then-to-the-real-one-when-all-is-green",
            "gsk_module_name xai-grok hvs.method() dapi_version",
            "postgres://user:password@localhost/db",
            "postgres://${USER}:${PASSWORD}@${HOST}/db and http://{user}:{pass}@{host}",
            "https://example.com:8080/a@b and ssh://git@github.com:22/x",
            "https://user:<password>@host and //a:b@c and time 10:AA",
            "http://[^:]+:[^@]+@",
            "https://hooks.slack.com/services/T00000000/B00000000/your-secret-goes-here",
            "https://discord.com/api/webhooks/ID/TOKEN",
            "AccountKey=… and SharedAccessKey=<key>",
            "glpat-my-long-token-name-2024 glpat-<your-token> glpat-xxxxxxxxxxxxxxxxxxxx",
            "Authorization: Bearer ${TOKEN}, Bearer <token>, Bearer authentication_of_users, Bearer token1",
            "Basic usage of basic information, Basic authentication, `Basic realm=\"x\"`",
            "API_KEY=os.environ[\"API_KEY\"] TOKEN=get_token_v2(a) SECRET=$(cat x) PASSWORD=password123",
            "CACHE_KEY=deps-v1-linux GITHUB_TOKEN=${{ secrets.GITHUB_TOKEN }} MAX_TOKEN=1234567890",
            "Foo.TOKEN=abc123def456, myTOKEN=abc123def456, API_KEY=your_api_key_here",
            "the machine runs a login shell and asks for a password at once",
            "machine host login user password $PASSWORD",
            "key-value-store key-0123abcd MTA NODE_ENV.MODULE.OTHER ODBC.driver.manager",
        ] {
            assert_eq!(mask_keys(text, "***"), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn ordinary_text_is_untouched(
            words in prop::collection::vec(
                prop_oneof![
                    "[a-z]{1,12}",
                    "[A-Z][a-z]{1,10}",
                    "[0-9a-f]{7,40}",
                    "[a-z]{2,8}(-[a-z0-9]{1,8}){1,6}",
                    "[a-z]{2,8}(_[a-z0-9]{1,8}){1,6}",
                    "(sk|glpat|xoxb)-[a-z]{3,9}(-[a-z]{3,9}){1,4}",
                    "/?[a-z]{1,8}(/[a-zA-Z0-9._]{1,12}){1,5}",
                    "[A-Za-z0-9+/]{40,80}",
                    "\\PC{0,20}",
                ],
                0..40,
            )
        ) {
            let text = words.join(" ");
            prop_assert_eq!(mask_keys(&text, "***"), None);
        }

        #[test]
        fn anything_can_be_looked_through(
            text in "(sk-|ghp_|eyJ|-----(BEGIN|END) |PRIVATE KEY-----|[a-zA-Z0-9]{0,40}|[ .\n]|\\PC){0,20}"
        ) {
            let shown = masked(&text);
            prop_assert!(shown.len() <= text.len());
        }
    }
}
