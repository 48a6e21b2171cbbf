"""What a column holds, from one pass in bounded memory.

Counts, sums, extremes are exact. Quantiles are exact up to KEPT numbers, beyond that they come from an even sample of
as many. Different values are counted up to TALLIED; beyond that the frequent ones are kept (Misra and Gries) and
their counts are lower bounds.
"""

import random
from array import array

import values
from table import InputError, plain

KEPT = 50_000
TALLIED = 5_000
LONGEST_VALUE = 100
# So many of the values that are there have to be numbers (or dates) for the column to be called that.
MOSTLY = 0.95


class Conventions:
    """How a column writes numbers and dates, judged from a sample of it."""

    def __init__(self, cells, default_decimal=None, day_first=None):
        cells = [cell.strip() for cell in cells if not values.is_missing(cell)]
        marks = [values.decimal_evidence(cell) for cell in cells]
        self.told_decimal = default_decimal is None and (marks.count(",") or marks.count(".")) > 0
        self.decimal = default_decimal or ("," if marks.count(",") > marks.count(".") else ".")
        orders = [values.order_evidence(cell) for cell in cells]
        self.order_clash = True in orders and False in orders
        self.order_unknown = (day_first is None and True not in orders and False not in orders
                              and any(values.has_order(cell) for cell in cells))
        self.day_first = day_first if day_first is not None else orders.count(True) > orders.count(False)
        self.compact = bool(cells) and all(values.date(cell, compact=True) for cell in cells)


