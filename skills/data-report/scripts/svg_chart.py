"""Charts as SVG text: bars for categories, columns for classes, a line for time. No label is cut by an edge.

Widths of text are estimated on the safe side, as the font that shows it is not known.
"""

import unicodedata

import series
from values import shown

FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
WIDTH, MARGIN = 800, 24
INK, FAINT, GRID, AXIS = "#1f2933", "#5f6b7a", "#e6e9ee", "#9aa5b1"
GOOD, BAD, REST = "#2f6db3", "#c4553b", "#a9b4c2"


def width_of(text, size):
    return sum(map(_em, text)) * size


def _em(mark):
    if unicodedata.east_asian_width(mark) in "WF":
        return 1.0
    if unicodedata.combining(mark):
        return 0.0
    if mark in "ijl.,:;'|! ()[]ft":
        return 0.37
    return 0.95 if mark in "mwMW@%…—" else 0.75 if mark.isupper() else 0.63


def fitted(text, size, room):
    """The text, or its beginning and an ellipsis where it is wider than the room."""
    if width_of(text, size) <= room:
        return text
    while text and width_of(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def wrapped(text, size, room, most=2):
    """At most `most` lines, broken at spaces where there are any."""
    lines = []
    while text and len(lines) < most - 1 and width_of(text, size) > room:
        end = 1
        while end < len(text) and width_of(text[: end + 1], size) <= room:
            end += 1
        space = max(text.rfind(" ", 0, end + 1), text.rfind("-", 0, end) + 1, text.rfind("/", 0, end) + 1)
        end = space if space > end // 2 else end
        lines.append(text[:end].strip())
        text = text[end:].strip()
    return lines + [fitted(text, size, room)] if text else lines


class Canvas:
    def __init__(self, title, subtitle):
        self._title, self._parts, self.top = title, [], MARGIN + 4
        for line in wrapped(title, 18, WIDTH - 2 * MARGIN):
            self.top += 16
            self.text(MARGIN, self.top, line, 18, INK, weight="600")
            self.top += 7
        for line in wrapped(subtitle, 12, WIDTH - 2 * MARGIN, 3):
            self.top += 14
            self.text(MARGIN, self.top, line, 12, FAINT)
            self.top += 3
        self.top += 14

    def text(self, x, y, text, size=12, fill=INK, anchor="start", weight=None, full=None, halo=False):
        hint = "<title>{}</title>".format(escaped(full)) if full and full != text else ""
        style = ' font-weight="{}"'.format(weight) if weight else ""
        style += ' stroke="#ffffff" stroke-width="4" paint-order="stroke"' if halo else ""
        self._parts.append('<text x="{:.1f}" y="{:.1f}" font-size="{}" fill="{}" text-anchor="{}"{}>{}{}</text>'
                           .format(x, y, size, fill, anchor, style, hint, escaped(text)))

    def line(self, x1, y1, x2, y2, stroke=GRID, width=1.0):
        self._parts.append('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="{}"/>'
                           .format(x1, y1, x2, y2, stroke, width))

    def box(self, x, y, width, height, fill, hint):
        self._parts.append('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"><title>{}</title></rect>'
                           .format(x, y, max(width, 0.5), max(height, 0.5), fill, escaped(hint)))

    def dot(self, x, y, radius, hint):
        self._parts.append('<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"><title>{}</title></circle>'
                           .format(x, y, radius, GOOD, escaped(hint)))

    def path(self, points):
        joined = " ".join("{:.1f},{:.1f}".format(x, y) for x, y in points)
        self._parts.append('<polyline points="{}" fill="none" stroke="{}" stroke-width="2" stroke-linejoin="round" '
                           'stroke-linecap="round"/>'.format(joined, GOOD))

    def finished(self, height):
        return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h:.0f}" width="{w}" height="{h:.0f}" '
                'role="img" font-family="{font}">\n<title>{title}</title>\n'
                '<rect width="100%" height="100%" fill="#ffffff"/>\n{parts}\n</svg>\n').format(
                    w=WIDTH, h=height, font=FONT, title=escaped(self._title), parts="\n".join(self._parts))


