"""The store of cases: outcomes that another run would not change."""

from typing import Any

from weft.regress.case import LOG, Case, CaseOutcome, versions
from weft.tasks.program import StepResult
from weft.tasks.store import ResultStore

__all__ = ["CaseStore"]


class CaseStore(ResultStore):
    """The outcomes of cases; a context manager, as `weft.tasks.store.ResultStore` describes.

    The data of a case are the log of its simulator, compressed with zlib, if a bench failed.
    """

    SCHEMA = """
    CREATE TABLE IF NOT EXISTS cases (
        key TEXT PRIMARY KEY,      -- Config, check, seed, tests, versions
        design TEXT NOT NULL,      -- name of the Config in the matrix
        case_json TEXT NOT NULL,   -- JSON of the Case
        versions TEXT NOT NULL,    -- JSON: sources, packages, simulators
        failure TEXT NOT NULL,     -- empty if the case passed
        outcome TEXT NOT NULL,     -- JSON of the CaseOutcome
        log BLOB,                  -- output of the simulator, compressed
        time REAL NOT NULL         -- seconds since 1970
    );
    """
    TABLE = "cases"
    COLUMNS = "key", "design", "case_json", "versions", "failure", "outcome", "log", "time"

    def versions(self) -> dict[str, str]:
        """The versions of Weft's sources, of packages and of the simulators."""
        return versions()

    def group(self, item: Case) -> str:
        """The name of the Config in the matrix."""
        return item.design

    def item(self, values: dict[str, Any]) -> Case:
        """The case of its ``to_json``."""
        return Case.from_json(values)

    def outcome(self, values: dict[str, Any]) -> CaseOutcome:
        """The outcome with these fields."""
        return CaseOutcome(**values)

    def keep(self, item: Case, result: StepResult) -> CaseOutcome:
        """Record the result of a case if its outcome is final; its outcome."""
        if result.outcome.final:
            self.record(item, result.outcome, result.files.get(LOG))
        return result.outcome
