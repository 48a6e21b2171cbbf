#!/usr/bin/env python3
"""Books what was quoted, after the person said yes: writes bookings/REFERENCE.json in the current directory."""

import sys

sys.dont_write_bytecode = True

import argparse
import json
import os
import re
import tempfile

import timetable

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def main():
    timetable.speak_utf8()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flight", help="such as SK101")
    parser.add_argument("--date", help="YYYY-MM-DD, today or tomorrow")
    timetable.add_travellers(parser)
    parser.add_argument("--quote", help="the code that price_flight.py gave and the person said yes to")
    parser.add_argument("--traveller", action="append", default=[],
                        help="FAMILY/GIVEN as in the passport, one for each person, adults first; repeatable")
    options = parser.parse_args()
    try:
        print("\n".join(book(options)))
    except (timetable.Refused, OSError) as refused:
        print("error: {}".format(refused), file=sys.stderr)
        return 2
    return 0


def book(options):
    named = (("flight", options.flight), ("date", options.date), ("number of adults", options.adults),
             ("cabin", options.cabin), ("quote, from price_flight.py", options.quote),
             ("names of the travellers", options.traveller or None))
    timetable.ask_for([name for name, value in named if value is None])
    party = timetable.check_travellers(options)
    names = [name_of(text) for text in options.traveller]
    if len(names) != sum(party.values()):
        raise timetable.Refused("names given: {}, travellers: {}; give one --traveller for each".format(
            len(names), timetable.party_of(party)))
    if len(set(names)) < len(names):
        raise timetable.Refused("a traveller is named twice")
    now = timetable.today(options.now)
    row, when = timetable.flight(options.flight), timetable.day(options.date, now)
    _, total, code = timetable.quote(row, when, options.cabin, party, now)
    reference = reference_of(row, when, options.cabin, names)
    path = os.path.join("bookings", reference + ".json")
    if os.path.exists(path):
        yield "Already booked as {}: {}. Nothing was done.".format(reference, path)
        return
    if code != options.quote.strip().upper():
        raise timetable.Refused("{} is no quote for this flight, day, cabin and party today: run price_flight.py "
                                "again and ask the person about what it says".format(options.quote))
    timetable.bookable(row, when, options.cabin, party, options.now)
    start, end = timetable.times(row, when)
    write(path, {"reference": reference, "flight": row["flight"], "date": str(when), "from": row["from"],
                 "to": row["to"], "departs": start.isoformat(timespec="minutes"),
                 "arrives": end.isoformat(timespec="minutes"), "cabin": options.cabin, "travellers": names,
                 "seats": party["adult"] + party["child"], "total": total, "currency": timetable.CURRENCY,
                 "booked_on": str(now), "demonstration": True})
    yield "Booked: {}".format(reference)
    yield "{} on {}: {}, {} local times, {}".format(row["flight"], timetable.told(when), timetable.route(row),
                                                   timetable.when_told(row, when), options.cabin)
    yield "travellers: {}".format("; ".join(names))
    yield "total: {:,} {}".format(total, timetable.CURRENCY)
    yield "kept in {}. {}".format(path, timetable.DEMONSTRATION)


def name_of(text):
    parts = [" ".join(part.split()).upper() for part in text.split("/")]
    if len(parts) != 2 or not all(re.fullmatch(r"[^\W\d_][^\W\d_ .'\-]*(?:[ .'\-]+[^\W\d_]+)*\.?", part) for part in parts):
        raise timetable.Refused("--traveller {}: write FAMILY/GIVEN as in the passport, such as LIN/YUE".format(text))
    return "/".join(parts)


def reference_of(row, when, cabin, names):
    """Six characters; the same booking has the same, so that a second try does not book twice."""
    number = timetable.number_of("booking", row["flight"], when, cabin, *sorted(names))
    return "".join(ALPHABET[number >> 5 * place & 31] for place in range(6))


def write(path, booking):
    """Whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(path), delete=False) as file:
        json.dump(booking, file, ensure_ascii=False, indent=2)
        file.write("\n")
    os.replace(file.name, path)


if __name__ == "__main__":
    sys.exit(main())
