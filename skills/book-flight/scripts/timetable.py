"""The timetable of this skill: places, days, seats and fares. All of it is made up and the same every time.

What is left of the seats and what the day adds to the fare follow from flight and date alone; bookings kept in the
workspace take their seats away.
"""

import csv
import difflib
import hashlib
import json
import os
import re
import sys
from datetime import date, datetime, timedelta, timezone

ASSETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "assets")
CABINS = ("economy", "business")
FARTHEST_DAYS = 330
MOST_TRAVELLERS = 9
CURRENCY = "CNY"
TAX = {"adult": 180, "child": 90, "infant": 0}
SHARE = {"adult": 1.0, "child": 0.75, "infant": 0.1}
BAGGAGE = {"economy": "1 × 23 kg", "business": "2 × 32 kg"}
RELATIVE = {"today": 0, "今天": 0, "tomorrow": 1, "明天": 1, "day after tomorrow": 2, "后天": 2}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DEMONSTRATION = "Made-up timetable: no airline is asked, nothing is bought."


def speak_utf8():
    """Names of places are not ASCII, whatever the terminal was told."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


class Refused(Exception):
    """Why it cannot be done, and what would help."""


def rows(name):
    with open(os.path.join(ASSETS, name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def airports(place):
    """The airports that a city, an alias or a code stands for."""
    wanted, known = " ".join(place.split()).lower(), rows("airports.csv")
    found = [row for row in known if wanted in (row["city"].lower(), *row["city_aliases"].split("|"))]
    found = found or [row for row in known if wanted in (row["airport"].lower(), row["airport_name"].lower(),
                                                         *row["airport_aliases"].split("|"))]
    if not found:
        cities = sorted({row["city"] for row in known})
        near = difflib.get_close_matches(wanted.title(), cities, 2, 0.7)
        hint = "did you mean {}?".format(" or ".join(near)) if near else "served: {}".format(", ".join(cities))
        raise Refused("no such city or airport: {}; {}".format(place, hint))
    return [row["airport"] for row in found]


def airport(code):
    return next(row for row in rows("airports.csv") if row["airport"] == code)


def today(given):
    return date.today() if given is None else iso_day(given.partition("T")[0], "--now")


def has_left(row, when, given):
    """Whether the flight of that day has gone: by the clock of its airport, or by the moment that was given."""
    if given is None:
        here = datetime.now(timezone.utc).replace(tzinfo=None) + offset(row["from"])
    else:
        clock = given.partition("T")[2] or "00:00"
        if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", clock, re.ASCII):
            raise Refused("--now {}: write YYYY-MM-DD or YYYY-MM-DDTHH:MM".format(given))
        here = datetime.combine(today(given), datetime.strptime(clock, "%H:%M").time())
    return times(row, when)[0] <= here


def iso_day(text, option):
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        raise Refused("{} {}: write a date as YYYY-MM-DD, or today, tomorrow".format(option, text))
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Refused("{} {}: there is no such day".format(option, text))


def day(text, now, option="--date"):
    """A day to fly, not past and not beyond what is sold."""
    words = " ".join(text.split()).lower()
    wanted = now + timedelta(days=RELATIVE[words]) if words in RELATIVE else iso_day(words, option)
    if wanted < now:
        raise Refused("{} {}: that day is past (today is {})".format(option, wanted, told(now)))
    if wanted > now + timedelta(days=FARTHEST_DAYS):
        raise Refused("{} {}: flights are sold {} days ahead, to {}".format(
            option, wanted, FARTHEST_DAYS, now + timedelta(days=FARTHEST_DAYS)))
    return wanted


def told(when):
    return "{} ({})".format(when, WEEKDAYS[when.weekday()])


def flight(number):
    for row in rows("timetable.csv"):
        if row["flight"] == number.strip().upper():
            return row
    raise Refused("no such flight: {}; search_flights.py lists those of a route".format(number))


def flies(row, when):
    return str(when.isoweekday()) in row["days"]


def times(row, when):
    """Departure and arrival, both in local time."""
    start = datetime.combine(when, datetime.strptime(row["departs"], "%H:%M").time())
    shift = offset(row["to"]) - offset(row["from"])
    return start, start + timedelta(minutes=int(row["minutes"])) + shift


def offset(code):
    text = airport(code)["utc_offset"]
    return (1 if text[0] == "+" else -1) * timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))


def number_of(*parts):
    return int.from_bytes(hashlib.sha256("|".join(map(str, parts)).encode()).digest()[:8], "big")


def seats_left(row, when, cabin, bookings="bookings"):
    """How many are left: most days a few, some days none."""
    draw = number_of("seats", row["flight"], when, cabin)
    free = 0 if draw % 7 == 0 else draw // 7 % min(int(row["seats_" + cabin]), 24) + 1
    for booking in kept(bookings):
        if (booking.get("flight"), booking.get("date"), booking.get("cabin")) == (row["flight"], str(when), cabin):
            free -= booking.get("seats", 0)
    return max(free, 0)


def kept(directory):
    found = []
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    for name in names:
        if name.endswith(".json"):
            try:
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    booking = json.load(file)
            except (OSError, ValueError) as error:
                raise Refused("{} cannot be read: {}; move it away or mend it".format(
                    os.path.join(directory, name), error))
            found.append(booking if isinstance(booking, dict) else {})
    return found


def fare(row, when, cabin):
    """One adult, before tax: Fridays and Sundays cost more, and each day a little else."""
    busy = 1.15 if when.isoweekday() in (5, 7) else 1.0
    drift = 0.9 + number_of("fare", row["flight"], when, cabin) % 26 / 100
    return int(round(int(row[cabin]) * busy * drift / 10.0) * 10)


def add_travellers(parser):
    parser.add_argument("--adults", type=int, help="12 years or older")
    parser.add_argument("--children", type=int, default=0, help="2 to 11 years")
    parser.add_argument("--infants", type=int, default=0, help="under 2 years, on a lap")
    parser.add_argument("--cabin", help="economy or business")
    parser.add_argument("--now", help="the moment to count from, YYYY-MM-DD[THH:MM] (the clock's)")


def ask_for(missing):
    """One sentence with everything that is missing, so that a person is asked once."""
    if missing:
        raise Refused("missing: {}. Ask the person; do not guess.".format(", ".join(missing)))


def check_travellers(options):
    party = {"adult": options.adults, "child": options.children, "infant": options.infants}
    if any(count < 0 for count in party.values()):
        raise Refused("a number of travellers cannot be negative")
    if party["adult"] < 1:
        raise Refused("children and infants travel with an adult: --adults 1 or more")
    if party["infant"] > party["adult"]:
        raise Refused("each infant needs an adult's lap: at most {} here".format(party["adult"]))
    if party["adult"] + party["child"] > MOST_TRAVELLERS:
        raise Refused("at most {} seats in one booking; make two, or write to the airline as a group".format(
            MOST_TRAVELLERS))
    if options.cabin not in CABINS:
        raise Refused("--cabin {}: choose economy or business".format(options.cabin))
    return party


def party_of(party):
    plural = {"adult": "adults", "child": "children", "infant": "infants"}
    return ", ".join("{} {}".format(count, kind if count == 1 else plural[kind])
                     for kind, count in party.items() if count)


def quote(row, when, cabin, party, now):
    """(lines of the price, total, code). The code stands for exactly this: another day, price or party has another."""
    base, lines, total = fare(row, when, cabin), [], 0
    for kind, count in party.items():
        if count:
            each = int(round(base * SHARE[kind] / 10.0) * 10) + TAX[kind]
            total += each * count
            lines.append("{} × {}: {:,} {} each, {} of it tax".format(count, kind, each, CURRENCY, TAX[kind]))
    code = "Q{:06X}".format(number_of("quote", row["flight"], when, cabin, party_of(party), total, now) % 0x1000000)
    return lines, total, code


def bookable(row, when, cabin, party, given):
    """Refuses a day without this flight, a flight that has left and one without the seats."""
    if not flies(row, when):
        days = ", ".join(WEEKDAYS[int(mark) - 1] for mark in sorted(row["days"]))
        raise Refused("{} does not fly on {}; it flies on {}".format(row["flight"], told(when), days))
    if has_left(row, when, given):
        raise Refused("{} on {} has left at {} local time".format(row["flight"], when, row["departs"]))
    needed, left = party["adult"] + party["child"], seats_left(row, when, cabin)
    if left < needed:
        what = "sold out" if left == 0 else "only {} {} left, {} needed".format(
            left, "seat" if left == 1 else "seats", needed)
        raise Refused("{} on {} in {}: {}. Search again for another flight, day or cabin.".format(
            row["flight"], when, cabin, what))


def route(row):
    return "{} {} to {} {}".format(airport(row["from"])["airport_name"], row["from"],
                                   airport(row["to"])["airport_name"], row["to"])


def when_told(row, when):
    start, end = times(row, when)
    later = (end.date() - start.date()).days
    return "{:%H:%M} to {:%H:%M}{} ({} h {:02} min)".format(
        start, end, "" if not later else " {:+} day".format(later), int(row["minutes"]) // 60, int(row["minutes"]) % 60)
