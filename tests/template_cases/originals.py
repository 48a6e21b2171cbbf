"""Runs every template case through what it imitates, and compares: Jinja2, Python's str.format, Go's text/template.

Needs PyYAML and Jinja2; `--go BINARY` names the program made of original.go. Says what it leaves out.
"""

import argparse
import json
import pathlib
import re
import string
import subprocess
import sys

import jinja2
import jinja2.ext
import yaml

HERE = pathlib.Path(__file__).parent


class Data(dict):
    """A map whose keys are attributes too, as all maps of a template's data are."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def wrapped(value):
    if isinstance(value, dict):
        return Data({key: wrapped(item) for key, item in value.items()})
    if isinstance(value, list):
        return [wrapped(item) for item in value]
    return value


def layered(over, under):
    if isinstance(over, dict) and isinstance(under, dict):
        return {key: layered(over.get(key), under.get(key)) for key in {**under, **over}}
    return under if over is None else over


def jinja(case, data):
    undefined = jinja2.ChainableUndefined if case.get("lenient") else jinja2.StrictUndefined
    if "default(" in case["template"] or "is undefined" in case["template"]:
        undefined = jinja2.Undefined
    environment = jinja2.Environment(
        undefined=undefined,
        loader=jinja2.DictLoader(case.get("files", {})),
        extensions=[jinja2.ext.loopcontrols, jinja2.ext.do],
    )
    return environment.from_string(case["template"]).render(data)


def fstring(case, data):
    return string.Formatter().vformat(case["template"], (), wrapped(data))


def outcome(render, case):
    data = layered(case.get("data") or {}, case.get("defaults") or {})
    try:
        return render(case, data), None
    except Exception as error:  # whatever the original refuses with
        return None, f"{type(error).__name__}: {error}"


def go_outcomes(binary, cases):
    lines = "".join(
        json.dumps(
            {
                "template": case["template"],
                "data": layered(case.get("data") or {}, case.get("defaults") or {}),
                "lenient": bool(case.get("lenient")),
            }
        )
        + "\n"
        for _, case in cases
    )
    done = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [(answer.get("gives"), answer.get("error")) for answer in answers]


def version(text):
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def difference(case, gives, error):
    """How the original differs from what the case says of it; None if it does not."""
    if "original" in case:
        wanted = case["original"]
    elif case.get("original_refuses"):
        wanted = None
    else:
        wanted = case.get("gives")
    if wanted is None:
        return None if error is not None else f"refuses, says the case; the original gives {gives!r}"
    return None if gives == wanted else f"{wanted!r}, says the case; the original gives {gives if error is None else error!r}"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--go", help="the program made of original.go")
    arguments.add_argument("--go-version", default="go0.0")
    chosen = arguments.parse_args()
    wrong, compared, left_out = [], 0, []
    for syntax in ("jinja", "fstring", "gotemplate"):
        cases = [(path, yaml.safe_load(path.read_text())) for path in sorted((HERE / syntax).glob("*.yaml"))]
        # Some would take the original's time or memory.
        cases = [(path, case) for path, case in cases if not case.get("original_any")]
        if syntax == "gotemplate":
            if not chosen.go:
                left_out.append(f"all {len(cases)} cases of {syntax}: no Go here")
                continue
            known = [(path, case) for path, case in cases if version(case.get("needs", "0.0")) <= version(chosen.go_version)]
            left_out += [f"{path.stem}: needs {case['needs']}" for path, case in cases if (path, case) not in known]
            cases, outcomes = known, go_outcomes(chosen.go, known)
        else:
            render = {"jinja": jinja, "fstring": fstring}[syntax]
            outcomes = [outcome(render, case) for _, case in cases]
        for (path, case), (gives, error) in zip(cases, outcomes, strict=True):
            compared += 1
            if found := difference(case, gives, error):
                wrong.append(f"{syntax}/{path.stem}: {found}")
    for line in left_out:
        print(f"LEFT OUT: {line}")
    print(f"{compared} cases compared with the originals, {len(wrong)} differ")
    if wrong:
        sys.exit("\n".join(wrong))


main()
