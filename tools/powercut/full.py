#!/usr/bin/env python3
"""Runs the durable feed of earthquakes on disks that become full, everywhere between the first file
and the last line, and once more after room was made.

  full.py [--fs tmpfs|ext4|xfs] [--steps 20]

The first run ends with 0, 1 or 3 and says why, and leaves a log in order. After room was made the
next run, and dead letters sent back, leave the outputs of a clean one. Needs root; WAYSTAGE is the
program.
"""

import argparse
import collections
import errno
import os
import subprocess
import sys
import tempfile

import powertools
import quakes

MEBIBYTE = 1 << 20
SEGMENT = 64 * MEBIBYTE
# What the outputs and the input need beyond the segment of the log, and a little more.
REST = 3 * MEBIBYTE
SIZES = {"tmpfs": 256, "ext4": 256, "xfs": 384}


def run(folder, *arguments):
    """The exit code, and what was said of errors."""
    process = quakes.waystage(
        folder, *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, talk = process.communicate(timeout=120)
    return process.returncode, talk.strip()


def fill(ballast, room):
    """Takes all the space that can be had, and gives so many bytes of it back."""
    with open(ballast, "wb") as file:
        for piece in (MEBIBYTE, 4096):
            try:
                while True:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), piece)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        size = file.seek(0, os.SEEK_END)
        if size < room:
            sys.exit(f"full: the disk has {size} bytes; {room} are to be left")
        file.truncate(size - room)


def attempt(folder, room, expected):
    """A run with so much room, and what comes after; how the first one ended."""
    quakes.prepare(folder)
    ballast = os.path.join(folder, "ballast")
    fill(ballast, room)
    code, talk = run(folder, "run", quakes.FLOW)
    if code not in (0, 1, 3) or code and not talk:
        raise quakes.Illegal(f"the run ended with {code}: {talk}")
    quakes.verify(folder)
    os.remove(ballast)
    if code == 3:
        again, talk = run(folder, "dead", "redrive", "var/log", "--all")
        if again != 0:
            raise quakes.Illegal(f"dead letters were sent back with {again}: {talk}")
    quakes.check(folder, expected)
    return code


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fs", choices=SIZES, default="tmpfs")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    expected = quakes.clean()
    ends = collections.Counter()
    few = [step * SEGMENT // 4 for step in range(4)]
    more = [SEGMENT + step * REST // options.steps for step in range(options.steps)]
    for room in few + more:
        with tempfile.TemporaryDirectory() as place:
            with powertools.fresh(options.fs, SIZES[options.fs] * MEBIBYTE, place) as folder:
                try:
                    end = attempt(folder, room, expected)
                except quakes.Illegal as illegal:
                    print(f"with {room} bytes of room: {illegal}", flush=True)
                    end = "illegal"
        ends[end] += 1
    shown = ", ".join(f"{count} ended with {end}" for end, count in ends.items())
    print(f"{options.fs}: {ends.total()} disks, {shown}")
    sys.exit(1 if ends["illegal"] else 0)


if __name__ == "__main__":
    main()
