#!/usr/bin/env python3
"""Lists the flights of a route on a day, with fares and seats. Changes nothing."""

import sys

sys.dont_write_bytecode = True

import argparse
from datetime import timedelta

import timetable


def main():
    timetable.speak_utf8()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="origin", help="city or airport: Beijing, PEK, 北京")
    parser.add_argument("--to", dest="destination", help="city or airport")
    parser.add_argument("--date", help="YYYY-MM-DD, today or tomorrow")
    timetable.add_travellers(parser)
    options = parser.parse_args()
    try:
        print("\n".join(search(options)))
    except timetable.Refused as refused:
        print("error: {}".format(refused), file=sys.stderr)
        return 2
    return 0


def search(options):
    named = (("origin", options.origin), ("destination", options.destination), ("date", options.date),
             ("number of adults", options.adults), ("cabin", options.cabin))
    timetable.ask_for([name for name, value in named if value is None])
    party = timetable.check_travellers(options)
    now = timetable.today(options.now)
    origins, destinations = timetable.airports(options.origin), timetable.airports(options.destination)
    if set(origins) & set(destinations):
        raise timetable.Refused("origin and destination are the same place")
    when = timetable.day(options.date, now)
    served = [row for row in timetable.rows("timetable.csv")
              if row["from"] in origins and row["to"] in destinations]
    if not served:
        raise timetable.Refused(no_route(origins))
    yield "Today is {}. {}".format(timetable.told(now), timetable.DEMONSTRATION)
    yield "{} to {} on {}, {}, {}:".format(options.origin, options.destination, timetable.told(when),
                                           timetable.party_of(party), options.cabin)
    flying = sorted((row for row in served if timetable.flies(row, when) and not timetable.has_left(row, when, options.now)), key=lambda row: row["departs"])
    for row in flying:
        yield "- " + offer(row, when, options.cabin, party)
    if not any(open_for(row, when, options.cabin, party) for row in flying):
        yield "No seats for this party that day. " + nearest(served, when, now, options, party)
    else:
        yield "Next: price_flight.py for the one that the person chooses."


def open_for(row, when, cabin, party):
    return timetable.flies(row, when) and timetable.seats_left(row, when, cabin) >= party["adult"] + party["child"]


def offer(row, when, cabin, party):
    left = timetable.seats_left(row, when, cabin)
    seats = "sold out" if not left else "{} {} left".format(left, "seat" if left == 1 else "seats")
    if 0 < left < party["adult"] + party["child"]:
        seats += ", too few"
    return "{} {} {}, {}, {}, {:,} {} an adult before tax, {}".format(
        row["flight"], timetable.when_told(row, when), timetable.route(row), row["aircraft"], cabin,
        timetable.fare(row, when, cabin), timetable.CURRENCY, seats)


def nearest(served, when, now, options, party):
    """The nearest days, before or after, that have what this one lacks."""
    for away in range(1, 15):
        days = [when + timedelta(days=step) for step in (-away, away)]
        found = ["{} {}".format(row["flight"], timetable.told(near)) for near in days if near >= now
                 for row in served if open_for(row, near, options.cabin, party)
                 and not timetable.has_left(row, near, options.now)]
        if found:
            return "Nearest: {}.".format(", ".join(found))
    return "None within two weeks either: another cabin, or fewer travellers, may help."


def no_route(origins):
    reached = sorted({timetable.airport(row["to"])["city"] for row in timetable.rows("timetable.csv")
                      if row["from"] in origins})
    return "no direct flight on this route; from there one flies to {}".format(", ".join(reached) or "nowhere")


if __name__ == "__main__":
    sys.exit(main())
