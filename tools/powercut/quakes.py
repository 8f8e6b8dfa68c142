#!/usr/bin/env python3
"""The durable feed of earthquakes as a workload of `powercut`, and what a crash may leave of it.

  quakes.py work     in $POWERCUT_DIR: runs the feed, killed several times, to its end
  quakes.py check    in $POWERCUT_DIR: the log is in order, and the next run ends as a clean one

WAYSTAGE is the program, `target/debug/waystage` where it is not set; KILLS the number of kills (6),
SYNC the policy of the log (10ms), SEED what chooses when to kill (0).
"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
WAYSTAGE = os.environ.get("WAYSTAGE", os.path.join(ROOT, "target", "debug", "waystage"))
OUTPUTS = {"alerts": 85, "blasts": 28, "archive": 1679}
TALLIES = [1039, 494, 105, 19, 15, 6, 1]
FLOW = "quakes.toml"


class Illegal(Exception):
    """Something is as it must never be."""


def prepare(folder, lines=None):
    """The input, or its first lines, and the flow, safely there."""
    with open(os.path.join(ROOT, "examples", "quakes", "quakes.ndjson"), "rb") as feed:
        records = feed.readlines()[:lines]
    with open(os.path.join(folder, "quakes.ndjson"), "wb") as feed:
        feed.writelines(records)
    with open(os.path.join(ROOT, "tools", "powercut", FLOW), encoding="utf-8") as flow:
        text = flow.read().replace('"10ms"', f'"{os.environ.get("SYNC", "10ms")}"')
    with open(os.path.join(folder, FLOW), "w", encoding="utf-8") as flow:
        flow.write(text)
    subprocess.run(["sync", "-f", folder], check=True)


def waystage(folder, *arguments, **options):
    command = [WAYSTAGE, *arguments]
    return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, text=True, **options)


def outputs(folder):
    """The lines of each output, sorted; one that stands twice or is cut short is illegal."""
    found = {}
    for name in OUTPUTS:
        with open(os.path.join(folder, "var", f"{name}.ndjson"), encoding="utf-8") as file:
            text = file.read()
        lines = sorted(text.splitlines())
        if text and not text.endswith("\n"):
            raise Illegal(f"{name}: the last line is cut short")
        if len(lines) != len(set(lines)):
            raise Illegal(f"{name}: {len(lines)} lines, {len(set(lines))} different")
        found[name] = lines
    return found


def finish(folder):
    """Runs the feed to its end; its outputs and counts."""
    run = waystage(folder, "run", FLOW, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said, talk = run.communicate(timeout=120)
    if run.returncode != 0:
        raise Illegal(f"the run ended with {run.returncode}: {talk.strip()}")
    counts = [count["count"] for count in json.loads(said)["tallies"][0]["counts"]]
    return outputs(folder) | {"tally": counts}


def verify(folder):
    """The log, if it is there, is in order but for a torn tail."""
    log = os.path.join(folder, "var", "log")
    if not os.path.isdir(log) or not any(name.endswith(".segment") for name in os.listdir(log)):
        return
    run = waystage(
        folder, "log", "verify", log, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = run.communicate(timeout=120)
    if run.returncode != 0:
        raise Illegal(f"verify ended with {run.returncode}: {said.strip()}")


def clean(lines=None):
    """What a run leaves that nobody disturbs."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, lines)
        left = finish(folder)
    counted = {name: len(left[name]) for name in OUTPUTS}
    if lines is None and (counted, left["tally"]) != (OUTPUTS, TALLIES):
        raise Illegal(f"a clean run leaves {counted}, {left['tally']}")
    return left


def check(folder, expected):
    """What must hold after any crash."""
    verify(folder)
    left = finish(folder)
    for name, lines in expected.items():
        if left[name] != lines:
            raise Illegal(f"{name} has {len(left[name])} lines, and not the {len(lines)} it should")
    verify(folder)


def entries():
    """Block writes logged so far."""
    with open(os.environ["POWERCUT_LOG"], "rb") as log:
        return struct.unpack("<Q", os.pread(log.fileno(), 8, 16))[0]


def killed(folder, lines):
    """Runs the feed until the archive has so many lines, or the run is over, and kills it."""
    run = waystage(folder, "run", FLOW, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    archive = os.path.join(folder, "var", "archive.ndjson")
    while run.poll() is None:
        if os.path.exists(archive):
            with open(archive, "rb") as file:
                if file.read().count(b"\n") >= lines:
                    break
        time.sleep(0.001)
    run.kill()
    run.wait()


def work(folder, notes):
    expected = clean()
    with open(f"{notes}.clean", "w", encoding="utf-8") as file:
        json.dump(expected, file)
    prepare(folder)
    with open(notes, "a", encoding="utf-8") as file:
        file.write(f"ready {entries()}\n")
    dice = random.Random(int(os.environ.get("SEED", "0")))
    kills = int(os.environ.get("KILLS", "6"))
    for lines in sorted(dice.randrange(OUTPUTS["archive"]) for _ in range(kills)):
        killed(folder, lines)
        print(f"killed at {lines} lines, {entries()} entries", flush=True)
    check(folder, expected)


def main():
    folder, notes = os.environ["POWERCUT_DIR"], os.environ["POWERCUT_NOTES"]
    try:
        if sys.argv[1:] == ["work"]:
            work(folder, notes)
        elif sys.argv[1:] == ["check"]:
            with open(f"{notes}.clean", encoding="utf-8") as file:
                check(folder, json.load(file))
        else:
            sys.exit(__doc__)
    except Illegal as fault:
        sys.exit(f"quakes: {fault}")


if __name__ == "__main__":
    main()
