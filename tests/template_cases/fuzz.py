"""Renders random templates with this program and with what it imitates, and compares: Jinja2, Python's str.format and Go's
text/template.

The same seed gives the same templates. What the original refuses is left out. Then the templates of hostile.txt, each of
which must end in time. `--go BINARY` names the program made of original.go.
"""

import argparse
import json
import pathlib
import random
import socket
import string
import subprocess
import sys
import time

import jinja2

HERE = pathlib.Path(__file__).parent
DATA = {
    "n": 7, "m": -3, "f": 2.5, "s": "hello World", "t": "", "u": "a,b,,c", "b": True, "none": None,
    "xs": [3, 1, 2], "ys": [], "ws": ["b", "a", "C"], "d": {"k": "v", "n": 1, "l": [1, "x"]},
}
# The seconds that the program allows, and those after which a hostile template must have ended.
ALLOWED, LONGEST = 2, 2.5


class Renderer:
    """The process of this program that renders templates: orders and results are lines of JSON."""

    def __init__(self, agent):
        self.agent = agent
        self.start()

    def start(self):
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [self.agent, "__sandbox", "renderer"], stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={}
        )
        theirs.close()
        self.lines, self.socket = ours.makefile("rw", newline="\n"), ours

    def render(self, syntax, source, data):
        """The text and the error; one of them is None. Ends and starts the process anew where it takes too long."""
        order = {"form": "text", "syntax": syntax, "name": "t", "source": source, "lenient": False, "context": data}
        began = time.monotonic()
        try:
            self.socket.settimeout(ALLOWED)
            self.lines.write("3 " + json.dumps(order) + "\n")
            self.lines.flush()
            self.socket.settimeout(max(0.01, ALLOWED - (time.monotonic() - began)))
            line = self.lines.readline()
            if not line:
                raise EOFError
        except (OSError, EOFError):
            self.process.kill()
            self.process.wait()
            self.start()
            return None, "ended"
        result = json.loads(line[1:])
        return result.get("value"), result.get("error", {}).get("message")


def number(dice):
    return dice.choice(["n", "m", "0", "1", "2", "10", "-4", "xs|length", "s|length", "xs[0]", "d.n"])


def text(dice, depth):
    plain = ["s", "t", "u", "'a'", "'é'", "\"q'\"", "ws[1]", "d.k"]
    if depth == 0:
        return dice.choice(plain)
    inside = text(dice, depth - 1)
    return dice.choice([
        inside, f"({inside} ~ {text(dice, depth - 1)})", f"({inside} ~ {number(dice)})", f"({inside})|upper", f"({inside})|lower",
        f"({inside})|trim", f"({inside})|replace('a', 'xy')", f"({inside})|default('z')", f"({inside})[1:3]", f"({inside})[::-1]",
        f"({inside}).strip()", f"({inside}).upper()", f"({inside}).replace('l', '')", f"({inside})|capitalize",
        f"({sequence(dice, depth - 1)})|join('-')", f"({inside} if {truth(dice, depth - 1)} else {text(dice, depth - 1)})",
    ])


def sequence(dice, depth):
    plain = ["xs", "ys", "ws", "[1, 'a', none]", "[]", "range(3)|list", "d.l", "u.split(',')"]
    if depth == 0:
        return dice.choice(plain)
    inside = sequence(dice, depth - 1)
    return dice.choice([
        inside, f"({inside})|reverse|list", f"({inside})[1:]", f"({inside})[::-1]", f"({inside})[:-1]", f"({inside})|list",
        f"({inside})|map('string')|list", f"({inside})|select('string')|list", f"({inside})|reject('none')|list",
        f"({inside}) + [{number(dice)}]", "xs|sort", "ws|sort", "xs|unique|list", f"({inside})|select|list",
    ])


def arithmetic(dice, depth):
    if depth == 0:
        return number(dice)
    left, right = arithmetic(dice, depth - 1), number(dice)
    return dice.choice([
        left, f"({left} + {right})", f"({left} - {right})", f"({left} * {right})", f"({left} // 3)", f"({left} % 5)",
        f"({left})|abs", f"({left} / 2)", "xs|sum", "xs|max", f"({left} if {truth(dice, 0)} else {right})", f"-({left})",
    ])


