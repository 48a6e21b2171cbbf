#!/usr/bin/env python3
"""Prints what a CSV file holds, column by column. `-` reads standard input. Nothing is written."""

import sys

sys.dont_write_bytecode = True

import argparse
import json

import values
from columns import columns_of, find
from table import InputError, Table, plain, speak_utf8

MOST_COLUMNS = 60


def main():
    speak_utf8()
    options = arguments()
    try:
        table = Table(options.file, options.encoding, options.delimiter, not options.no_header, not options.no_quotes)
        try:
            columns, count = columns_of(table, options.decimal, options.day_first or None)
        finally:
            table.close()
        chosen = [find(columns, name) for name in options.column] or columns
    except (InputError, OSError, UnicodeError) as error:
        print("error: {}".format(error), file=sys.stderr)
        return 1
    try:
        if options.json:
            print(json.dumps(as_data(table, chosen, count), ensure_ascii=False, indent=1))
        else:
            print("\n".join(as_text(table, columns, chosen, count, options.top)))
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="a CSV file, or - for standard input")
    parser.add_argument("--column", action="append", default=[], help="only this column (name or number); repeatable")
    parser.add_argument("--top", type=int, default=5, help="how many frequent values are shown (5)")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    add_reading(parser)
    return parser.parse_args()


def add_reading(parser):
    """The options that say how the file is to be read, where it is guessed wrong."""
    parser.add_argument("--encoding", help="such as utf-8, gb18030, cp1252")
    parser.add_argument("--delimiter", type=delimiter, help="one character; \\t or tab is the tab")
    parser.add_argument("--decimal", choices=[".", ","], help="the mark before fractions")
    parser.add_argument("--day-first", action="store_true", help="03/04/2024 is the 3rd of April")
    parser.add_argument("--no-header", action="store_true", help="the first row is data")
    parser.add_argument("--no-quotes", action="store_true", help="a quote is a plain character")


def delimiter(text):
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1:
        raise argparse.ArgumentTypeError("a delimiter is one character")
    return text


def as_text(table, columns, chosen, count, top):
    yield "{}: {}, {}; {}".format(table.name, values.counted(count, "row"), values.counted(len(columns), "column"),
                                table.described())
    for note in table.notes + table.ragged:
        yield "! " + note
    for column in chosen[:MOST_COLUMNS]:
        yield ""
        yield "{}. {} ({})".format(columns.index(column) + 1, column.name, kind_of(column))
        for line in column_lines(column, count, top):
            yield "   " + line
    if len(chosen) > MOST_COLUMNS:
        yield ""
        yield "{} more columns (--column shows one): {}".format(
            len(chosen) - MOST_COLUMNS, ", ".join(column.name for column in chosen[MOST_COLUMNS:]))


def kind_of(column):
    unit = " in " + column.unit if column.kind == "number" and column.unit else ""
    return column.kind + unit


def column_lines(column, count, top):
    yield presence(column, count)
    if column.kind == "number":
        low, q1, middle, q3, high = column.quantiles([0.05, 0.25, 0.5, 0.75, 0.95])
        about = "≈ " if column.sampled else ""
        shown = values.shown
        yield "min {}, max {}, mean {}, median {}{}, sum {}{}".format(
            shown(column.least), shown(column.most), shown(column.mean), about, shown(middle), shown(column.total),
            "" if column.deviation is None else ", standard deviation " + shown(column.deviation))
        yield "quantiles {}5 % {}, 25 % {}, 75 % {}, 95 % {}".format(about, *map(shown, (low, q1, q3, high)))
    elif column.kind == "date":
        yield "from {} to {}".format(moment(column.first, column.precision), moment(column.last, column.precision))
    frequent = column.top(top)
    if column.all_different and column.kind in ("text", "code"):
        yield "for example: " + "; ".join(plain(value, 40) for value in list(column.tally)[:3])
    elif frequent and (frequent[0][1] > 1 or column.kind in ("text", "code")):
        at_least = "≥ " if column.tally_full else ""
        parts = ["{} {}{:,} ({:.1%})".format(plain(value, 40), at_least, times, times / column.present)
                 for value, times in frequent]
        more = len(column.tally) - len(frequent)
        yield "most frequent: " + "; ".join(parts) + (" … and {:,} others".format(more)
                                                     if more > 0 and not column.tally_full else "")
    for note in column.notes():
        yield "! " + note


def presence(column, count):
    parts = [values.counted(column.present, "value")]
    if column.tally_full:
        parts.append("more than 5,000 different")
    elif column.present:
        parts.append("all different" if column.all_different else "{:,} different".format(len(column.tally)))
    missing = column.missing_count
    if missing:
        marks = sorted(column.missing.items(), key=lambda pair: (-pair[1], pair[0]))[:4]
        listed = ", ".join("{} {:,}".format("`{}`".format(mark) if mark else "empty", times) for mark, times in marks)
        parts.append("{:,} missing ({:.1%}: {})".format(missing, missing / max(count, 1), listed))
    return ", ".join(parts)


def moment(when, precision):
    if precision == "quarter":
        return "{}-Q{}".format(when.year, (when.month + 2) // 3)
    return when.strftime({"time": "%Y-%m-%d %H:%M:%S", "month": "%Y-%m"}.get(precision, "%Y-%m-%d"))


def as_data(table, chosen, count):
    data = []
    for column in chosen:
        entry = {"name": column.name, "type": column.kind, "count": column.present, "missing": column.missing_count,
                 "different": None if column.tally_full else len(column.tally)}
        if column.kind == "number":
            names = ("p05", "p25", "median", "p75", "p95")
            entry.update(unit=column.unit or None, min=column.least, max=column.most, mean=column.mean,
                         sum=column.total, standard_deviation=column.deviation,
                         quantiles_exact=not column.sampled,
                         **dict(zip(names, column.quantiles([0.05, 0.25, 0.5, 0.75, 0.95]))))
        elif column.kind == "date":
            entry.update(first=moment(column.first, column.precision), last=moment(column.last, column.precision))
        entry["top"] = [{"value": value, "count": times} for value, times in column.top(5)]
        entry["top_counts_exact"] = not column.tally_full
        entry["notes"] = column.notes()
        data.append(entry)
    return {"file": table.name, "rows": count, "encoding": table.encoding, "delimiter": table.delimiter,
            "notes": table.notes + table.ragged, "columns": data}


if __name__ == "__main__":
    sys.exit(main())
