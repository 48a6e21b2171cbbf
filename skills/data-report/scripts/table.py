"""A CSV file as rows: encoding, delimiter, head and ragged lines are found out, and what was decided is noted.

The file is read from disk each time and never held in memory.
"""

import codecs
import csv
import os
import re
import shutil
import sys
import tempfile

import values

DELIMITERS = ",;\t|"
SAMPLE_BYTES = 256 * 1024
SAMPLE_ROWS = 2000
LONGEST_FIELD = 1024 * 1024
# A record of so many lines is more likely a quote that was never closed.
MANY_LINES = 50
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def speak_utf8():
    """What a table holds is not ASCII, whatever the terminal was told."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


class InputError(Exception):
    """What is wrong with the input or the options: one sentence, with what to do."""


class Table:
    def __init__(self, path, encoding=None, delimiter=None, header=True, quotes=True):
        self.name = "standard input" if path == "-" else plain(os.path.basename(path), 80)
        self._path, self._spooled = _on_disk(path)
        self.notes, self.ragged, self._spans = [], [], []
        self._quotes = quotes
        self._guessed = encoding is None
        self.encoding, self._errors = self._find_encoding(encoding)
        self._skip = 0
        self.delimiter = delimiter or self._find_delimiter()
        self._read_head(header)

    def rows(self):
        """(line number, cells) of each row of data, as wide as the head. Rows of only empty cells are left out."""
        short = long = 0
        first_short = first_long = None
        for line, row in self._records():
            if line <= self._last_head_line or not any(cell.strip() for cell in row):
                continue
            if len(row) < len(self.header):
                short, first_short = short + 1, first_short or line
                row = row + [""] * (len(self.header) - len(row))
            elif len(row) > len(self.header):
                if any(cell.strip() for cell in row[len(self.header):]):
                    long, first_long = long + 1, first_long or line
                row = row[: len(self.header)]
            yield line, row
        self.ragged = list(self._spans)
        if short:
            self.ragged.append("rows shorter than the head: {:,} (first: line {}); what they lack counts as missing"
                               .format(short, first_short))
        if long:
            self.ragged.append("rows longer than the head: {:,} (first: line {}); their further fields were left out"
                               .format(long, first_long))

    def _records(self):
        csv.field_size_limit(LONGEST_FIELD)
        with open(self._path, encoding=self.encoding, errors=self._errors, newline="") as file:
            lines = (line.replace("\0", "") for line in file)
            quoting = csv.QUOTE_MINIMAL if self._quotes else csv.QUOTE_NONE
            reader = csv.reader(lines, delimiter=self.delimiter, quoting=quoting)
            start = 1
            while True:
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    raise InputError("line {}: {}. A quote that is opened and never closed does this; "
                                     "--no-quotes takes quotes as plain characters.".format(start, error))
                if reader.line_num - start >= MANY_LINES and not self._spans:
                    self._spans = ["the record at line {} spans {} lines: a quote that is never closed does this; "
                                   "--no-quotes takes quotes as plain characters".format(
                                       start, reader.line_num - start + 1)]
                yield start, row
                start = reader.line_num + 1

    def _find_encoding(self, given):
        with open(self._path, "rb") as file:
            head = file.read(4096)
        if not head:
            raise InputError("{} is empty".format(self.name))
        if given:
            try:
                codecs.lookup(given)
            except LookupError:
                raise InputError("there is no encoding `{}`; utf-8, gb18030, big5, shift_jis, cp1252 are some"
                                 .format(given))
            return ("utf-8-sig" if given.lower().replace("_", "-") in ("utf-8", "utf8") else given), "replace"
        for mark, encoding in ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"),
                               (codecs.BOM_UTF16_BE, "utf-16")):
            if head.startswith(mark):
                return encoding, "replace"
        if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            raise InputError("{} is a workbook or an archive and no CSV; export the sheet as CSV first"
                             .format(self.name))
        if head.count(0) * 3 > len(head):
            return ("utf-16-be" if head[0] == 0 else "utf-16-le"), "replace"
        if b"\0" in head[:1024] and head.count(0) > 8:
            raise InputError("{} is binary and no CSV".format(self.name))
        return self._without_mark()

    def _without_mark(self):
        """One pass over all of it: UTF-8 if that fits, else what the bytes above 127 look like."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        broken = foreign = 0
        chinese = codecs.getincrementaldecoder("gb18030")("strict")
        valid_chinese, runs, even = True, 0, 0
        with open(self._path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                text = decoder.decode(block)
                broken += text.count("\ufffd")
                if block.isascii():
                    continue
                foreign += len(text) - len(text.encode("ascii", "ignore"))
                if broken:
                    for run in re.findall(rb"[\x80-\xff]+", block):
                        runs, even = runs + 1, even + (len(run) % 2 == 0)
                    try:
                        chinese.decode(block)
                    except UnicodeDecodeError:
                        valid_chinese = False
        broken += decoder.decode(b"", True).count("\ufffd")
        if broken == 0:
            return "utf-8", "replace"
        if broken * 20 < foreign:
            self.notes.append("bytes that are not valid UTF-8, shown as \ufffd: {:,}".format(broken))
            return "utf-8", "replace"
        guess = "gb18030" if valid_chinese and even * 10 >= runs * 9 else "cp1252"
        self.notes.append("it is not UTF-8; the encoding {} is a guess (--encoding sets another)".format(guess))
        return guess, "replace"

    def _find_delimiter(self):
        with open(self._path, encoding=self.encoding, errors=self._errors, newline="") as file:
            sample = file.read(SAMPLE_BYTES)
        if not sample.strip():
            raise InputError("{} holds no text".format(self.name))
        told = re.match(r'"?sep=(.)"?\r?\n', sample)
        if told:
            self._skip = 1
            return told.group(1)
        lines = sample.splitlines(True)
        if len(lines) > 1 and len(sample) >= SAMPLE_BYTES:
            lines.pop()
        best, delimiter = (0.0, 0), ","
        for candidate in DELIMITERS:
            try:
                widths = [len(row) for row in csv.reader(lines, delimiter=candidate) if row]
            except csv.Error:
                continue
            usual = max(set(widths), key=lambda width: (widths.count(width), width)) if widths else 1
            if usual > 1:
                score = (round(widths.count(usual) / len(widths), 2), usual)
                best, delimiter = max((best, delimiter), (score, candidate), key=lambda pair: pair[0])
        return delimiter

    def _read_head(self, header):
        sample = []
        for line, row in self._records():
            if line > self._skip and any(cell.strip() for cell in row):
                sample.append((line, row))
            if len(sample) == SAMPLE_ROWS:
                break
        if not sample:
            raise InputError("{} holds no rows".format(self.name))
        widths = [len(row) for _, row in sample]
        usual = max(set(widths), key=lambda width: (widths.count(width), width))
        titles = 0
        while usual >= 2 and titles < min(10, len(sample) - 1) and _filled(sample[titles][1]) == 1 \
                and len(sample[titles][1]) < usual:
            titles += 1
        if titles:
            self.notes.append("{} above the head left out: {}".format(
                "a line" if titles == 1 else "{} lines".format(titles), plain(sample[0][1][0].strip(), 60)))
        line, first = sample[titles]
        if header and len(sample) > titles + 1 and all(_is_value(cell) for cell in first):
            header = False
            self.notes.append("the first row holds values, so it is taken for data and columns are numbered")
        width = max(len(first), 1)
        if header:
            self._last_head_line = self._end_of(line)
            self.header = _distinct([" ".join(cell.split()) for cell in first])
            while len(self.header) > usual and self.header[-1].startswith("column ") and not first[-1].strip():
                self.header.pop()
                first = first[:-1]
        else:
            self._last_head_line = line - 1
            self.header = ["column {}".format(index + 1) for index in range(max(width, usual))]
        data = sample[titles + 1:] if header else sample[titles:]
        self.sample = [row for _, row in data]

    def _end_of(self, first_line):
        """The last line of the record that begins at `first_line`: a head may hold line breaks."""
        previous = None
        for line, _ in self._records():
            if previous == first_line:
                return line - 1
            previous = line
        return sys.maxsize

    def described(self):
        encoding = {"utf-8-sig": "utf-8 (with a mark)"}.get(self.encoding, self.encoding)
        return "{}, delimiter {}".format(encoding, NAMES.get(self.delimiter, repr(self.delimiter)))

    def close(self):
        if self._spooled:
            os.unlink(self._path)


def plain(text, longest):
    """One line, cut, with no control characters: what a file says must not steer a terminal."""
    text = "".join(mark if mark.isprintable() else " " for mark in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _on_disk(path):
    if path != "-":
        if os.path.isdir(path):
            raise InputError("{} is a directory".format(path))
        if not os.path.isfile(path):
            raise InputError("there is no file {}".format(path))
        return path, False
    with tempfile.NamedTemporaryFile("wb", delete=False) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return file.name, True


def _filled(row):
    return sum(1 for cell in row if cell.strip())


def _is_value(cell):
    return not values.is_missing(cell) and (values.number(cell) is not None or values.date(cell) is not None)


def _distinct(names):
    """Names for all columns: empty ones numbered, repeated ones counted."""
    seen, result = {}, []
    for index, name in enumerate(names):
        name = plain(name, 80) or "column {}".format(index + 1)
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else "{} ({})".format(name, seen[name]))
    return result
