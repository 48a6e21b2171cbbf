#!/usr/bin/env python3
"""Says whether an SVG is well-formed, its texts lie inside it, and no two of them overlap."""

import sys
import unicodedata
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def width(text, size):
    """As wide as common fonts have it: wider letters than the average, no more."""
    return sum(1.0 if unicodedata.east_asian_width(mark) in "WF" else 0.9 if mark in "mwMW@%" else
               0.3 if mark in "ijl.,:;'|! ()" else 0.6 for mark in text) * size


def main():
    root = ElementTree.parse(sys.argv[1]).getroot()
    _, _, right, bottom = map(float, root.get("viewBox").split())
    boxes, problems = [], []
    for text in root.iter(SVG + "text"):
        said = "".join(part for part in [text.text or ""] + [child.tail or "" for child in text])
        size, x, y = float(text.get("font-size")), float(text.get("x")), float(text.get("y"))
        wide = width(said, size)
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[text.get("text-anchor")]
        boxes.append((left, y - 0.75 * size, left + wide, y + 0.2 * size, said))
    for shape in list(root.iter(SVG + "rect")) + list(root.iter(SVG + "circle")):
        if shape.get("width") == "100%":
            continue
        reach = float(shape.get("r") or 0)
        x, y = (float(shape.get(name) or shape.get("c" + name)) for name in "xy")
        wide, high = (float(shape.get(name) or reach) for name in ("width", "height"))
        if x - reach < 0 or y - reach < 0 or x + wide > right or y + high > bottom:
            problems.append("a shape at {}, {} lies outside".format(x, y))
    for index, box in enumerate(boxes):
        if box[0] < 0 or box[1] < 0 or box[2] > right or box[3] > bottom:
            problems.append("`{}` is cut by the edge".format(box[4]))
        for other in boxes[:index]:
            if box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]:
                problems.append("`{}` overlaps `{}`".format(box[4], other[4]))
    print("\n".join(problems) if problems else "drawn well: {} texts".format(len(boxes)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
