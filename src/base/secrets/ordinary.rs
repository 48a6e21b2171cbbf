//! Recognises ordinary values: a word, a number, a path, a host. Variables that are named like secrets have such values
//! too (`KEYRING=disabled`), and masking them wherever they occur would make text unreadable.

/// Shorter values are placeholders.
const SHORTEST: usize = 8;

/// True if `value` is too short or too plain to be distinguished from ordinary text. A longer phrase is not: words
/// joined by hyphens can be passwords, such as `my-own-token`.
pub fn is_ordinary(value: &str) -> bool {
    const LONGEST_NUMBER: usize = 15;
    const SHORTEST_PHRASE: usize = 12;
    let value = value.trim();
    if value.len() < SHORTEST || (value.len() <= LONGEST_NUMBER && value.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return true;
    }
    if is_path(value) {
        return true;
    }
    let joins = |c: char| matches!(c, '-' | '_' | ' ');
    let is_phrase = value.len() >= SHORTEST_PHRASE
        && value.contains(joins)
        && value.chars().all(|c| c.is_alphanumeric() || joins(c));
    !is_phrase
        && value
            .split(|c: char| c.is_whitespace() || "-_./:,;@~\\".contains(c))
            .filter(|word| !word.is_empty())
            .all(is_word)
}

/// True for an absolute path, or one below the home directory, judging by its beginning.
fn is_path(value: &str) -> bool {
    if value.starts_with("~/") {
        return true;
    }
    let top = value.strip_prefix('/').and_then(|rest| rest.split_once('/'));
    top.is_some_and(|(top, _)| is_top(top))
}

fn is_top(name: &str) -> bool {
    matches!(
        name,
        "home"
            | "Users"
            | "root"
            | "tmp"
            | "var"
            | "run"
            | "opt"
            | "etc"
            | "usr"
            | "dev"
            | "proc"
            | "sys"
            | "mnt"
            | "media"
            | "srv"
            | "private"
            | "Library"
            | "Applications"
            | "nix"
            | "data"
            | "app"
            | "workspace"
    )
}

/// True for letters in which capitals only begin words, only digits, or letters with up to three digits after them.
pub(super) fn is_word(word: &str) -> bool {
    const LONGEST: usize = 24;
    const LONGEST_NUMBER: usize = 8;
    const MOST_DIGITS: usize = 3;
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = word.len() - letters.len();
    if letters.is_empty() {
        return digits <= LONGEST_NUMBER;
    }
    let is_of_letters = letters.chars().all(char::is_alphabetic);
    digits <= MOST_DIGITS && letters.chars().count() <= LONGEST && is_of_letters && has_case_of_words(letters)
}

/// True for `word`, `Word`, `WORD`, `camelCase`: no isolated capitals inside, unlike in random text.
fn has_case_of_words(letters: &str) -> bool {
    if letters.chars().all(char::is_uppercase) {
        return true;
    }
    let humps = letters.split(char::is_uppercase).skip(1).filter(|hump| !hump.is_empty()).count();
    let capitals = letters.chars().filter(|c| c.is_uppercase()).count();
    let is_long =
        letters.split(char::is_uppercase).skip(1).all(|hump| hump.is_empty() || hump.chars().count() >= 2);
    is_long && capitals <= humps + 2
}

#[cfg(test)]
mod tests {
    use super::is_ordinary;

    #[test]
    fn words_numbers_paths_and_hosts_are_ordinary() {
        for value in [
            "",
            "true",
            "disabled",
            "production",
            "development",
            "required",
            "not-needed",
            "read-only",
            "localhost",
            "unlimited",
            "keyring.backends.null.Keyring",
            "SecretService",
            "AES-256-GCM",
            "ed25519",
            "us-east-1",
            "100000000",
            "1700000000000",
            "2024-01-31",
            "/run/user/1000/keyring/ssh",
            "/tmp/ssh-XXq7Zk2LpQ/agent.4242",
            "/home/me/.config/gcloud/application_default_credentials.json",
            "~/.ssh/id_ed25519",
            "db-1.prod.internal:5432",
            "https://keys.example.com/v1",
            "vault.example.com",
            "me@example.com",
        ] {
            assert!(is_ordinary(value), "{value}");
        }
    }

    #[test]
    fn what_a_generator_or_a_careful_person_made_is_not() {
        for value in [
            "sk-test-0123456789-never-shown",
            "token-0123456789-never-shown",
            "header-0123456789-secret",
            "correct-horse-battery-staple",
            "correct horse battery staple",
            "hunter2hunter2",
            "abcdefgh-token",
            "aX9$kq2L",
            "p@ssw0rd!",
            "550e8400-e29b-41d4-a716-446655440000",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "QkRbZxWvTnMpLsYd",
            "4f9a1c7be2d8",
            "abcdefghijklmnopqrstuvwxyzabcdef",
            "{\"auths\":{\"r\":{\"auth\":\"bWU6cHc=\"}}}",
            "12345678901234567890",
        ] {
            assert!(!is_ordinary(value), "{value}");
        }
    }
}
