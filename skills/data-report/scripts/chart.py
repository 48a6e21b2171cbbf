#!/usr/bin/env python3
"""Draws one chart of a CSV file: an SVG file, and the same in characters on standard output.

Without --x and --y it chooses: a figure over time, else by category, else the spread of a figure. It says what it
chose. `-` reads standard input.
"""

import sys

sys.dont_write_bytecode = True

import argparse
import os
from datetime import timedelta

import series
import svg_chart
import text_chart
import values
from columns import columns_of, find
from summarize import add_reading
from table import InputError, Table, plain, speak_utf8


def main():
    speak_utf8()
    options = arguments()
    table = None
    try:
        check_target(options.out)
        table = Table(options.file, options.encoding, options.delimiter, not options.no_header, not options.no_quotes)
        lines, svg = draw(table, options)
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(svg)
    except (InputError, OSError, UnicodeError) as error:
        print("error: {}".format(error), file=sys.stderr)
        return 1
    finally:
        if table:
            table.close()
    try:
        print("\n".join(lines))
        print("\nwritten: {}".format(options.out))
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="a CSV file, or - for standard input")
    parser.add_argument("--out", default="chart.svg", help="the SVG file to write (chart.svg)")
    parser.add_argument("--x", help="the column that groups: categories, dates")
    parser.add_argument("--y", help="the column of numbers")
    parser.add_argument("--agg", choices=series.AGGREGATES, help="what is drawn of each group (sum; count without --y)")
    parser.add_argument("--kind", choices=["bar", "line", "histogram"], help="instead of what fits the columns")
    parser.add_argument("--per", choices=series.PERIODS, help="the period of a chart over time")
    parser.add_argument("--top", type=int, default=20, help="at most so many bars, up to 50 (20)")
    parser.add_argument("--sort", choices=["value", "label", "file"], help="the order of bars")
    parser.add_argument("--title", help="instead of one made from the columns")
    add_reading(parser)
    options = parser.parse_args()
    if not 1 <= options.top <= 50:
        parser.error("--top is 1 to 50")
    return options


def check_target(path):
    if not path.lower().endswith(".svg"):
        raise InputError("--out must end in .svg")
    if os.path.exists(path):
        with open(path, "rb") as file:
            head = file.read(512).lstrip()
        if head and not head.startswith((b"<svg", b"<?xml", b"\xef\xbb\xbf<")):
            raise InputError("{} exists and is no SVG; choose another --out".format(path))


def draw(table, options):
    """The lines for the terminal and the SVG."""
    day_first = options.day_first or None
    wanted = None
    if options.x or (options.y and options.kind == "histogram"):
        named = [find_name(table, name) for name in (options.x, options.y) if name]
        wanted = set(named)
    columns, count = columns_of(table, options.decimal, day_first, wanted)
    x = find(columns, options.x) if options.x else None
    y = find(columns, options.y) if options.y else None
    if x is None and y is None and options.kind != "histogram":
        x, y = chosen(columns)
    elif y is not None and x is None and options.kind != "histogram":
        x = grouping(columns, y)
    if options.kind == "histogram" or x is None or (y is None and x.kind == "number" and spread_out(x)):
        y = y or (x if x is not None and x.kind == "number" else first_number(columns))
        return histogram(table, y, options)
    if y is not None and y.kind != "number":
        raise InputError("`{}` is {} and no number{}".format(y.name, y.kind, "; --agg count needs no --y"
                                                            if options.agg in (None, "count") else ""))
    aggregate = options.agg or ("sum" if y is not None else "count")
    if y is None and aggregate != "count":
        raise InputError("--agg {} needs a column of numbers: --y".format(aggregate))
    if x.kind == "date" and options.kind != "bar" or options.kind == "line":
        return over_time(table, x, y, aggregate, count, options)
    return by_category(table, x, y, aggregate, count, options)


def find_name(table, name):
    class Named:
        def __init__(self, name):
            self.name = name
    return find([Named(known) for known in table.header], name).name


def chosen(columns):
    number = next((column for column in columns if is_figure(column)), None)
    date = next((column for column in columns if column.kind == "date"), None)
    if date is not None:
        return date, number
    return (grouping(columns, number), number)


def grouping(columns, y):
    """A date, else the first column with 2 to 50 different values that repeat."""
    for column in columns:
        if column is not y and column.kind == "date":
            return column
    for column in columns:
        different = len(column.tally)
        if column is not y and column.kind in ("text", "code") and not column.tally_full and 1 < different <= 50:
            return column
    return None


def is_figure(column):
    """A number that is not only the number of its row."""
    serial = column.whole and column.numbers > 2 and column.most - column.least == column.numbers - 1 \
        and (column.tally_full or column.all_different)
    return column.kind == "number" and not serial


def spread_out(column):
    return column.tally_full or len(column.tally) > 20


def first_number(columns):
    found = next((column for column in columns if is_figure(column)), None)
    found = found or next((column for column in columns if column.kind == "number"), None)
    if found is None:
        raise InputError("no column holds numbers or dates; --x COLUMN counts the values of one")
    return found


