#!/usr/bin/env python3
"""Where a change is and what to look at first: files by role and size, and added lines that deserve a look.

Only reads: git is asked for the difference, with external diffs, text conversions and file monitors turned off.
"""

import sys

sys.dont_write_bytecode = True

import argparse
import os
import re
import subprocess
from collections import Counter

GIT = ["git", "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "--no-pager", "--no-optional-locks"]
DIFF = ["--no-color", "--no-ext-diff", "--no-textconv", "-M"]
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
MOST_FILES, MOST_LINES, LONGEST = 80, 40, 100

# In the order in which they are best read: the first pattern that fits a path decides its role.
ROLES = [
    ("generated", r"(^|/)(node_modules|vendor|third_party|dist|build|__snapshots__)/|(^|/)(package-lock\.json|yarn\.lock|"
                  r"pnpm-lock\.yaml|Cargo\.lock|poetry\.lock|uv\.lock|Gemfile\.lock|composer\.lock|go\.sum)$|"
                  r"\.min\.(js|css)$|\.pb\.go$|_pb2\.py$|\.snap$|\.map$"),
    ("tests", r"(^|/)(tests?|specs?|__tests__|testdata|fixtures)/|(^|/)test_[^/]*$|[._-](test|spec)s?\.[^/.]+$|"
              r"(^|/)conftest\.py$|Tests?\.(java|kt|cs|swift)$"),
    ("contract", r"(^|/)(migrations?|schemas?|proto|api|openapi)/|\.(proto|sql|graphql|avsc|thrift|d\.ts)$|"
                 r"(openapi|swagger|schema)[^/]*\.(ya?ml|json)$"),
    ("dependencies", r"(^|/)(package\.json|Cargo\.toml|pyproject\.toml|requirements[^/]*\.txt|go\.mod|pom\.xml|"
                     r"build\.gradle(\.kts)?|Gemfile|composer\.json|setup\.(py|cfg))$"),
    ("operations", r"(^|/)(\.github|\.gitlab|\.ci|ci|deploy|k8s|helm|terraform)/|(^|/)(Dockerfile|Makefile|Jenkinsfile)"
                   r"[^/]*$|\.gitlab-ci\.yml$|\.tf$|docker-compose"),
    ("documents", r"\.(md|rst|adoc|txt)$|(^|/)docs?/|(^|/)(LICENSE|CHANGELOG|README)[^/]*$"),
    ("source", r"\.(rs|py|js|jsx|ts|tsx|mjs|cjs|go|java|kt|kts|scala|c|h|cc|cpp|hpp|cs|rb|php|swift|sh|bash|lua|ex|exs|"
               r"erl|hs|ml|clj|dart|vue|svelte|zig|nim|pl|r|jl|m|mm)$"),
    ("data", r""),
]
READING_ORDER = ["contract", "dependencies", "source", "tests", "operations", "data", "documents", "generated"]

SECRET = "possible secret"
# What a line that was added may mean; a look decides. A line that may hold a secret is never printed.
SIGNALS = [
    ("conflict marker", r"^(<{7} |>{7} |={7}$)"),
    (SECRET, r"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|gh[pousr]_\w{30,}|xox[bap]-\w{10,}|"
               r"(?i:(password|passwd|secret|token|api_?key)\w*[\"']?\s*[:=]\s*[\"'][^\"'${}\s]{8,}[\"'])"),
    ("test switched off or alone", r"#\[ignore|\b(it|describe|test)\.(only|skip)\b|\bf(it|describe)\(|@(Disabled|Ignore)\b|"
                                   r"pytest\.mark\.(skip|xfail)|unittest\.skip|\bt\.Skip\("),
    ("check switched off", r"#\s*(noqa|type:\s*ignore|pragma: no cover|nosec)|eslint-disable|@ts-(ignore|nocheck)|"
                           r"#!?\[allow\(|//\s*nolint|@SuppressWarnings|rubocop:disable"),
    ("error swallowed", r"except(\s+\w*Exception\w*)?\s*:\s*(pass)?\s*$|catch\s*(\([^)]*\))?\s*\{\s*\}|"
                        r"\.catch\(\s*\(?\w*\)?\s*=>\s*(\{\s*\}|null|undefined)|\blet _ = \w+.*\?*;|\b_ = err\b"),
    ("runs or trusts input", r"\b(eval|exec)\s*\(|shell\s*=\s*True|os\.system\(|pickle\.loads?\(|yaml\.load\((?!.*Safe)|"
                             r"\.innerHTML\s*=|dangerouslySetInnerHTML|v-html=|child_process|Runtime\.getRuntime\(\)\.exec"),
    ("checks of TLS switched off", r"verify\s*=\s*False|InsecureSkipVerify|rejectUnauthorized\s*:\s*false|"
                                   r"danger_accept_invalid_certs|NODE_TLS_REJECT_UNAUTHORIZED"),
    ("SQL put together from text", r"(?i)[\"'`](select|insert|update|delete)\b[^\"'`]*([\"'`]\s*(\+|%|\.\s*format)|\$\{|"
                                   r"\{\w+\}.*\bwhere\b|%s[^,]*[\"'`]\s*%)|f[\"'](select|insert|update|delete)\b"),
    ("may panic or crash", r"\.unwrap\(\)|\.expect\(|\bpanic!\(|\bunreachable!\(|\bunsafe\b|\w!!\.|\bas any\b"),
    ("waits for time", r"\b(thread::sleep|time\.sleep|Thread\.sleep|setTimeout|sleep)\s*\("),
    ("left from debugging", r"\b(console\.(log|debug)|debugger\b|dbg!\(|pdb\.set_trace|breakpoint\(\)|var_dump\()"),
    ("unfinished", r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HACK)\b|todo!\(|unimplemented!\(|raise NotImplementedError"),
]
# Ordinary in tests.
NOT_IN_TESTS = {"may panic or crash", "waits for time", SECRET}


class Refused(Exception):
    """Why there is nothing to show, and what would help."""


def main():
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("range", nargs="?", help="BASE (the working tree since it left BASE), A..B or A...B; "
                                                 "without it: this branch since it left the main one, else what is "
                                                 "uncommitted, else the last commit")
    parser.add_argument("--staged", action="store_true", help="only what is staged")
    options = parser.parse_args()
    try:
        print("\n".join(summary(options)))
    except (Refused, OSError) as refused:
        print("error: {}".format(refused), file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
    return 0


def summary(options):
    os.chdir(git("rev-parse", "--show-toplevel").rstrip("\n"))
    what, arguments, with_untracked = comparison(options)
    files = changed(arguments)
    untracked = new_files() if with_untracked else []
    files += [(path, lines, 0, "new, untracked") for path, lines in untracked]
    if not files:
        raise Refused("{}: nothing differs. Name a base, such as main or HEAD~3.".format(what))
    yield "{}: {} {}, +{:,} -{:,}".format(what, len(files), "file" if len(files) == 1 else "files", sum(max(file[1], 0) for file in files),
                                            sum(max(file[2], 0) for file in files))
    yield "git diff " + " ".join(arguments)
    roles = {file[0]: role_of(file[0]) for file in files}
    shown = 0
    for role in READING_ORDER:
        own = sorted((file for file in files if roles[file[0]] == role), key=lambda file: -(file[1] + file[2]))
        if not own:
            continue
        yield ""
        yield "{} ({})".format(role, len(own))
        for path, added, removed, note in own[: max(MOST_FILES - shown, 3)]:
            size = "binary" if added < 0 else "+{} -{}".format(added, removed)
            yield "  {}  {}{}".format(clean(path), size, "  " + note if note else "")
            shown += 1
        if len(own) > max(MOST_FILES - shown, 3) and shown >= MOST_FILES:
            yield "  … the others are left out here"
    for line in signals(arguments, untracked, roles):
        yield line
    for line in absences(files, roles):
        yield line


def comparison(options):
    """(what is compared, arguments for git diff, whether untracked files belong to it)"""
    if options.staged:
        return "staged changes", ["--cached"], False
    if options.range:
        if options.range.startswith("-"):
            raise Refused("{} is no revision".format(options.range))
        for end in re.split(r"\.{2,3}", options.range):
            if end and git("rev-parse", "--verify", "--quiet", end + "^{commit}", fails=True) is None:
                raise Refused("there is no revision {}; git branch -a and git log --oneline show some".format(end))
        if ".." in options.range:
            return options.range, [options.range], False
        # What others have done to the base since is no part of this change.
        base = git("merge-base", options.range, "HEAD", fails=True)
        if base is None:
            return options.range, [options.range], True
        return "since {} ({})".format(options.range, base[:10]), [base.strip()], True
    if git("rev-parse", "--verify", "--quiet", "HEAD", fails=True) is None:
        return "everything, as there is no commit yet", [EMPTY_TREE], True
    head = git("rev-parse", "HEAD").strip()
    for main in ("origin/HEAD", "origin/main", "origin/master", "main", "master", "trunk", "develop"):
        base = git("merge-base", main, "HEAD", fails=True)
        if base is not None:
            if base.strip() != head:
                return "since {} ({})".format(main, base[:10]), [base.strip()], True
            break
    if git("status", "--porcelain").strip():
        return "uncommitted changes", ["HEAD"], True
    if git("rev-parse", "--verify", "--quiet", "HEAD~1", fails=True) is None:
        return "the only commit", [EMPTY_TREE, "HEAD"], False
    return "the last commit", ["HEAD~1", "HEAD"], False


def git(*arguments, fails=False):
    try:
        done = subprocess.run(GIT + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise Refused("git is not installed")
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    if fails:
        return None
    raise Refused("git {}: {}".format(arguments[0], done.stderr.decode("utf-8", "replace").strip()))


def changed(arguments):
    """(path, added, removed, note) of each file; -1 for both in a binary one."""
    notes = {}
    fields = iter(git("diff", "--raw", "-z", *DIFF, *arguments, "--").split("\0"))
    for field in fields:
        if not field.startswith(":"):
            continue
        before, after, _, _, status = field[1:].split(" ")
        path = next(fields)
        note = {"A": "new", "D": "deleted"}.get(status[0], "")
        if status[0] in "RC":
            note, path = "was {}".format(clean(path)), next(fields)
        if after == "120000" and before != after:
            note = (note + ", a link").lstrip(", ")
        elif status[0] not in "AD" and before != after:
            note = (note + ", mode {} to {}".format(before[-3:], after[-3:])).lstrip(", ")
        elif status[0] == "A" and after == "100755":
            note += ", executable"
        notes[path] = note
    found = []
    fields = iter(git("diff", "--numstat", "-z", *DIFF, *arguments, "--").split("\0"))
    for field in fields:
        if field.count("\t") < 2:
            continue
        added, removed, path = field.split("\t", 2)
        if not path:
            next(fields)
            path = next(fields)
        count = (-1, -1) if added == "-" else (int(added), int(removed))
        found.append((path, *count, notes.get(path, "")))
    return found


def new_files():
    found = []
    for path in git("ls-files", "--others", "--exclude-standard", "-z").split("\0"):
        if path and os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                head = file.read(1 << 20)
            found.append((path, -1 if b"\0" in head[:8000] else head.count(b"\n")))
    return found


def role_of(path):
    return next(role for role, pattern in ROLES if re.search(pattern, path))


def clean(text):
    return "".join(mark if mark.isprintable() else " " for mark in text)


def added_lines(arguments, untracked):
    """(path, line number, text) of every line that was added."""
    process = subprocess.Popen(GIT + ["diff", "--unified=0", *DIFF, *arguments, "--"], stdout=subprocess.PIPE)
    path, number, left = "", 0, 0
    for raw in process.stdout:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if left == 0 and line.startswith("+++ "):
            path = line[4:].rstrip("\t").strip('"')
            path = path[2:] if path.startswith("b/") else path
        elif line.startswith("@@ ") and left == 0:
            span = re.match(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", line)
            if span:
                number, left = int(span.group(1)), int(span.group(2) or 1)
        elif left and line.startswith("+"):
            yield path, number, line[1:]
            number, left = number + 1, left - 1
    process.wait()
    for path, lines in untracked:
        if lines >= 0:
            with open(path, encoding="utf-8", errors="replace") as file:
                for number, line in enumerate(file, 1):
                    yield path, number, line.rstrip("\r\n")


def signals(arguments, untracked, roles):
    patterns = [(name, re.compile(pattern)) for name, pattern in SIGNALS]
    found = {name: [] for name, _ in SIGNALS}
    for path, number, line in added_lines(arguments, untracked):
        role = roles.get(path) or role_of(path)
        if role in ("generated", "documents") or len(line) > 2000:
            continue
        hits = [name for name, pattern in patterns if pattern.search(line)]
        text = "(not shown)" if SECRET in hits else clean(line.strip())[:LONGEST].rstrip()
        for name in hits:
            if not (role == "tests" and name in NOT_IN_TESTS):
                found[name].append("{}:{}  {}".format(clean(path), number, text))
    if any(found.values()):
        yield ""
        yield "added lines that deserve a look (patterns, not judgements)"
    room = MOST_LINES
    for name, places in found.items():
        if places:
            yield "  {}: {}".format(name, len(places))
            for place in places[: max(min(6, room), 1)]:
                yield "    " + place
                room -= 1


def absences(files, roles):
    """What a change of this kind usually brings along and this one does not."""
    count = Counter(roles.values())
    notes = []
    grown = sum(added for path, added, _, _ in files if roles[path] == "source" and added > 0)
    if grown >= 10 and not count["tests"]:
        notes.append("{} lines of source were added and no file of tests changed".format(grown))
    gone = [path for path, _, _, note in files if roles[path] == "tests" and note == "deleted"]
    if gone:
        notes.append("tests were deleted: {}".format(", ".join(map(clean, gone[:5]))))
    lock = re.compile(r"(^|/)[^/]*(-lock\.(json|yaml)|\.lock|go\.sum)$")
    if count["dependencies"] and not any(map(lock.search, roles)) and any(map(lock.search, git("ls-files").split("\n"))):
        notes.append("a manifest changed and no lock file did")
    lines = sum(max(added, 0) + max(removed, 0) for path, added, removed, _ in files
                if roles[path] not in ("generated", "documents", "data"))
    if lines > 800:
        notes.append("{:,} lines outside generated files and documents: review it in parts, one purpose each".format(lines))
    if notes:
        yield ""
        yield "absent or unusual"
        for note in notes:
            yield "  " + note


if __name__ == "__main__":
    sys.exit(main())
