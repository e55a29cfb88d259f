#!/usr/bin/env python3
"""Fails when a translation unit cost more than the design allows: 15 s or 1.2 GB. Argument: compile-meter's log."""
import sys

SECONDS, MEGABYTES = 15.0, 1229


def main():
    rows = [line.split() for line in open(sys.argv[1])]
    rows = [(float(seconds), int(megabytes), name) for seconds, megabytes, name in rows]
    bad = [row for row in rows if row[0] > SECONDS or row[1] > MEGABYTES]
    for seconds, megabytes, name in sorted(rows, reverse=True)[:5]:
        print(f"  {seconds:6.1f} s {megabytes:5d} MB  {name}")
    for seconds, megabytes, name in bad:
        print(f"over the limit of {SECONDS:.0f} s and {MEGABYTES} MB: {name} ({seconds:.1f} s, {megabytes} MB)")
    print(f"{len(rows)} units, {sum(row[0] for row in rows):.0f} s of CPU")
    return 1 if bad else 0


sys.exit(main())
