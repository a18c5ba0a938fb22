"""The model of area and clock: fitted to recorded points, by block of the design.

Area: each block takes ``sum(coefficient * feature)`` LUTs, flip-flops and block RAMs, with
coefficients of 0 or more (`weft.explore.features.BLOCKS`). DSP blocks are counted. Clock: the
logarithm of the period is a sum of features. Each FPGA family has coefficients of its own. The
error of the model is the one of points that it was not fitted to (`leave_one_out`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.boards.blocks import GROUPS
from weft.boards.devices import Device
from weft.config import Config
from weft.explore.features import BLOCKS, CLOCK_KINDS, clock_features, dsp_blocks, features
from weft.explore.least_squares import non_negative, ridge
from weft.explore.points import Point, PointOutcome

__all__ = [
    "FITTED", "AreaEstimate", "Errors", "FittedModel", "TooFewPoints", "family_of", "leave_one_out",
]

FITTED = "LUT", "FF", "RAM"  # DSP blocks are counted
LEAST = 8  # points of a family that a model is fitted to
STRENGTH = 1.0  # of the ridge regression of the period
_GROUP_OF = {block: group for group, blocks in GROUPS.items() for block in blocks}
_NAMES = tuple(dict.fromkeys(name for names in BLOCKS.values() for name in names))

Record = tuple[Point, PointOutcome]


class TooFewPoints(ValueError):
    """There are too few recorded points, or a Config of another kind than they are."""


@dataclass(frozen=True)
class AreaEstimate:
    """The estimated area and clock of a Config on a device.

    Attributes
    ----------
    used : dict of int
        Cells of each of `weft.boards.devices.RESOURCES` that the device has.
    fmax : float
        MHz.
    outside : tuple of str
        Features beyond the range of the recorded points; empty inside.
    """

    used: dict[str, int]
    fmax: float
    outside: tuple[str, ...]

    def exceeds(self, device: Device) -> dict[str, tuple[int, int]]:
        """Resources that the device lacks: needed and available."""
        return {
            name: (count, device.capacity.get(name, 0)) for name, count in self.used.items()
            if count > device.capacity.get(name, 0)
        }


@dataclass(frozen=True)
class Errors:
    """Relative errors of points that the model was not fitted to; of DSP and RAM in blocks.

    Attributes
    ----------
    points : tuple of Record
    estimates : tuple of AreaEstimate
    """

    points: tuple[Record, ...]
    estimates: tuple[AreaEstimate, ...]

    def of(self, name: str) -> np.ndarray:
        """``estimate / measured - 1`` of each point, for ``fmax``, ``LUT`` or ``FF``."""
        return np.array([
            estimate.fmax / outcome.fmax - 1 if name == "fmax"
            else estimate.used[name] / outcome.used[name] - 1
            for (_, outcome), estimate in zip(self.points, self.estimates, strict=True)
        ])

    def blocks_of(self, name: str) -> np.ndarray:
        """``estimate - measured`` of each point, in DSP blocks or block RAMs."""
        return np.array([
            estimate.used.get(name, 0) - outcome.used.get(name, 0)
            for (_, outcome), estimate in zip(self.points, self.estimates, strict=True)
        ])

    def typical(self, name: str) -> float:
        """The root mean square of the relative errors."""
        return float(np.sqrt(np.mean(self.of(name) ** 2)))


def family_of(target: str) -> str:
    """The points of both iCE40 families share a model."""
    return "ice40" if target.startswith("ice40") else target


class FittedModel:
    """The coefficients of one FPGA family.

    Parameters
    ----------
    records : sequence of (Point, PointOutcome)
        Points that are done. All have the same family.

    Attributes
    ----------
    family : str
    coefficients : dict
        By group of blocks and resource, an array in the order of the group's features.
    clock : dict of float
        Coefficients of the logarithm of the period in ns, by feature.

    Raises
    ------
    TooFewPoints
        For too few points.
    """

    def __init__(self, records: Sequence[Record]):
        self.family = family_of(records[0][0].config.target) if records else ""
        with_blocks = [record for record in records if record[1].blocks]
        if len(with_blocks) < LEAST:
            raise TooFewPoints(
                f"a model must have {LEAST} recorded points of its FPGA family or more, not"
                f" {len(with_blocks)}; 'weft explore record' makes them"
            )
        found = [features(point.config) for point, _ in with_blocks]
        matrix = np.array([[each[name] for name in _NAMES] for each in found], float)
        self._low, self._high = matrix.min(axis=0), matrix.max(axis=0)
        places = {name: place for place, name in enumerate(_NAMES)}
        weights = np.array([1 / outcome.used["LUT"] for _, outcome in with_blocks])
        self.coefficients = {}
        self._cells = np.zeros((len(FITTED), len(_NAMES)))
        for group, names in BLOCKS.items():
            columns = [places[name] for name in names]
            for row, resource in enumerate(FITTED):
                cells = np.array([
                    _cells(outcome, group, resource) for _, outcome in with_blocks
                ])
                fitted = non_negative(matrix[:, columns] * weights[:, None], cells * weights)
                self.coefficients[group, resource] = fitted
                self._cells[row, columns] += fitted
        self._fit_clock(records)

    def _fit_clock(self, records):
        found = [
            clock_features(point.config, _share(outcome.used["LUT"], point.device))
            for point, outcome in records
        ]
        matrix = np.array([list(each.values()) for each in found], float)
        periods = np.log([1000 / outcome.fmax for _, outcome in records])
        free = [list(found[0]).index(name) for name in CLOCK_KINDS]
        fitted = ridge(matrix, periods, STRENGTH, free)
        self.clock = dict(zip(found[0], fitted.tolist(), strict=True))
        self._clock = np.array(list(self.clock.values()))

    def estimate(self, config: Config, device: Device) -> AreaEstimate:
        """The area and the clock of a Config on a device of the family."""
        found = features(config)
        values = np.array([found[name] for name in _NAMES], float)
        counts = (self._cells @ values).round().astype(int).tolist()
        used = dict(zip(FITTED, counts, strict=True)) | {"DSP": dsp_blocks(config)}
        used = {name: count for name, count in used.items() if name in device.capacity}
        clock = clock_features(config, _share(used["LUT"], device))
        period = math.exp(self._clock @ np.array(list(clock.values()), float))
        beyond = (values < self._low) | (values > self._high)
        outside = tuple(_NAMES[n] for n in np.flatnonzero(beyond))
        return AreaEstimate(used, 1000 / period, outside)


def leave_one_out(records: Sequence[Record]) -> Errors:
    """The errors of the model: each point is estimated by a model fitted to all others.

    Only points with the cells of their blocks are left out and estimated.
    """
    points = tuple(record for record in records if record[1].blocks)
    estimates = tuple(
        FittedModel([other for other in records if other is not record]).estimate(
            record[0].config, record[0].device
        )
        for record in points
    )
    return Errors(points, estimates)


def _cells(outcome, group, resource):
    """Cells of one kind in a group of blocks."""
    return sum(
        used.get(resource, 0) for block, used in outcome.blocks.items()
        if _GROUP_OF[block] == group
    )


def _share(luts, device):
    return luts / device.capacity["LUT"]
