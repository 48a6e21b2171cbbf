//! Recognises changes of a repository's configuration that run nothing: those that everyday work with git makes.
//!
//! Many keys of git name programs (`core.fsmonitor`, `core.hooksPath`, `filter.*.clean`, `alias.*`, `include.path`),
//! and new ones come with each version. So the list has the keys that are known to be harmless; all others are not.

/// Sections whose keys name nothing that runs, each with those keys; `*` stands for every key.
const HARMLESS: &str = "
user name email signingkey
author name email
committer name email
branch remote merge rebase description autosetupmerge autosetuprebase
remote url fetch prune tagopt
submodule url active branch path
pull rebase ff
push default autosetupremote followtags
merge ff conflictstyle
rebase autosquash autostash updaterefs
rerere enabled autoupdate
fetch prune prunetags parallel
init defaultbranch
color *
gc auto autodetach
maintenance auto strategy
index sparse version threads skiphash
extensions worktreeconfig objectformat
core repositoryformatversion filemode bare logallrefupdates symlinks ignorecase precomposeunicode autocrlf eol
core safecrlf quotepath longpaths sparsecheckout sparsecheckoutcone abbrev
";

/// True if the differences between two versions of a configuration are harmless: they run nothing, and lead nothing that
/// was set elsewhere. Unknown ones are not.
pub(super) fn differ_harmlessly(before: &str, after: &str) -> bool {
    let (Some(mut before), Some(mut after)) = (read_settings(before), read_settings(after)) else { return false };
    // A new branch may follow a remote that was there: the next plain `git push` goes where it leads.
    let is_new_lead = |setting: &Setting| {
        let heading = format!("remote \"{}\"", setting.value);
        let is_lead = (&*setting.section, &*setting.key) == ("branch", "remote") && setting.value != ".";
        is_lead
            && !before.is_empty()
            && !before.contains(setting)
            && before.iter().all(|earlier| earlier.heading != heading)
    };
    let redirects =
        |setting: &Setting| before.iter().any(|earlier| setting.redirects(earlier)) || is_new_lead(setting);
    // One that was emptied is lost.
    if after.iter().any(redirects) || after.is_empty() && !before.is_empty() {
        return false;
    }
    before.retain(|setting| match after.iter().position(|other| other == setting) {
        Some(at) => {
            after.remove(at);
            false
        }
        None => true,
    });
    before.iter().chain(&after).all(Setting::is_harmless)
}

/// The settings of a configuration that run nothing, and whose values are wanted.
pub(super) fn keep_harmless(text: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut kept = read_settings(text).unwrap_or_default();
    kept.retain(|setting| setting.is_harmless() && is_wanted(&setting.value));
    let sections = kept.chunk_by(|one, next| one.heading == next.heading).map(|section| {
        let lines = section.iter().map(|Setting { key, value, .. }| format!("\t{key} = {value}\n"));
        format!("[{}]\n{}", section[0].heading, lines.collect::<String>())
    });
    sections.collect()
}

/// The value of a setting.
#[cfg(target_os = "linux")]
pub(super) fn find_setting(text: &str, section: &str, key: &str) -> Option<String> {
    let settings = read_settings(text)?;
    settings.into_iter().rfind(|setting| setting.section == section && setting.key == key).map(|found| found.value)
}

/// One line of a configuration.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    /// In lower case, without a subsection.
    section: String,
    /// The whole heading in one form, of the several in which git knows it: `remote "origin"`.
    heading: String,
    key: String,
    value: String,
}

impl Setting {
    /// True if it makes an address or a branch's remote another one than it was.
    fn redirects(&self, earlier: &Self) -> bool {
        let leads = matches!((&*self.section, &*self.key), ("remote" | "submodule", "url") | ("branch", "remote"));
        leads && self.heading == earlier.heading && self.key == earlier.key && self.value != earlier.value
    }

    fn is_harmless(&self) -> bool {
        let is_known = HARMLESS.lines().any(|row| {
            let mut words = row.split(' ');
            words.next() == Some(&self.section) && words.any(|key| key == "*" || key == self.key)
        });
        // `ext::COMMAND` is a transport that runs a command; git reads it without its quotes.
        is_known && !self.value.replace('"', "").contains("::")
    }
}