def escaped(text):
    text = "".join(mark if mark.isprintable() else " " for mark in text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def bars(title, subtitle, items, rest_label=None):
    """Lying bars, one a category; the value stands at the end of its bar."""
    canvas, size = Canvas(title, subtitle), 12
    room = min(max([width_of(label, size) for label, _ in items] + [20]), 250)
    labels = [wrapped(label, size, room + 1) for label, _ in items]
    row = 38 if any(len(lines) > 1 for lines in labels) else 26 if len(items) <= 30 else 21
    figures = [shown(value) for _, value in items]
    low, high = min(0, *(value for _, value in items)), max(0, *(value for _, value in items))
    marks = series.ticks(low, high, 5)
    below = max([width_of(text, size) + 10 for text, (_, value) in zip(figures, items) if value < 0] + [0])
    above = max([width_of(text, size) + 10 for text, (_, value) in zip(figures, items) if value >= 0] + [0])
    left = MARGIN + room + 12 + below
    right = WIDTH - MARGIN - max(above, width_of(shown(marks[-1]), 11) / 2)
    at = _scale(marks[0], marks[-1], left, right)
    top, bottom = canvas.top, canvas.top + row * len(items) + 6
    _marks_below(canvas, marks, at, top, bottom)
    for index, ((label, value), lines, figure) in enumerate(zip(items, labels, figures)):
        middle = top + 3 + row * (index + 0.5)
        for number, line in enumerate(lines):
            canvas.text(MARGIN + room, middle + 4 + (number - (len(lines) - 1) / 2) * 14, line, size, INK, "end",
                        full=label)
        thick = min(row - 6, 20)
        fill = REST if label == rest_label else GOOD if value >= 0 else BAD
        start, end = sorted((at(0), at(value)))
        canvas.box(start, middle - thick / 2, end - start, thick, fill, "{}: {}".format(label, figure))
        if value >= 0:
            canvas.text(end + 5, middle + 4, figure, size, FAINT, halo=True)
        else:
            canvas.text(start - 5, middle + 4, figure, size, FAINT, "end", halo=True)
    canvas.line(at(0), top, at(0), bottom, AXIS)
    return canvas.finished(bottom + 20 + MARGIN)


def _marks_below(canvas, marks, at, top, bottom):
    widest = max(width_of(shown(mark), 11) for mark in marks) + 14
    every = 1
    while every < len(marks) and (at(marks[1]) - at(marks[0])) * every < widest:
        every += 1
    zero = min(range(len(marks)), key=lambda index: abs(marks[index]))
    for index, mark in enumerate(marks):
        canvas.line(at(mark), top, at(mark), bottom)
        if (index - zero) % every == 0:
            canvas.text(at(mark), bottom + 16, shown(mark), 11, FAINT, "middle")


def columns(title, subtitle, edges, counts, x_label):
    """A histogram: standing columns between round edges."""
    canvas = Canvas(title, subtitle)
    marks = series.ticks(0, max(counts), 5)
    left, right, top, bottom, up = _frame(canvas, marks)
    at = _scale(edges[0], edges[-1], left, right)
    for low, high, count in zip(edges, edges[1:], counts):
        x, width = at(low) + 0.75, at(high) - at(low) - 1.5
        if count:
            hint = "{} to {}: {:,}".format(shown(low), shown(high), count)
            canvas.box(x, up(count), width, bottom - up(count), GOOD, hint)
    canvas.line(left, bottom, right, bottom, AXIS)
    _labels_below(canvas, [(at(edge), shown(edge)) for edge in edges], bottom)
    canvas.text((left + right) / 2, bottom + 40, fitted(x_label, 12, right - left), 12, FAINT, "middle", full=x_label)
    return canvas.finished(bottom + 52 + MARGIN / 2)


def line(title, subtitle, items, from_zero):
    """Values over time; where there is none the line is broken."""
    canvas = Canvas(title, subtitle)
    known = [value for _, value in items if value is not None]
    low, high = min(known), max(known)
    if from_zero or (low > 0 and low < high * 0.4):
        low, high = min(low, 0), max(high, 0)
    left, right, top, bottom, up = _frame(canvas, series.ticks(low, high, 5))
    at = _scale(0, max(len(items) - 1, 1), left + 10, right - 10)
    run = []
    for index, (label, value) in enumerate(items + [("", None)]):
        if value is not None:
            run.append((at(index), up(value)))
            continue
        if len(run) > 1:
            canvas.path(run)
        elif run:
            canvas.dot(run[0][0], run[0][1], 3, "")
        run = []
    radius = 3 if len(items) <= 40 else 1.5
    for index, (label, value) in enumerate(items):
        if value is not None:
            canvas.dot(at(index), up(value), radius, "{}: {}".format(label, shown(value)))
    canvas.line(left, bottom, right, bottom, AXIS)
    _labels_below(canvas, [(at(index), label) for index, (label, _) in enumerate(items)], bottom)
    return canvas.finished(bottom + 30 + MARGIN / 2)


def _frame(canvas, marks):
    """Room for the plot, with lines for the marks of the upright axis."""
    left = MARGIN + max(width_of(shown(mark), 11) for mark in marks) + 10
    right, top = WIDTH - MARGIN - 12, canvas.top
    bottom = top + 300
    up = _scale(marks[0], marks[-1], bottom, top)
    for mark in marks:
        zero = mark == 0 and marks[0] < 0
        canvas.line(left, up(mark), right, up(mark), AXIS if zero else GRID)
        canvas.text(left - 8, up(mark) + 4, shown(mark), 11, FAINT, "end")
    return left, right, top, bottom, up


def _labels_below(canvas, labels, bottom):
    """As many labels as have room, evenly spaced, none beyond an edge."""
    widest = max(width_of(text, 11) for _, text in labels) + 16
    gap = (labels[-1][0] - labels[0][0]) / max(len(labels) - 1, 1)
    every = max(1, -int(-widest // gap)) if gap > 0 else 1
    for index in range(0, len(labels), every):
        x, text = labels[index]
        half = width_of(text, 11) / 2
        canvas.line(x, bottom, x, bottom + 4, AXIS)
        canvas.text(min(max(x, half + 4), WIDTH - half - 4), bottom + 18, text, 11, FAINT, "middle")


def _scale(low, high, start, end):
    return lambda value: start + (value - low) / (high - low) * (end - start)
