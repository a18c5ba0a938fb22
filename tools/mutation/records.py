"""Keeps the results of mutants as events, one line of JSON each, so that a run can resume."""

import fcntl
import json
import os
import threading
from pathlib import Path

__all__ = ["STAGES", "Records"]

# Stages in order; a mutant that survives a stage goes on to the next one.
STAGES = "mirrored", "importing", "quick", "all"


class Records:
    """The events in a file. Each event belongs to one version of the tree.

    After an interrupted run the last line may be incomplete; it is ignored.

    Parameters
    ----------
    path : Path
        The file, which may be missing.
    tree : str
        Fingerprint of the tested tree.

    Attributes
    ----------
    durations : dict
        By test file: processor seconds of all tests, and elapsed seconds of the longest test.
    sound : set of str
        Tests that pass without a mutant, in this tree.
    unsound : set of str
        Tests that fail without a mutant, in this tree; they are excluded.
    """

    def __init__(self, path: Path, tree: str):
        self.path, self.tree = path, tree
        self.durations, self.sound, self.unsound = {}, set(), set()
        self._stages = {}   # (tree, key) -> stage -> event
        self._killers = {}  # key -> test, or None for a timeout
        self._lock = threading.Lock()
        if path.is_file():
            for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
                self._read(json.loads(line))

    def _read(self, event):
        kind, here = event["event"], event["tree"] == self.tree
        if kind == "stage":
            key = event["key"]
            self._stages.setdefault((event["tree"], key), {})[event["stage"]] = event
            if event["result"] != "survived":
                self._killers[key] = event["test"]
        elif kind == "duration":
            self.durations[event["test"]] = event["seconds"], event["longest"]
        elif here:
            (self.sound if kind == "sound" else self.unsound).add(event["test"])

    def add(self, event: str, **members):
        """Append an event and write it to the disk."""
        whole = {"event": event, "tree": self.tree, **members}
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if file.tell() and file.seek(-1, os.SEEK_END) and file.read(1) != b"\n":
                    file.truncate(self._whole(file))
                file.write(json.dumps(whole).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            self._read(whole)

    @staticmethod
    def _whole(file):
        """Number of bytes of the complete lines of a file."""
        file.seek(0)
        return file.read().rfind(b"\n") + 1

    def stages(self, key: str) -> dict:
        """``stage -> event`` of a mutant in this tree."""
        return dict(self._stages.get((self.tree, key), {}))

    def killer(self, key: str) -> str | None:
        """The test that last killed a mutant, in any tree."""
        return self._killers.get(key)

    def missed(self, key: str) -> bool:
        """Whether a killed mutant survived the same stage in an earlier tree."""
        outcome = self.outcome(key)
        return outcome is not None and outcome["result"] != "survived" and any(
            found.get(outcome["stage"], {}).get("result") == "survived"
            for (tree, other), found in self._stages.items()
            if other == key and tree != self.tree
        )

    def outcome(self, key: str) -> dict | None:
        """The event that killed a mutant, else the event of the last stage that it survived."""
        found = self.stages(key)
        events = [found[stage] for stage in STAGES if stage in found]
        killed = [event for event in events if event["result"] != "survived"]
        return (killed or events or [None])[-1]

    def done(self, key: str, last: str) -> bool:
        """Whether a mutant is killed, or has survived the stage ``last`` or a later one."""
        outcome = self.outcome(key)
        return outcome is not None and (
            outcome["result"] != "survived"
            or STAGES.index(outcome["stage"]) >= STAGES.index(last)
        )
