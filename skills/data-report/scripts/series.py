"""From rows to what is drawn: groups with one figure each, periods of time, or classes of a histogram."""

import math
from datetime import datetime, timedelta

import values
from table import InputError

MOST_GROUPS = 100_000
PERIODS = ("hour", "day", "week", "month", "quarter", "year")
MOST_PERIODS = 120
AGGREGATES = ("count", "sum", "mean", "min", "max")


class Figure:
    """Count, sum and extremes of a group: what every aggregate can be told from, and what adds up."""

    __slots__ = ("count", "total", "least", "most")

    def __init__(self):
        self.count, self.total, self.least, self.most = 0, 0.0, math.inf, -math.inf

    def add(self, value):
        self.count += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)

    def join(self, other):
        self.count += other.count
        self.total += other.total
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    def value(self, aggregate):
        if not self.count:
            return 0 if aggregate == "count" else None
        return {"count": self.count, "sum": self.total, "mean": self.total / self.count,
                "min": self.least, "max": self.most}[aggregate]


def groups(table, x, y, key):
    """{key of x: Figure of y} and how many rows were left out because x or y has no value."""
    x_at, y_at = table.header.index(x.name), None if y is None else table.header.index(y.name)
    found, left_out, memory = {}, 0, {}
    for _, row in table.rows():
        cell = row[x_at].strip()
        if cell in memory:
            group = memory[cell]
        else:
            group = None if values.is_missing(cell) else key(cell)
            if len(memory) < MOST_GROUPS:
                memory[cell] = group
        number = (0.0, "")
        if y is not None:
            text = row[y_at].strip()
            number = None if values.is_missing(text) else values.number(text, y.conventions.decimal)
        if group is None or number is None:
            left_out += 1
            continue
        if group not in found:
            if len(found) == MOST_GROUPS:
                raise InputError("`{}` has more than {:,} different values: choose a column with fewer"
                                 .format(x.name, MOST_GROUPS))
            found[group] = Figure()
        found[group].add(number[0])
    return found, left_out


def start_of(moment, period):
    """The first moment of the period that `moment` lies in; weeks begin on Monday."""
    day = datetime(moment.year, moment.month, moment.day)
    if period == "hour":
        return day + timedelta(hours=moment.hour)
    if period == "week":
        return day - timedelta(days=day.weekday()) if day > datetime(1, 1, 7) else day
    if period == "month":
        return day.replace(day=1)
    if period == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    return day.replace(month=1, day=1) if period == "year" else day


def after(start, period):
    months = {"month": 1, "quarter": 3, "year": 12}.get(period)
    if months is None:
        return start + {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}[period]
    index = start.year * 12 + start.month - 1 + months
    return datetime(index // 12, index % 12 + 1, 1)


def label_of(start, period):
    if period == "quarter":
        return "{}-Q{}".format(start.year, (start.month + 2) // 3)
    return start.strftime({"hour": "%m-%d %H:00", "month": "%Y-%m", "year": "%Y"}.get(period, "%Y-%m-%d"))


def finest(column):
    """The period in which a column of dates is first collected."""
    if column.precision == "time" and column.last - column.first <= timedelta(days=5):
        return "hour"
    return {"month": "month", "quarter": "quarter"}.get(column.precision, "day")


def by_period(found, from_period, wanted):
    """The period, and [(start, Figure or None)] without holes, earliest first.

    Not told, the period is the finest with at most MOST_PERIODS of which at least half have rows.
    """
    if wanted and PERIODS.index(wanted) < PERIODS.index(from_period):
        raise InputError("the dates do not tell the {}: the finest is --per {}".format(wanted, from_period))
    for period in [wanted] if wanted else PERIODS[PERIODS.index(from_period):]:
        merged = {}
        for start, figure in found.items():
            merged.setdefault(start_of(start, period), Figure()).join(figure)
        first, last = min(merged), max(merged)
        starts = [first]
        while starts[-1] < last and len(starts) <= 5000:
            starts.append(after(starts[-1], period))
        if len(starts) > 5000:
            if wanted:
                raise InputError("that makes more than 5,000 periods: choose a longer one with --per")
            continue
        if wanted or period == "year" or (len(starts) <= MOST_PERIODS and len(merged) * 2 >= len(starts)):
            return period, [(start, merged.get(start)) for start in starts]
    raise InputError("the dates lie too far apart for a chart of years")


def ranked(found, aggregate, most, order):
    """[(label, value)], the `most` largest by size, and what became of the rest: (how many, their value or None)."""
    items = [(label, figure) for label, figure in found.items() if figure.value(aggregate) is not None]
    rest = []
    if len(items) > most:
        items.sort(key=lambda item: -abs(item[1].value(aggregate)))
        items, rest = items[:most], items[most:]
        names = {label for label, _ in items}
        items = [(label, figure) for label, figure in found.items() if label in names]
    if order == "label":
        items.sort(key=lambda item: (isinstance(item[0], str), item[0]))
    elif order == "value":
        items.sort(key=lambda item: (-item[1].value(aggregate), str(item[0])))
    other = None
    if rest and aggregate in ("count", "sum"):
        joined = Figure()
        for _, figure in rest:
            joined.join(figure)
        other = joined.value(aggregate)
    return [(label, figure.value(aggregate)) for label, figure in items], (len(rest), other)


def nice_step(span, parts):
    """1, 2 or 5 times a power of ten, so that about `parts` of them make the span."""
    rough = span / max(parts, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= rough * 0.999999)


def ticks(low, high, parts):
    """Round marks from at or below `low` to at or above `high`."""
    if high <= low:
        low, high = (low - 1, low + 1) if low == 0 else (low - abs(low) / 2, low + abs(low) / 2)
    step = nice_step(high - low, parts)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def classes(table, y):
    """Edges and counts of a histogram of `y`; the classes are equally wide with round edges, the last holds both."""
    ordered = sorted(y.kept)
    spread = y.quantiles([0.75])[0] - y.quantiles([0.25])[0]
    parts = math.log2(max(y.numbers, 1)) + 1
    if spread > 0:
        parts = max(parts, (y.most - y.least) / (2 * spread / y.numbers ** (1 / 3)))
    edges = ticks(y.least, y.most, min(max(parts, 5), 30))
    if y.whole and edges[1] - edges[0] < 1:
        edges = [float(edge) for edge in range(int(ordered[0]), int(y.most) + 2)]
    counts = [0] * (len(edges) - 1)
    at = table.header.index(y.name)
    for _, row in table.rows():
        text = row[at].strip()
        number = None if values.is_missing(text) else values.number(text, y.conventions.decimal)
        if number is not None:
            place = int((number[0] - edges[0]) / (edges[1] - edges[0]) + 1e-9)
            counts[min(max(place, 0), len(counts) - 1)] += 1
    return edges, counts