/// Reads a configuration line by line; `None` if it contains anything else.
fn read_settings(text: &str) -> Option<Vec<Setting>> {
    let (mut section, mut heading) = (String::new(), String::new());
    let mut settings = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // The value continues in the next line.
        if line.ends_with('\\') {
            return None;
        }
        if let Some(rest) = line.strip_prefix('[') {
            // Nothing may follow a heading: git would read it as a key.
            let inner = rest.strip_suffix(']')?;
            let name = inner.split([' ', '\t', '.', '"']).next().unwrap_or_default();
            let is_plain = inner
                .split('"')
                .next()
                .unwrap_or_default()
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ' '));
            if name.is_empty() || !is_plain || inner.matches('"').count() > 2 || inner.contains([']', '\\']) {
                return None;
            }
            section = name.to_ascii_lowercase();
            heading = match (inner.split('"').nth(1), inner.split_once('.')) {
                (Some(inside), _) => format!("{section} \"{inside}\""),
                (None, Some((_, inside))) => format!("{section} \"{}\"", inside.to_ascii_lowercase()),
                (None, None) => section.clone(),
            };
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        settings.push(Setting {
            section: section.clone(),
            heading: heading.clone(),
            key: key.trim().to_ascii_lowercase(),
            value: value.trim().to_owned(),
        });
    }
    Some(settings)
}

#[cfg(test)]
mod tests {
    use super::differ_harmlessly;

    #[test]
    fn what_names_a_program_is_not_harmless() {
        let before = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://a/b\n";
        let table = [
            ("", true),
            ("[user]\n\tname = A B\n\temail = a@b\n", true),
            ("[remote \"other\"]\n\turl = git@host:a\n\tfetch = +refs/heads/*:refs/remotes/other/*\n", true),
            ("[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", true),
            ("[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n[index]\n\tsparse = false\n", true),
            ("[remote \"origin\"]\n\turl = https://evil/b\n", false),
            ("[remote \"origin\"]\n\tpushurl = https://evil/b\n", false),
            ("[remote \"origin\"]\n\tmirror = true\n", false),
            ("[remote \"origin\"]\n\tpush = :refs/heads/keep\n", false),
            ("[remote \"x\"]\n\turl = ext:\":\"sh -c evil\n", false),
            ("[branch \"main\"]\n\tremote = .\n\tmerge = refs/heads/other\n", true),
            ("[branch \"main\"]\n\tremote = https://evil/b\n", false),
            ("[branch \"main\"]\n\tremote = /tmp/evil\n\tmerge = refs/heads/main\n", false),
            ("[remote \"x\"]\n\turl = https://evil/b\n[branch \"main\"]\n\tremote = x\n", false),
            ("[remote]\n\tpushDefault = other\n", false),
            ("[branch \"main\"]\n\tpushRemote = other\n", false),
            ("[Remote \"origin\"]\n\turl = https://evil/b\n", false),
            ("[remote.ORIGIN]\n\turl = https://evil/b\n", false),
            ("[remote \"o\\rigin\"]\n\turl = https://evil/b\n", false),
            ("[extensions]\n\tpartialclone = origin\n", false),
            ("[submodule \"a/b\"]\n\tactive = true\n\turl = https://a\n", true),
            ("# a note\n; another\n", true),
            ("[core]\n\tfsmonitor = evil\n", false),
            ("[core]\n\thooksPath = .h\n", false),
            ("[CORE]\n\tHOOKSPATH = .h\n", false),
            ("[core] hooksPath = .h\n", false),
            ("[alias]\n\tst = !evil\n", false),
            ("[filter \"x\"]\n\tclean = evil\n", false),
            ("[include]\n\tpath = evil\n", false),
            ("[includeIf \"gitdir:/\"]\n\tpath = evil\n", false),
            ("[submodule \"x\"]\n\tupdate = !evil\n", false),
            ("[remote \"x\"]\n\turl = ext::sh -c evil\n", false),
            ("[remote \"x\"]\n\tuploadpack = evil\n", false),
            ("[branch \"a]\n[core\"]\n\tfsmonitor = evil\n", false),
            ("[user]\n\tname = a\\\n[core]\n\tfsmonitor = evil\n", false),
            ("evil\n", false),
            ("[diff \"x\"]\n\ttextconv = evil\n", false),
            ("[credential]\n\thelper = evil\n", false),
        ];
        for (added, harmless) in table {
            assert_eq!(differ_harmlessly(before, &format!("{before}{added}")), harmless, "{added}");
        }
        assert!(differ_harmlessly(before, "[core]\n\tbare = false\n"), "a remote may go");
        assert!(
            !differ_harmlessly(before, &before.replace("https://a/b", "https://evil/b")),
            "and not lead elsewhere"
        );
        assert!(!differ_harmlessly("[core]\n\tfsmonitor = mine\n", "[core]\n"), "what a person set stays");
    }
}