def truth(dice, depth):
    plain = ["b", "none is none", "n > 2", "s == 'x'", "ys", "t", "n is odd", "s is string", "xs is defined", "nope is defined"]
    if depth == 0:
        return dice.choice(plain)
    return dice.choice([
        dice.choice(plain), f"not ({truth(dice, depth - 1)})", f"({truth(dice, depth - 1)}) and ({truth(dice, depth - 1)})",
        f"({truth(dice, depth - 1)}) or ({truth(dice, depth - 1)})", f"({number(dice)}) in ({sequence(dice, depth - 1)})",
        f"({arithmetic(dice, depth - 1)}) < ({number(dice)})", f"({arithmetic(dice, depth - 1)}) is even",
        f"'a' in ({text(dice, depth - 1)})", f"({sequence(dice, depth - 1)}) == ({sequence(dice, depth - 1)})",
        f"2 + {number(dice)} is odd", f"({text(dice, depth - 1)}) is lower",
    ])


def jinja_source(dice):
    expression = lambda: dice.choice([text, sequence, arithmetic, truth])(dice, dice.randrange(4))
    body = lambda: dice.choice(["{{ %s }}" % expression(), "<{{ x }}>", "text\n"])
    return "".join(
        dice.choice([
            lambda: "{{ %s }}" % expression(),
            lambda: "{%% if %s %%}%s{%% else %%}%s{%% endif %%}" % (truth(dice, 2), "yes", body().replace("x", "n")),
            lambda: "{%% for x in %s %%}{{ loop.index }}{{ x }}%s{%% endfor %%}" % (sequence(dice, 1), body()),
            lambda: "{%% set x = %s %%}%s" % (expression(), "{{ x }}"),
        ])()
        for _ in range(dice.randrange(1, 4))
    )


def fstring_source(dice):
    name = dice.choice(["n", "m", "f", "s", "b", "xs", "d[k]", "ws[0]", "none"])
    convert = dice.choice(["", "", "!r", "!s"])
    is_text = convert or name in ("s", "d[k]", "ws[0]")
    plain = name in ("b", "xs", "none") and not convert
    spec = "" if plain else dice.choice(["", ">9", "<8", "*^11", ".2" if is_text else "5", "" if is_text or name == "f" else "+,d"])
    if name == "f" and not convert:
        spec = dice.choice(["", ".1f", "8.3f", "e", "+.2f", "%"])
    return "a{{b}} {" + name + convert + (":" + spec if spec else "") + "} é"


def go_number(dice, depth):
    plain = [".n", ".m", "0", "3", "-4", "(len .xs)", "(len .s)", "(index .xs 1)", ".d.n"]
    if depth == 0:
        return dice.choice(plain)
    return dice.choice([
        *plain, f"(len {go_text(dice, depth - 1)})", f"(or {go_number(dice, depth - 1)} {go_number(dice, 0)})",
        f"(and {go_number(dice, 0)} {go_number(dice, depth - 1)})", f"(index .xs {dice.randrange(3)})", f"(len (slice .ws {dice.randrange(3)}))",
    ])


def go_text(dice, depth):
    plain = [".s", ".t", ".u", '"a"', '"é"', "`r\\n`", "(index .ws 1)", '(index .d "k")', ".d.k"]
    if depth == 0:
        return dice.choice(plain)
    inside = go_text(dice, depth - 1)
    return dice.choice([
        inside, f"(print {inside} {go_number(dice, depth - 1)})", f"(printf \"%s|%d\" {inside} {go_number(dice, depth - 1)})",
        f"(printf \"%q\" {inside})", f"(printf \"%-8s%5d\" {inside} {go_number(dice, 0)})", f"({inside} | printf \"%v%%\")", f"(html {inside})",
        f"(urlquery {inside})", f"(js {inside})", f"(slice .s {dice.randrange(4)} {dice.randrange(4, 9)})", f"(println {inside} {go_truth(dice, 0)})",
        f"(printf \"%x %v\" {inside} .f)", f"(printf \"%08.3f|%+d\" .f {go_number(dice, 0)})", f"(or .t {inside})",
    ])


def go_truth(dice, depth):
    plain = [".b", "true", "false", ".ys", ".t", ".none", f"(eq {go_number(dice, 0)} {go_number(dice, 0)})"]
    if depth == 0:
        return dice.choice(plain)
    compare = dice.choice(["eq", "ne", "lt", "le", "gt", "ge"])
    return dice.choice([
        *plain, f"(not {go_truth(dice, depth - 1)})", f"(and {go_truth(dice, depth - 1)} {go_truth(dice, 0)})",
        f"(or {go_truth(dice, 0)} {go_truth(dice, depth - 1)})", f"({compare} {go_number(dice, depth - 1)} {go_number(dice, 0)})",
        f"({compare} {go_text(dice, depth - 1)} {go_text(dice, 0)})", f"(eq {go_number(dice, 0)} 7 {go_number(dice, 0)})",
    ])


