"""The same charts for a terminal, in plain characters and at most 78 cells wide."""

import unicodedata

from values import shown

EIGHTHS = " ▏▎▍▌▋▊▉"
LABEL, BAR, HEIGHT, PLOT = 24, 36, 10, 60


def cells(text):
    return sum(0 if unicodedata.combining(mark) else 2 if unicodedata.east_asian_width(mark) in "WF" else 1
               for mark in text)


def fitted(text, room):
    """Exactly `room` cells: padded, or cut with an ellipsis."""
    text = "".join(mark if mark.isprintable() else " " for mark in text)
    if cells(text) > room:
        while cells(text) > room - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (room - cells(text))


def bars(items):
    """A line for each (label, value); negative ones to the left of the axis."""
    room = min(max(cells(label) for label, _ in items), LABEL)
    low, high = min(0, *(value for _, value in items)), max(0, *(value for _, value in items))
    span = (high - low) or 1
    left = round(BAR * -low / span)
    if low < 0:
        left = max(left, 1)
    for label, value in items:
        eighths = round(8 * BAR * abs(value) / span)
        if value < 0:
            full = min(max(round(eighths / 8), 1), left)
            bar = " " * (left - full) + "█" * full + "│"
        else:
            bar = " " * left + "│" + "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
        yield "{} {} {}".format(fitted(label, room), bar, shown(value)).rstrip()


def line(items):
    """Points over time: each column of cells is the mean of the values that fall into it."""
    width = min(len(items), PLOT)
    columns = [[] for _ in range(width)]
    for index, (_, value) in enumerate(items):
        if value is not None:
            columns[index * width // len(items)].append(value)
    means = [sum(column) / len(column) if column else None for column in columns]
    known = [mean for mean in means if mean is not None]
    low, high = min(known), max(known)
    span = (high - low) or 1
    levels = [None if mean is None else round((mean - low) / span * (HEIGHT - 1)) for mean in means]
    marks = {HEIGHT - 1: shown(high), 0: shown(low)} if high > low else {0: shown(low)}
    if high > low:
        marks[(HEIGHT - 1) // 2] = shown(low + span * ((HEIGHT - 1) // 2) / (HEIGHT - 1))
    room = max(map(len, marks.values()))
    for level in range(HEIGHT - 1 if high > low else 0, -1, -1):
        points = "".join("●" if at == level else " " for at in levels)
        yield "{} ┤{}".format(marks.get(level, "").rjust(room), points).rstrip()
    first, last = items[0][0], items[-1][0]
    gap = width - cells(first) - cells(last)
    below = first + (" " * gap + last if gap > 0 else " … " + last if len(items) > 1 else "")
    yield " " * (room + 2) + below
