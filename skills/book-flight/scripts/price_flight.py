#!/usr/bin/env python3
"""What one flight costs for a party, all included, and the code with which exactly this can be booked. Changes nothing."""

import sys

sys.dont_write_bytecode = True

import argparse

import timetable


def main():
    timetable.speak_utf8()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flight", help="such as SK101")
    parser.add_argument("--date", help="YYYY-MM-DD, today or tomorrow")
    timetable.add_travellers(parser)
    options = parser.parse_args()
    try:
        print("\n".join(price(options)))
    except timetable.Refused as refused:
        print("error: {}".format(refused), file=sys.stderr)
        return 2
    return 0


def price(options):
    named = (("flight", options.flight), ("date", options.date), ("number of adults", options.adults),
             ("cabin", options.cabin))
    timetable.ask_for([name for name, value in named if value is None])
    party = timetable.check_travellers(options)
    now = timetable.today(options.now)
    row, when = timetable.flight(options.flight), timetable.day(options.date, now)
    timetable.bookable(row, when, options.cabin, party, options.now)
    lines, total, code = timetable.quote(row, when, options.cabin, party, now)
    yield "{} on {}: {}".format(row["flight"], timetable.told(when), timetable.route(row))
    yield "{} local times, {}, {}".format(timetable.when_told(row, when), row["aircraft"], options.cabin)
    for line in lines:
        yield line
    yield "total: {:,} {}".format(total, timetable.CURRENCY)
    yield "baggage: {} a seat; changes: until 24 h before, {}".format(
        timetable.BAGGAGE[options.cabin], "free" if options.cabin == "business" else "200 " + timetable.CURRENCY)
    yield "quote: {} (today only)".format(code)
    yield "Next: show this, ask for a clear yes and for the names as in the passports; then book_flight.py."


if __name__ == "__main__":
    sys.exit(main())
