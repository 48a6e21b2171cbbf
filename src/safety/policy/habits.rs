//! The usual behaviour of programs: tables of those that read, and of those that always ask.
//!
//! Flags are not analysed: a line of programs that usually only read runs in walls that allow no writing. The
//! tables are the rows of a text: the words of a command, where a last `*` stands for any further words and a last
//! `-*` for any further flags. `a|b` is one of several words.

use super::shell::{Arg, Simple};

/// The known behaviour of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Habit {
    /// It may do anything.
    Unknown,
    /// It usually only reads. Walls must confine it to that.
    Reads,
    /// It has no way to write or to run anything.
    OnlyReads,
}

/// Programs without any flag that writes a file or runs a program.
const ONLY_READ: &str = "
ls|dir|vdir|cat|tac|nl|head|tail|wc|cut|tr|paste|join|fold|fmt|expand|unexpand|rev|column|comm|cmp|diff|od|hexdump *
grep|egrep|fgrep|strings|base64|md5sum|sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum|cksum|sum *
echo|printf|true|false|:|pwd|cd|test|[|seq|expr|basename|dirname|realpath|readlink|stat|du|df|whoami|id|groups *
uname|arch|nproc|tty|sleep|which|whereis|type|uptime|free|ps|jq|cal|numfmt|tsort|factor|getconf|locale|lscpu|lsblk *
command -v|-V *
break|continue|exit|return|shift|wait *
";

/// Programs that usually only read.
const READ: &str = "
find|fd|fdfind|rg|ag|ack|sed|awk|gawk|mawk|nawk|sort|uniq|tree|file|date|xxd|bat|batcat|less|more|yq|xmllint|tokei|cloc *
printenv|env|hostname|lsof|pgrep|pidof|readelf|objdump|nm|size|ldd|otool|exa|eza|look|shuf|iconv|zcat|bzcat|xzcat *
zgrep|xzgrep|zless *
gunzip -c *
tar -t*|t*|--list *
unzip -l|-t|-v|-Z|-p *
zipinfo|b3sum|crc32|lsattr|getfacl|namei|pathchk|pstree|lsmod|vmstat|iostat *
read|set|shopt|export|unset|local|declare|typeset|hash|getopts|let|umask|ulimit|alias|history|dirs|times|jobs *
pushd|popd|[[ *
bc|dc|diffstat|colordiff|sdiff|diff3|difft|delta|wdiff|shellcheck|hadolint|yamllint|jsonlint|scc *
git status|diff|log|show|blame|annotate|grep|shortlog|describe|rev-parse|rev-list|ls-files|ls-tree|cat-file|whatchanged *
git diff-tree|diff-index|diff-files|merge-base|name-rev|for-each-ref|show-ref|show-branch|count-objects|var|range-diff *
git check-ignore|check-attr|check-mailmap|fsck|verify-commit|verify-tag|cherry|version|help|merge-tree|patch-id *
git branch|tag|remote|reflog -*
git branch|tag --list|-l|--contains|--no-contains|--merged|--no-merged|--points-at|--sort *
git branch -a|-r|--list|-v|-vv --contains|--merged|--no-merged|--list *
git remote show|get-url *
git reflog show|exists *
git stash list|show *
git config --get|--get-all|--get-regexp|--list|-l|get|list *
git config --global|--local|--system --get|--get-all|--list|-l *
git worktree|notes list *
git notes show *
git submodule status|summary *
git bisect log|view *
git lfs ls-files|status *
git symbolic-ref HEAD|--short -*
git symbolic-ref --short HEAD
git apply --stat|--check|--numstat *
git archive --list
git bundle verify|list-heads *
hg|svn|jj|bzr status|st|diff|log|show|cat|info|annotate|blame *
cargo metadata|tree|locate-project|pkgid|version|help|read-manifest *
cargo fmt --check *
cargo fmt --all|-- --check *
cargo fmt --all -- --check *
cargo --list
rustup show|which|toolchain|component|target -*
rustup toolchain|component|target list *
rustc --print|--explain *
npm|pnpm ls|list|ll|la|root|prefix|bin|explain|why|pkg|query|help *
npm|pnpm config get|list *
npm run|run-script
pnpm|yarn|bun run
yarn list|why|info|bin|dir *
yarn config get|list *
yarn workspaces|workspace info|list *
node|deno|bun|npm|pnpm|yarn -v
pip|pip3|pipx list|show|freeze|check|inspect|debug|help *
python|python3 -m pip list|show|freeze|check *
uv pip list|show|freeze|tree|check *
uv tree|version *
uv python list|find|dir *
poetry show|check|about *
poetry env list|info *
conda|mamba list|info *
pyenv version|versions|which|root *
go env|list|version|doc|help *
go mod graph|why|verify *
gofmt|goimports -l|-d *
java|javac|kotlinc|scala -version
javap *
mvn|gradle -v
bundle|bundler list|show|info|check *
gem list|environment|env|which|contents|specification|dependency|info *
rbenv|nodenv|goenv|asdf|mise versions|version|which|current|list|ls *
rake -T|-P|--tasks *
ruby|perl|php -v|-c *
node --check *
composer show|info|licenses|validate|check-platform-reqs *
dotnet --info
dotnet --list-sdks|--list-runtimes
dotnet list *
make -n|--dry-run|--just-print|-pn|-qp *
cmake --help|--list-presets *
ninja -t *
ninja -n *
just --list|-l|--summary|--show|--dump *
task --list|-l|--list-all *
terraform|tofu version|validate|show|output|graph|providers *
terraform|tofu fmt -check *
terraform|tofu state list|show *
terraform|tofu workspace list|show *
tflint|terraform-docs -*
apt|apt-cache list|show|search|policy|depends|rdepends *
dpkg|dpkg-query -l|-L|-s|-S|-W *
rpm -q*|-V *
pacman -Q*|-F* *
openssl x509|version|dgst|asn1parse *
sqlite3 -readonly *
actionlint|shfmt|prettier|black|isort|ruff --check|-d|--diff|-l|check *
ruff format --check *
";

/// The words with which a program of the table writes: it is asked about at once, rather than when it fails.
const WRITING: &[(&str, &[&str])] = &[
    ("sed", &["-i", "--in-place", "-ni", "-Ei", "-ri"]),
    ("yq", &["-i", "--inplace"]),
    ("awk", &["-i"]),
    ("gawk", &["-i"]),
    ("find", &["-delete", "-fprint", "-fprint0", "-fprintf", "-fls"]),
    ("sort", &["-o", "--output"]),
    ("tree", &["-o"]),
    ("date", &["-s", "--set"]),
    ("printf", &["-v"]),
    ("file", &["-C", "--compile"]),
    ("git", &["--output", "-d", "-D", "-m", "-M", "--delete", "--move", "--edit-description", "--unset-upstream"]),
    ("npm", &["set", "delete", "fix"]),
    ("gofmt", &["-w"]),
    ("goimports", &["-w"]),
    ("prettier", &["--write", "-w"]),
    ("ruff", &["--fix"]),
    ("shfmt", &["-w"]),
    ("xxd", &["-r"]),
    ("hash", &["-p"]),
    ("test", &["-v"]),
    ("[", &["-v"]),
];

/// Programs that delegate to another program, which no walls around them confine: one that runs containers, services
/// or machines.
const DELEGATING: &str = "
docker docker-compose podman podman-compose podman-remote nerdctl buildah skopeo ctr crictl lima limactl colima
kubectl oc helm k9s minikube kind k3s k3d microk8s systemctl systemd-run loginctl machinectl busctl service
launchctl initctl rc-service dbus-send gdbus qdbus lxc incus virsh vagrant multipass flatpak flatpak-spawn snap
crontab at batch tmux screen osascript open xdg-open gio emacsclient
";

/// Programs that use the network and run no code of the workspace.
const NETWORK: &str = "
curl|wget|http|https|ssh|scp|sftp|rsync|ftp|telnet|nc|ncat|ping|dig|nslookup|host|whois|gh|glab|hub|aws|gcloud|az *
git fetch|pull|push|clone|ls-remote *
git remote update *
cargo search|login|owner *
npm|pnpm|yarn view|info|search|login|outdated|audit *
apt|apt-get|dnf|yum|apk|pacman|brew *
";

/// Programs that change files and run nothing.
const FILES: &str = "
cp|mv|rm|rmdir|mkdir|touch|tee|ln|chmod|chown|dd|truncate|unzip|zip|gzip|mktemp *
";

/// Flags before a subcommand that take the next word.
const VALUED: &[(&str, &[&str])] = &[
    ("git", &["-C", "-c", "--git-dir", "--work-tree", "--namespace"]),
    ("cargo", &["-C", "-Z", "--config", "--color", "--manifest-path"]),
    ("npm", &["-C", "--prefix", "-w", "--workspace"]),
    ("pnpm", &["-C", "--dir", "--filter", "-F"]),
    ("yarn", &["--cwd"]),
    ("go", &["-C"]),
    ("make", &["-C", "-f", "-j"]),
];

/// Programs that run others and do nothing else.
const RUNNING: [&str; 32] = [
    "nohup",
    "nice",
    "ionice",
    "time",
    "timeout",
    "stdbuf",
    "command",
    "builtin",
    "exec",
    "env",
    "xargs",
    "find",
    "eval",
    "sh",
    "bash",
    "rbash",
    "dash",
    "ash",
    "yash",
    "zsh",
    "ksh",
    "rksh",
    "mksh",
    "oksh",
    "posh",
    "fish",
    "csh",
    "tcsh",
    "setsid",
    "/bin/sh",
    "/bin/bash",
    "/usr/bin/env",
];

/// The directories of the system's programs.
const SYSTEM: [&str; 6] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"];

/// The habit of a command, with that of the commands in it.
pub(super) fn find_habit(command: &Simple) -> Habit {
    let own = match &command.inside {
        Some(inside) => {
            let runs_only = command.program().is_some_and(|name| RUNNING.contains(&name));
            let within = inside.script.commands.iter().map(find_habit).min().unwrap_or(Habit::Unknown);
            let is_sure = inside.is_transparent && inside.script.files.is_empty();
            match (runs_only && inside.script.doubt().is_none() && !writes_files(&command.argv), is_sure) {
                (false, _) => Habit::Unknown,
                (true, true) => within,
                (true, false) => within.min(Habit::Reads),
            }
        }
        None if command.argv.is_empty() => Habit::OnlyReads,
        None => of_words(&command.argv),
    };
    command.assigned.iter().map(|name| of_variable(name)).fold(own, Habit::min)
}

/// True if another program does the work, which no walls around this one confine.
pub(super) fn delegates_work(command: &Simple) -> bool {
    let name = command.program().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    !name.is_empty() && DELEGATING.split_whitespace().any(|known| known == name)
}

/// True if all that it runs belongs to the system: nothing in it comes from the workspace.
pub(super) fn is_of_system(command: &Simple) -> bool {
    match (&command.inside, command.argv.split_first()) {
        (Some(inside), _) => inside.script.doubt().is_none() && inside.script.commands.iter().all(is_of_system),
        (None, Some((Arg::Literal(name), words))) => {
            find_habit(command) >= Habit::Reads || uses_network(command) || is_in(FILES, name, words)
        }
        (None, Some((Arg::Unknown, _))) => false,
        (None, None) => true,
    }
}

/// True if it usually uses the network.
pub(super) fn uses_network(command: &Simple) -> bool {
    let Some((Arg::Literal(name), words)) = command.argv.split_first() else { return false };
    is_in(NETWORK, name, words) || is_in(NETWORK, name, without_leading_flags(name, words))
}

/// The effect of setting a variable: some name programs, or code that programs run.
fn of_variable(name: &str) -> Habit {
    const STEERING: [&str; 8] = ["PATH", "ENV", "BASH_ENV", "IFS", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "CDPATH"];
    let is_lower = name.bytes().all(|byte| !byte.is_ascii_uppercase()) && !name.ends_with("_proxy");
    match name {
        name if STEERING.contains(&name) || name.starts_with("LD_") || name.starts_with("DYLD_") => Habit::Unknown,
        _ if is_lower => Habit::OnlyReads,
        _ => Habit::Reads,
    }
}

fn of_words(argv: &[Arg]) -> Habit {
    let Some(path) = argv.first().and_then(Arg::text) else { return Habit::Unknown };
    let name = SYSTEM.iter().find_map(|dir| path.strip_prefix(dir)).unwrap_or(path);
    if name.contains('/') || writes_files(argv) {
        return Habit::Unknown;
    }
    if tells_of_itself(argv) {
        return Habit::Reads;
    }
    let words = without_leading_flags(name, &argv[1..]);
    if is_in(ONLY_READ, name, &argv[1..]) {
        Habit::OnlyReads
    } else if is_in(READ, name, &argv[1..]) || is_in(READ, name, words) {
        Habit::Reads
    } else {
        Habit::Unknown
    }
}

/// True for `--version` and `--help` of any program or subcommand.
fn tells_of_itself(argv: &[Arg]) -> bool {
    const WITH_SUBCOMMANDS: [&str; 13] = [
        "git",
        "cargo",
        "rustup",
        "go",
        "npm",
        "pnpm",
        "yarn",
        "pip",
        "uv",
        "poetry",
        "gem",
        "bundle",
        "terraform",
    ];
    match argv {
        [_, Arg::Literal(flag)] => matches!(flag.as_str(), "--version" | "-V" | "-vV" | "--help"),
        [Arg::Literal(name), Arg::Literal(sub), Arg::Literal(flag)] => {
            WITH_SUBCOMMANDS.contains(&name.as_str()) && !sub.starts_with('-') && flag == "--help"
        }
        _ => false,
    }
}

/// True if a word says that it writes.
fn writes_files(argv: &[Arg]) -> bool {
    let name = argv.first().and_then(Arg::text).unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    let Some((_, writing)) = WRITING.iter().find(|(program, _)| *program == name) else { return false };
    let says_so = |word: &str| {
        let flag = word.split_once('=').map_or(word, |(flag, _)| flag);
        writing.contains(&flag) || (name == "sed" && word.starts_with("-i"))
    };
    (name != "git" || names_refs(argv)) && argv.iter().skip(1).filter_map(Arg::text).any(says_so)
}

/// True if it is a command of git whose flags can move and delete names, or has a flag that writes a file.
fn names_refs(argv: &[Arg]) -> bool {
    argv.iter().filter_map(Arg::text).any(|word| matches!(word, "branch" | "tag") || word.starts_with("--output"))
}

fn without_leading_flags<'a>(name: &str, mut words: &'a [Arg]) -> &'a [Arg] {
    let valued = VALUED.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, flags)| flags);
    if valued.is_empty() {
        return words;
    }
    while let Some((Arg::Literal(word), rest)) = words.split_first() {
        let skipped = match word {
            word if valued.contains(&word.as_str()) => 1,
            word if word.starts_with(['-', '+']) => 0,
            _ => break,
        };
        words = rest.get(skipped..).unwrap_or_default();
    }
    words
}

fn is_in(table: &str, name: &str, words: &[Arg]) -> bool {
    table.lines().any(|row| {
        let mut pattern = row.split(' ');
        pattern.next().is_some_and(|names| names.split('|').any(|known| known == name))
            && fits_pattern(pattern, words)
    })
}

fn fits_pattern<'p>(pattern: impl Iterator<Item = &'p str>, words: &[Arg]) -> bool {
    let mut words = words.iter();
    for expected in pattern {
        match expected {
            "*" => return true,
            "-*" => return words.all(|word| word.text().is_some_and(|word| word.starts_with('-'))),
            expected => {
                let Some(word) = words.next().and_then(Arg::text) else { return false };
                let is_meant = |one: &str| match one.strip_suffix('*') {
                    Some(begins) => word.starts_with(begins),
                    None => one == word,
                };
                if !expected.split('|').any(is_meant) {
                    return false;
                }
            }
        }
    }
    words.next().is_none()
}