def go_source(dice, depth=2):
    value = lambda: dice.choice([go_number, go_text, go_truth])(dice, dice.randrange(3))
    inner = lambda: go_source(dice, depth - 1) if depth else "x"
    left, right = dice.choice(["{{", "{{- "]), dice.choice(["}}", " -}}"])
    return "".join(
        dice.choice([
            lambda: f" a {left}{value()}{right} b\n",
            lambda: "{{if %s}}%s{{else if %s}}2{{else}} 3{{end}}" % (go_truth(dice, 2), inner(), go_truth(dice, 1)),
            lambda: "{{range $at, $it := %s}}{{$at}}:{{$it}} {{else}}none{{end}}" % dice.choice([".xs", ".ys", ".ws", ".d", "(slice .xs 1)"]),
            lambda: "{{range .xs}}{{if %s}}{{%s}}{{end}}{{.}}{{end}}" % (f"eq . {dice.randrange(4)}", dice.choice(["break", "continue"])),
            lambda: "{{with %s}}<{{.}}>{{else}}-{{end}}" % dice.choice([".s", ".t", ".d.k", ".n", ".ys", ".ws"]),
            lambda: "{{$x := %s}}{{$x}}{{if $x}}{{$x = %s}}{{end}}{{$x}}" % (value(), value()),
            lambda: '{{define "part"}}[{{.}}]{{end}}{{template "part" %s}}' % value(),
            lambda: f"{left}/* a note */{right} text\n",
        ])()
        for _ in range(dice.randrange(1, 4))
    )


SOURCES = {"jinja": jinja_source, "fstring": fstring_source, "gotemplate": go_source}


class Go:
    """The program made of original.go: a case a line, an outcome a line."""

    def __init__(self, binary):
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def render(self, source):
        self.process.stdin.write(json.dumps({"Template": source, "Data": DATA}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline()).get("gives")


def original(syntax, source, go):
    if syntax == "gotemplate":
        return go.render(source)
    try:
        if syntax == "fstring":
            return string.Formatter().vformat(source, (), DATA)
        return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(source).render(DATA)
    except Exception:  # whatever it refuses with
        return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("agent")
    arguments.add_argument("--count", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=20260102)
    arguments.add_argument("--go")
    chosen = arguments.parse_args()
    count, seed, go = chosen.count, chosen.seed, chosen.go and Go(chosen.go)
    syntaxes = ["jinja", "gotemplate" if go else "jinja", "jinja", "fstring"]
    dice, renderer, wrong, same, both, refused = random.Random(seed), Renderer(chosen.agent), [], 0, 0, 0
    for turn in range(count):
        syntax = syntaxes[turn % 4]
        source = SOURCES[syntax](dice)
        theirs, (ours, why) = original(syntax, source, go), renderer.render(syntax, source, DATA)
        if theirs == ours:
            same, both = same + (ours is not None), both + (ours is None)
        elif theirs is None:
            refused += 1
        else:
            wrong.append(f"{syntax}: {source!r}\n  here      {ours!r} {why or ''}\n  original  {theirs!r}")
    print(f"{count} random templates, seed {seed}: {same} alike, {both} that both refuse, {refused} that only the original refuses")
    big, many = "X" * 3_000_000, list(range(30_000))
    data = {"big": big, "big2": big, "low": "x" * 3_000_000, "many": many, "others": many}
    data["map_of"] = data["map_of2"] = {str(item): item for item in many}
    slowest = 0
    hostile = (HERE / "hostile.txt").read_text().splitlines()
    for source in hostile:
        began = time.monotonic()
        renderer.render("jinja", source, data)
        slowest = max(slowest, time.monotonic() - began)
        if time.monotonic() - began > LONGEST:
            wrong.append(f"took {time.monotonic() - began:.1f} s: {source}")
    print(f"{len(hostile)} hostile templates, the slowest ended after {slowest:.1f} s")
    if wrong:
        sys.exit(f"{len(wrong)} unexplained:\n" + "\n".join(wrong))


main()