def words(aggregate, y):
    unit = " ({})".format(y.unit) if y is not None and y.unit else ""
    return {"count": "rows", "sum": "sum of {}", "mean": "mean of {}", "min": "least {}", "max": "greatest {}"}[
        aggregate].format(y.name if y is not None else "") + unit


def headed(what, table, rows, left_out, options, more=()):
    """Title and subtitle; whatever was left out is said."""
    parts = ["{} of {}".format(values.counted(rows, "row"), table.name)]
    if left_out:
        parts.append("{:,} left out for want of a value".format(left_out))
    return plain(options.title or what[0].upper() + what[1:], 160), "; ".join(parts + list(more))


def over_time(table, x, y, aggregate, count, options):
    if x.kind != "date":
        raise InputError("a line needs dates in --x; `{}` is {}".format(x.name, x.kind))
    rules, base = x.conventions, series.finest(x)

    def key(cell):
        found = values.date(cell, rules.day_first, rules.compact)
        return found and series.start_of(found[0], base)
    found, left_out = series.groups(table, x, y, key)
    if not found:
        raise InputError("no row has both `{}` and `{}`".format(x.name, y.name if y is not None else x.name))
    period, slots = series.by_period(found, base, options.per)
    items = [(series.label_of(start, period), (figure or series.Figure()).value(aggregate)) for start, figure in slots]
    title, subtitle = headed("{} per {}".format(words(aggregate, y), period), table, count, left_out, options,
                             empty_note(items, period) + edge_note(x, slots, period, aggregate))
    if len(items) < 3:
        items = [(label, value) for label, value in items if value is not None]
        return [title, subtitle, ""] + list(text_chart.bars(items)), svg_chart.bars(title, subtitle, items)
    lines = [title, subtitle, ""] + list(text_chart.line(items))
    return lines, svg_chart.line(title, subtitle, items, aggregate in ("count", "sum"))


def empty_note(items, period):
    empty = sum(1 for _, value in items if value is None)
    return ["{} without rows".format(values.counted(empty, period))] if empty else []


def edge_note(x, slots, period, aggregate):
    """Says that the first or the last period is not whole: its count or sum then looks like a fall."""
    if aggregate not in ("count", "sum") or period in ("hour", "day") or x.precision in ("month", "quarter"):
        return []
    notes = []
    if x.first.date() > slots[0][0].date():
        notes.append("the first {} is not whole (from {:%Y-%m-%d})".format(period, x.first))
    if x.last.date() < (series.after(slots[-1][0], period) - timedelta(days=1)).date():
        notes.append("the last {} is not whole (to {:%Y-%m-%d})".format(period, x.last))
    return notes


def by_category(table, x, y, aggregate, count, options):
    rules = x.conventions

    def key(cell):
        if x.kind == "number":
            found = values.number(cell, rules.decimal)
            return found and found[0]
        if x.kind == "date":
            found = values.date(cell, rules.day_first, rules.compact)
            return found and found[0].strftime("%Y-%m-%d")
        return " ".join(plain(cell, 200).split())
    found, left_out = series.groups(table, x, y, key)
    if not found:
        raise InputError("no row has both `{}` and `{}`".format(x.name, y.name if y is not None else x.name))
    order = options.sort or ("value" if x.kind in ("text", "code") else "label")
    items, (others, their_value) = series.ranked(found, aggregate, options.top, order)
    items = [(values.shown(label) if isinstance(label, float) else label, value) for label, value in items]
    rest, more = None, []
    if others and their_value is not None and abs(their_value) > 2 * max(abs(value) for _, value in items):
        # Their bar would dwarf all that is to be compared.
        more.append("not drawn: {} with {} together".format(values.counted(others, "other"), values.shown(their_value)))
    elif others and their_value is not None:
        rest = values.counted(others, "other")
        items.append((rest, their_value))
    elif others:
        more.append("the {} largest of {:,}".format(options.top, others + options.top))
    what = "{} by {}".format(words(aggregate, y), x.name)
    title, subtitle = headed(what, table, count, left_out, options, more)
    return [title, subtitle, ""] + list(text_chart.bars(items)), svg_chart.bars(title, subtitle, items, rest)


def histogram(table, y, options):
    if y.kind != "number":
        raise InputError("a histogram needs numbers; `{}` is {}".format(y.name, y.kind))
    edges, counts = series.classes(table, y)
    name = y.name + (" ({})".format(y.unit) if y.unit else "")
    title, subtitle = headed("how {} is spread".format(y.name), table, y.present + y.missing_count,
                             y.present + y.missing_count - y.numbers, options,
                             ["rows per class, its lower edge included"])
    items = [("{} – {}".format(values.shown(low), values.shown(high)), count)
             for low, high, count in zip(edges, edges[1:], counts)]
    return [title, subtitle, ""] + list(text_chart.bars(items)), \
        svg_chart.columns(title, subtitle, edges, counts, name)


if __name__ == "__main__":
    sys.exit(main())
