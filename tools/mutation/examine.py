"""Tests a mutant in stages until a test fails."""

import json
import math

from .choice import Choice
from .records import STAGES, Records
from .workspace import Workspace

__all__ = ["Examiner"]

FACTOR = 10       # the time limit of a test: so many times the longest test of its file,
ALLOWANCE = 120   # plus so many seconds
RATE = 500        # bytes of a test file per second of its duration, if the duration is unknown
LONGEST = 6       # seconds of the longest test of a file, if unknown
BATCH = 20        # seconds of tests in a process,
QUICK_BATCH = 120 # and in a process of the stage quick
FAR = 99          # distance of a test that does not import the module


class Examiner:
    """Runs the stages of mutants in one workspace.

    A failure counts only if the same test passes without the mutant. A test that fails without the
    mutant is excluded from then on.

    Parameters
    ----------
    workspace : Workspace
    choice : Choice
    records : Records
    budget : float
        Processor seconds of the stage ``importing`` for a mutant.
    """

    def __init__(
        self, workspace: Workspace, choice: Choice, records: Records, *, budget: float
    ):
        self.workspace, self.choice, self.records = workspace, choice, records
        self.budget = budget
        # The marks of the tests in `make test`, and of the tests that `make test-all` adds.
        self._quick_marks, self._slow_marks = ("not slow", "slow") if workspace.slow else ("", "")
        path = workspace.tree / "tests" / "durations.json"
        self._recorded = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def examine(self, mutant, last: str) -> dict:
        """Run the stages up to ``last``, or until a kill; records and returns the outcome."""
        records = self.records
        killer = records.killer(mutant.key)
        if not records.stages(mutant.key) and killer and self._exists(killer):
            self._retry_killer(mutant, killer)
        for stage in STAGES[: STAGES.index(last) + 1]:
            if records.done(mutant.key, stage):
                continue
            tried = {
                file for event in records.stages(mutant.key).values() for file in event["files"]
            }
            result, run, files, cpu = getattr(self, f"_{stage}")(mutant, tried)
            records.add(
                "stage", key=mutant.key, stage=stage, result=result, files=files,
                test=run and run.test, why=run.why if run else "", cpu=round(cpu, 1),
            )
            if result != "survived":
                break
        return records.outcome(mutant.key)

    def _retry_killer(self, mutant, killer):
        """Run the test that killed the mutant before, in this or another tree."""
        file, limit = killer.partition("::")[0], self._limit([killer])
        with self.workspace.mutated(mutant):
            run = self.workspace.run([killer], limit=limit, marks=self._quick_marks)
        # Status 4: the test no longer exists.
        if not run.passed and run.code != 4 and self._sound([killer], self._quick_marks, limit):
            importing = [test for _, test in self.choice.importing(mutant.file)]
            stage = "mirrored" if file in self.choice.mirrored(mutant.file) else (
                "importing" if file in importing else "quick"
            )
            self.records.add(
                "stage", key=mutant.key, stage=stage, files=[file], test=killer, why=run.why,
                result="timeout" if run.code is None else "killed", cpu=round(run.cpu, 1),
            )

    def _mirrored(self, mutant, tried):
        tests = [(0, test) for test in self.choice.mirrored(mutant.file)]
        return self._batches(mutant, tests, math.inf)

    def _importing(self, mutant, tried):
        return self._batches(mutant, self.choice.importing(mutant.file))

    def _quick(self, mutant, tried):
        return self._batches(mutant, self._rest(mutant, tried), math.inf, QUICK_BATCH)

    def _all(self, mutant, tried):
        files = [test for _, test in sorted(self._rest(mutant, ()))] if self._slow_marks else []
        return self._files(mutant, files, self._slow_marks)

    def _rest(self, mutant, without):
        """Test files as in `Choice.importing`; files without an import come last."""
        near = dict.fromkeys(self.choice.mirrored(mutant.file), 0)
        near |= {test: distance for distance, test in self.choice.importing(mutant.file)}
        return [(near.get(t, FAR), t) for t in self.choice.tests if t not in without]

    def _batches(self, mutant, tests, budget=None, size=BATCH):
        """Run test files in batches, the nearest and shortest first, within the budget."""
        budget = self.budget if budget is None else budget
        pending = sorted((distance, self._duration(test), test) for distance, test in tests)
        done, spent = [], 0.0
        while True:
            batch, seconds = [], 0.0
            for entry in list(pending):
                if batch and seconds + entry[1] > size:
                    break
                pending.remove(entry)
                if spent + seconds + entry[1] <= budget:
                    batch.append(entry[2])
                    seconds += entry[1]
            result, run, _, cpu = self._files(mutant, batch, self._quick_marks)
            done += batch
            spent += cpu
            if result != "survived" or not batch:
                return result, run, done, spent

    def _files(self, mutant, files, marks):
        if not files:
            return "survived", None, [], 0.0
        result, run, cpu = self._try(mutant, files, marks)
        return result, run, files, cpu

    def _try(self, mutant, tests, marks):
        """Result, run and processor time of tests; excludes tests that fail without the mutant."""
        limit, cpu = self._limit(tests), 0.0
        while True:
            excluded = sorted(self.records.unsound)
            with self.workspace.mutated(mutant):
                run = self.workspace.run(tests, limit=limit, marks=marks, without=excluded)
            cpu += run.cpu
            if run.passed:
                if marks == self._quick_marks:
                    self._measured(run)
                return "survived", run, cpu
            if self._sound([run.test] if run.test else tests, marks, limit):
                return ("timeout" if run.code is None else "killed"), run, cpu

    def _measured(self, run):
        """Record the processor time of each file: the run's, shared out by elapsed time."""
        elapsed = sum(seconds for seconds, _ in run.durations.values()) or 1.0
        for test, (seconds, longest) in run.durations.items():
            self.records.add(
                "duration", test=test, seconds=round(seconds * run.cpu / elapsed, 2),
                longest=longest,
            )

    def _sound(self, tests, marks, limit):
        """Whether tests pass without a mutant; tests that fail are excluded from now on."""
        unknown = [test for test in tests if test not in self.records.sound]
        if not unknown:
            return True
        run = self.workspace.run(
            unknown, limit=limit, marks=marks, without=sorted(self.records.unsound)
        )
        if run.passed:
            for test in unknown:
                self.records.add("sound", test=test)
            return True
        if run.test is None and (run.code == 4 or len(unknown) > 1):  # 4: pytest could not start
            raise RuntimeError(
                f"pytest ended with status {run.code} without a mutant, and named no test; see"
                f" {self.workspace.home / 'pytest.log'}"
            )
        self.records.add("unsound", test=run.test or unknown[0], why=run.why)
        return False

    def _duration(self, test):
        """Seconds of a test file: from the suite's record, else measured, else estimated."""
        recorded = self._recorded.get(test)
        if recorded:
            return recorded.get("quick", 0.0)
        if test in self.records.durations:
            return self.records.durations[test][0]
        return (self.workspace.tree / test).stat().st_size / RATE

    def _limit(self, tests):
        files = {test.partition("::")[0] for test in tests}
        longest = (self.records.durations.get(file, (0, LONGEST))[1] for file in files)
        return FACTOR * max(longest) + ALLOWANCE

    def _exists(self, test):
        file, _, name = test.partition("::")
        path = self.workspace.tree / file
        function = name.partition("[")[0].rpartition("::")[2]
        return path.is_file() and function in path.read_text(encoding="utf-8")
