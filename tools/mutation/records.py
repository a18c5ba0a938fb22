"""Keeps what was found of each mutant: one line of JSON for each event, so that a run resumes."""

import fcntl
import json
import os
import threading
from pathlib import Path

__all__ = ["STAGES", "Records"]

# In this order; a mutant that a stage does not kill meets the next one.
STAGES = "mirrored", "importing", "quick", "all"


class Records:
    """The events of a file. What holds of one version of the tree does not hold of another.

    A file may end inside a line, where a run was interrupted: the rest of that line is ignored.

    Parameters
    ----------
    path : Path
        The file; it need not exist.
    tree : str
        Fingerprint of the tree that is tested.

    Attributes
    ----------
    durations : dict
        By test file: processor seconds of all its tests, elapsed seconds of the longest one.
    sound : set of str
        Tests that pass without a mutant, in this tree.
    unsound : set of str
        Tests that fail without a mutant, in this tree; they are left out.
    """

    def __init__(self, path: Path, tree: str):
        self.path, self.tree = path, tree
        self.durations, self.sound, self.unsound = {}, set(), set()
        self._stages = {}   # (tree, key) -> stage -> event
        self._killers = {}  # key -> test, None where a mutant timed out
        self._lock = threading.Lock()
        if path.is_file():
            for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
                self._take(json.loads(line))

    def _take(self, event):
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
        """Append one event, and put it on the disk."""
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
            self._take(whole)

    @staticmethod
    def _whole(file):
        """Length of the complete lines of a file."""
        file.seek(0)
        return file.read().rfind(b"\n") + 1

    def stages(self, key: str) -> dict:
        """``stage -> event`` of what this tree's tests found of a mutant."""
        return dict(self._stages.get((self.tree, key), {}))

    def killer(self, key: str) -> str | None:
        """The test that killed a mutant last, in any tree."""
        return self._killers.get(key)

    def missed(self, key: str) -> bool:
        """Whether a mutant that is killed survived the same stage in an earlier tree."""
        outcome = self.outcome(key)
        return outcome is not None and outcome["result"] != "survived" and any(
            found.get(outcome["stage"], {}).get("result") == "survived"
            for (tree, other), found in self._stages.items()
            if other == key and tree != self.tree
        )

    def outcome(self, key: str) -> dict | None:
        """The event that killed a mutant, else the one of the last stage that it survived."""
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
