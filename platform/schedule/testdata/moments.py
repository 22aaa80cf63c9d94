"""Prints when clocks show times, as Python's zoneinfo has it.

Arguments: the first year, the last year, the times of day such as 02:30, with
commas. Input: the names of zones, one a line. Output: for each zone, each date
and each time the Unix seconds, as 64 bits with the lowest byte first. A time
that is skipped counts as the first that is not; of two, the first is taken.
"""

import array
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo


DAY = timedelta(days=1)


def shows(utc, wall, zone):
    return utc.astimezone(zone).replace(tzinfo=None, fold=0) == wall


def moment(wall, zone):
    while True:
        utc = wall.replace(tzinfo=zone, fold=0).astimezone(timezone.utc)
        if shows(utc, wall, zone):
            return int(utc.timestamp())
        # Skipped, or next to the last transition that a zone lists: from there on
        # zoneinfo reads wall times by a rule, which may not fit what came before,
        # as in Nuuk in October 2023. Its way from UTC is right, and decides.
        for day in (wall - DAY, wall + DAY):
            utc = (wall - day.replace(tzinfo=zone).utcoffset()).replace(tzinfo=timezone.utc)
            if shows(utc, wall, zone):
                return int(utc.timestamp())
        wall += timedelta(minutes=1)


first, last = int(sys.argv[1]), int(sys.argv[2])
clocks = [tuple(map(int, clock.split(":"))) for clock in sys.argv[3].split(",")]
for name in sys.stdin.read().split():
    zone = ZoneInfo(name)
    moments = array.array("q")
    day = datetime(first, 1, 1)
    while day.year <= last:
        for hour, minute in clocks:
            moments.append(moment(day.replace(hour=hour, minute=minute), zone))
        day += timedelta(days=1)
    if sys.byteorder == "big":
        moments.byteswap()
    sys.stdout.buffer.write(moments.tobytes())