class Column:
    def __init__(self, name, conventions):
        self.name, self.conventions = name, conventions
        self.missing, self.present = {}, 0
        self.numbers, self.dates, self.codes, self.whole = 0, 0, 0, True
        self.odd = []
        self.units = {}
        self.least = self.most = self.first = self.last = None
        self.precisions = {}
        self.mean = self._squares = self._sum = self._lost = 0.0
        self.kept, self._random = array("d"), random.Random(7)
        self.tally, self.tally_full, self._seen = {}, False, {}

    def add(self, line, text):
        text = text.strip()
        if values.is_missing(text):
            self.missing[text] = self.missing.get(text, 0) + 1
            return
        self.present += 1
        self._count(text)
        number, moment, code = self._read(text)
        if number is not None:
            self._add_number(*number)
        if moment is not None:
            self.dates += 1
            when, precision = moment
            self.precisions[precision] = self.precisions.get(precision, 0) + 1
            self.first = when if self.first is None else min(self.first, when)
            self.last = when if self.last is None else max(self.last, when)
        self.codes += code
        if number is None and moment is None and len(self.odd) < 3:
            self.odd.append((line, plain(text, 30)))

    def _read(self, text):
        """(number, date, whether a code), remembered: columns repeat themselves."""
        known = self._seen.get(text)
        if known is None:
            rules = self.conventions
            number = values.number(text, rules.decimal)
            moment = values.date(text, rules.day_first, rules.compact) if rules.compact or number is None else None
            known = (number, moment, values.is_code(text))
            if len(self._seen) < TALLIED and len(text) <= LONGEST_VALUE:
                self._seen[text] = known
        return known

    def _count(self, text):
        key = plain(text, LONGEST_VALUE)
        if key in self.tally:
            self.tally[key] += 1
        elif len(self.tally) < TALLIED:
            self.tally[key] = 1
        else:
            self.tally_full = True
            self.tally = {key: count - 1 for key, count in self.tally.items() if count > 1}

    def _add_number(self, value, unit):
        self.numbers += 1
        if unit or self.units:
            self.units[unit] = self.units.get(unit, 0) + 1
        self.whole = self.whole and value == int(value)
        self.least = value if self.least is None else min(self.least, value)
        self.most = value if self.most is None else max(self.most, value)
        step = value - self.mean
        self.mean += step / self.numbers
        self._squares += step * (value - self.mean)
        # Neumaier's sum: what rounding loses is kept aside.
        total = self._sum + value
        self._lost += (self._sum - total) + value if abs(self._sum) >= abs(value) else (value - total) + self._sum
        self._sum = total
        if len(self.kept) < KEPT:
            self.kept.append(value)
        else:
            place = int(self._random.random() * self.numbers)
            if place < KEPT:
                self.kept[place] = value

    @property
    def kind(self):
        """number, date, code, text or empty."""
        if not self.present:
            return "empty"
        if self.conventions.compact and self.dates >= MOSTLY * self.present:
            return "date"
        if self.numbers >= MOSTLY * self.present:
            return "code" if self.codes else "number"
        return "date" if self.dates >= MOSTLY * self.present else "text"

    @property
    def total(self):
        return self._sum + self._lost

    @property
    def deviation(self):
        return (self._squares / (self.numbers - 1)) ** 0.5 if self.numbers > 1 else None

    @property
    def sampled(self):
        return self.numbers > len(self.kept)

    def quantiles(self, parts):
        """Linear between neighbours, as spreadsheets have it."""
        ordered = sorted(self.kept)
        result = []
        for part in parts:
            place = part * (len(ordered) - 1)
            low = int(place)
            high = min(low + 1, len(ordered) - 1)
            result.append(ordered[low] + (ordered[high] - ordered[low]) * (place - low))
        return result

    @property
    def unit(self):
        known = [unit for unit in self.units if unit]
        return known[0] if len(known) == 1 else ""

    @property
    def precision(self):
        for precision in ("time", "day", "month", "quarter"):
            if self.precisions.get(precision):
                return precision
        return "day"

    @property
    def missing_count(self):
        return sum(self.missing.values())

    def top(self, most):
        """The most frequent values; of a full tally only those whose count is beyond its error."""
        least = self.present / TALLIED if self.tally_full else 0
        frequent = [pair for pair in self.tally.items() if pair[1] > least]
        return sorted(frequent, key=lambda pair: (-pair[1], pair[0]))[:most]

    @property
    def all_different(self):
        return not self.tally_full and len(self.tally) == self.present > 1

    def notes(self):
        """What a reader has to know before they trust the figures."""
        kind, notes = self.kind, []
        others = self.present - (self.numbers if kind == "number" else self.dates)
        if kind in ("number", "date") and others:
            examples = ", ".join("`{}` (line {})".format(text, line) for line, text in self.odd)
            notes.append("left out as no {}: {}, such as {}".format(kind, values.counted(others, "value"), examples))
        for what, found in (("number", self.numbers), ("date", self.dates)):
            if kind == "text" and found >= 0.5 * self.present:
                examples = ", ".join("`{}` (line {})".format(text, line) for line, text in self.odd)
                notes.append("{:.0%} of the values are {}s, too few to take the column for that; others: {}"
                             .format(found / self.present, what, examples or "of another kind"))
        if kind == "code":
            notes.append("digits with leading zeros or more than 15 of them: a code, not a quantity")
        if kind == "number" and len([unit for unit in self.units if unit]) > 1:
            listed = ", ".join("{} {:,}".format(unit or "none", count) for unit, count in sorted(self.units.items()))
            notes.append("several units are mixed ({}): its sum and mean mean nothing".format(listed))
        if kind == "number" and self.conventions.decimal == ",":
            notes.append("read with a decimal comma (1.234,5)")
        if kind == "date" and self.conventions.order_unknown:
            notes.append("no date tells whether day or month comes first; read as {} first"
                         .format("day" if self.conventions.day_first else "month"))
        if kind == "date" and self.conventions.order_clash:
            notes.append("day and month change places within the column: the dates cannot be trusted")
        return notes


def columns_of(table, decimal=None, day_first=None, only=None):
    """All columns of the table and the number of its rows, in one pass; with `only`, those names alone are filled."""
    cells = list(zip(*[(row + [""] * len(table.header))[: len(table.header)] for row in table.sample]))
    if not cells:
        cells = [()] * len(table.header)
    columns = [Column(name, Conventions(own, decimal, day_first)) for name, own in zip(table.header, cells)]
    _share_decimal(columns)
    count = 0
    filled = [(index, column) for index, column in enumerate(columns) if only is None or column.name in only]
    for line, row in table.rows():
        count += 1
        for index, column in filled:
            column.add(line, row[index])
    return columns, count


def _share_decimal(columns):
    """One file has one convention: a column that does not tell follows those that do, if they agree."""
    told = {column.conventions.decimal for column in columns if column.conventions.told_decimal}
    for column in columns:
        if told == {","} and not column.conventions.told_decimal:
            column.conventions.decimal = ","


def find(columns, name):
    """The column of this name, or number from 1."""
    for wanted in (name, name.strip().lower()):
        for column in columns:
            if wanted in (column.name, column.name.lower()):
                return column
    if name.isdigit() and 1 <= int(name) <= len(columns):
        return columns[int(name) - 1]
    raise InputError("there is no column `{}`; there are: {}".format(
        name, ", ".join("`{}`".format(column.name) for column in columns[:40])))
