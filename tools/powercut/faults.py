#!/usr/bin/env python3
"""Fails, or kills at, every single system call of a durable run of earthquakes, one at a time.

  faults.py [--lines 50] [--again] [--every K] [CALL:FAULT ...]

FAULT is an error (EIO) or KILL. A run in which a call fails must end with 1, 3 or 4 and say why, or
with 0 where a stage tried again (with EINTR it must not even notice). strace counts the calls of
each thread; this ends when no thread makes so many. Whatever happened, the log is in order and the
next run ends with the outputs of a clean one. --again disturbs the run that goes on after a first
kill: its recovery. Needs strace; WAYSTAGE is the program.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

import quakes

DEFAULT = [
    f"{call}:{fault}"
    for call in ("fsync", "fdatasync", "ftruncate", "pwrite64")
    for fault in ("EIO", "KILL")
]
# In the middle of a run of few records.
FIRST_KILL = "pwrite64:signal=KILL:when=50"


def strace(folder, inject):
    """Runs the feed with a fault; its exit code, its standard error, whether there was a fault.

    An end with 0 of a run that tried something again is `"retried"`.
    """
    log = os.path.join(folder, "strace")
    call = inject.split(":")[0]
    # Faster, and without signals.
    fast = [] if "signal" in inject else ["--seccomp-bpf"]
    run = subprocess.run(
        ["strace", "-f", "-qq", *fast, "-o", log, "-e", f"trace={call}", "-e",
         f"inject={inject}", quakes.WAYSTAGE, "run", quakes.FLOW, "--json"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    with open(log, encoding="utf-8", errors="replace") as lines:
        traced = lines.read()
    code = run.returncode
    if code == 0 and any(stage["retried"] for stage in json.loads(run.stdout)["stages"]):
        code = "retried"
    return code, run.stderr.strip(), "INJECTED" in traced or code == -9


def attempt(folder, expected, fault, inject, options):
    """One disturbed run and the next one; its exit code, None where nothing was left to disturb."""
    quakes.prepare(folder, options.lines)
    if options.again:
        strace(folder, FIRST_KILL)
    code, talk, happened = strace(folder, inject)
    if not happened:
        return None
    right = {"KILL": (-9,), "EINTR": (0,)}.get(fault, (1, 3, 4, "retried"))
    try:
        if code not in right or code in (1, 3, 4) and not talk:
            raise quakes.Illegal(f"the run ended with {code}: {talk}")
        quakes.check(folder, expected)
    except quakes.Illegal as illegal:
        print(f"{inject}: {illegal}", flush=True)
        return "illegal"
    return code


def every(call, fault, expected, options):
    """Disturbs each occurrence of a call; how the runs ended."""
    ends = collections.Counter()
    number, missed = 1, 0
    # Threads share the work differently every time: one run may have fewer calls than the next.
    while missed < 3:
        what = "signal=KILL" if fault == "KILL" else f"error={fault}"
        with tempfile.TemporaryDirectory() as folder:
            inject = f"{call}:{what}:when={number}"
            end = attempt(folder, expected, fault, inject, options)
        missed = missed + 1 if end is None else 0
        if end is not None:
            ends[end] += 1
        number += options.every
    return ends


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=50, help="records of the feed")
    parser.add_argument("--again", action="store_true", help="disturb the run after a kill")
    parser.add_argument("--every", type=int, default=1, help="only every K-th call")
    parser.add_argument("faults", nargs="*", default=DEFAULT)
    options = parser.parse_args()
    if not shutil.which("strace"):
        sys.exit("faults: strace is missing")
    expected = quakes.clean(options.lines)
    illegal = 0
    for name in options.faults:
        call, fault = name.split(":")
        ends = every(call, fault, expected, options)
        illegal += ends["illegal"]
        shown = ", ".join(f"{count} ended with {end}" for end, count in ends.items())
        print(f"{name}: {ends.total()} runs, {shown}", flush=True)
    sys.exit(1 if illegal else 0)


if __name__ == "__main__":
    main()
