"""What one cell says: nothing, a number, a date, or text. Pure functions; a column's conventions are passed in."""

import re
import unicodedata
from datetime import datetime

MISSING = frozenset(
    ["", "na", "n/a", "nan", "null", "nil", "none", "-", "--", "\u2013", "\u2014", "?", ".", "(blank)", "(null)",
     "#n/a", "#na", "#null!", "#value!", "#div/0!", "#ref!", "#num!", "缺失", "空值", "暂无", "\\n"]
)

_PLAIN = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_CODE = re.compile(r"0\d+|\d{16,}", re.ASCII)
_CURRENCY = re.compile(r"(?:US|HK|NT|A|C|S)?\$|[€£¥₹₩₽]|(?:USD|EUR|GBP|CNY|RMB|JPY|CHF|HKD)\b|元|円")
_SCALES = {"万": 1e4, "亿": 1e8}
_GROUPS = {
    ".": re.compile(r"(?:\d+|\d{1,3}(?:[, '\u2019]\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?:\.\d*)?|\.\d+", re.ASCII),
    ",": re.compile(r"(?:\d+|\d{1,3}(?:[. '\u2019]\d{3})+)(?:,\d*)?|,\d+", re.ASCII),
}


def is_missing(text):
    return text.strip().lower() in MISSING


def is_code(text):
    """Digits that are a name and no quantity: leading zeros, or more of them than a number keeps."""
    return _CODE.fullmatch(text) is not None


def number(text, decimal="."):
    """(value, unit) or None. `decimal` is the mark before fractions; the unit is a currency, `%` or empty."""
    if decimal == "." and _PLAIN.fullmatch(text):
        return _finite(float(text), "")
    text = unicodedata.normalize("NFKC", text).replace("\u2212", "-").strip()
    sign, unit, scale = 1.0, "", 1.0
    if text.startswith("(") and text.endswith(")"):
        sign, text = -1.0, text[1:-1].strip()
    money = _CURRENCY.search(text)
    if money:
        unit = money.group()
        text = (text[: money.start()].strip() + text[money.end():].strip()).strip()
    if text.endswith("%") and not unit:
        unit, text = "%", text[:-1].rstrip()
    if text[-1:] in _SCALES:
        scale, text = _SCALES[text[-1]], text[:-1].rstrip()
    if text[:1] in ("+", "-"):
        sign, text = (-sign if text[0] == "-" else sign), text[1:].lstrip()
    elif text[-1:] == "-":
        sign, text = -sign, text[:-1].rstrip()
    if _PLAIN.fullmatch(text) and text[:1].isdigit() and decimal == ".":
        return _finite(sign * scale * float(text), unit)
    if not _GROUPS[decimal].fullmatch(text):
        return None
    digits = "".join(mark for mark in text if mark.isdigit() or mark == decimal)
    return _finite(sign * scale * float(digits.replace(",", ".")), unit)


def _finite(value, unit):
    return (value, unit) if abs(value) < 1e300 else None


def decimal_evidence(text):
    """`.` or `,` where only that reading makes a number of it, else None."""
    point, comma = number(text, "."), number(text, ",")
    if (point is None) == (comma is None):
        return None
    return "." if comma is None else ","


_TIME = r"(?:(?:T|\s+)(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,]\d+)?)?\s*(?:Z|UTC|[+-]\d{2}:?\d{2})?)?"
_MONTHS = {name: index for index, name in enumerate(
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1)}
_FORMS = [re.compile(form + _TIME, re.ASCII | re.IGNORECASE) for form in (
    r"(?P<y>\d{4})[-/.年]\s*(?P<m>\d{1,2})[-/.月]\s*(?P<d>\d{1,2})\s*日?",
    r"(?P<y>\d{4})(?:[-/]|年)\s*(?P<m>\d{1,2})\s*月?",
    r"(?P<y>\d{4})[- ]?Q(?P<q>[1-4])",
    r"Q(?P<q>[1-4])[- ](?P<y>\d{4})",
    r"(?P<d>\d{1,2})[- ](?P<name>[a-z]{3,9})\.?,?[- ](?P<y>\d{4}|\d{2})",
    r"(?P<name>[a-z]{3,9})\.? (?P<d>\d{1,2})(?:st|nd|rd|th)?,? (?P<y>\d{4})",
    r"(?P<name>[a-z]{3,9})\.?[- ](?P<y>\d{4})",
)]
_NUMERIC = re.compile(r"(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?P=s)(?P<y>\d{4}|\d{2})" + _TIME, re.ASCII)
_COMPACT = re.compile(r"(?P<y>19\d\d|20\d\d)(?P<m>\d\d)(?P<d>\d\d)", re.ASCII)


def date(text, day_first=False, compact=False):
    """(moment, precision) or None; the precision is `time`, `day`, `month` or `quarter`. Offsets are left out."""
    text = text.strip()
    if compact:
        found = _COMPACT.fullmatch(text)
        return found and _moment(found.groupdict())
    if len(text) > 40 or not any(mark.isdigit() for mark in text):
        return None
    found = _NUMERIC.fullmatch(text)
    if found:
        parts = found.groupdict()
        first = day_first or parts["s"] == "."
        parts["d"], parts["m"] = (parts["a"], parts["b"]) if first else (parts["b"], parts["a"])
        return _moment(parts)
    for form in _FORMS:
        found = form.fullmatch(text)
        if found:
            return _moment(found.groupdict())
    return None


def order_evidence(text):
    """True where 31/12/2024 can only be day first, False where only month first, else None."""
    found = _NUMERIC.fullmatch(text.strip())
    if not found or found.group("s") == ".":
        return None
    a, b = int(found.group("a")), int(found.group("b"))
    return None if (a > 12) == (b > 12) else a > 12


def has_order(text):
    """Whether the reading of this date hangs on the order of day and month."""
    found = _NUMERIC.fullmatch(text.strip())
    return found is not None and found.group("s") != "." and found.group("a") != found.group("b")


def _moment(parts):
    month, precision = 1, "day"
    if parts.get("q"):
        month, precision = 3 * int(parts["q"]) - 2, "quarter"
    elif parts.get("name"):
        month = _MONTHS.get(parts["name"][:3].lower())
        if month is None:
            return None
    else:
        month = int(parts["m"])
    if precision == "day" and not parts.get("d"):
        precision = "month"
    year = int(parts["y"])
    if len(parts["y"]) == 2:
        year += 2000 if year < 70 else 1900
    clock = [int(parts.get(part) or 0) for part in "HMS"]
    try:
        moment = datetime(year, month, int(parts.get("d") or 1), *clock)
    except ValueError:
        return None
    return moment, "time" if parts.get("H") else precision


def counted(count, noun):
    """`1 row`, `2,000 rows`"""
    return "{:,} {}{}".format(count, noun, "" if count == 1 else "s")


def shown(value):
    """A number for people: thousands separated, as many decimals as its size asks for."""
    if value != value:
        return "none"
    size = abs(value)
    if value == int(value) and size < 1e15:
        return "{:,}".format(int(value))
    if size >= 1e15 or size < 1e-4:
        return "{:.3e}".format(value)
    decimals = 2 if size >= 100 else 3 if size >= 1 else 5
    return "{:,.{}f}".format(value, decimals).rstrip("0").rstrip(".")
