"""Random lists in the golden model, against direct convolutions of the layers."""

import numpy as np
import pytest
from network_core_jobs import bank_conflicts
from network_core_lists import random_list
from network_cores import network_core_config
from tiers import quick

from weft.golden.network_core import run_list
from weft.network_core.descriptors import ListError, ListJob, ListLoad, ListLoop

MEMORY = {"words": 8192, "b_words": 64, "lines": 24, "read_vectors": 2}


@pytest.mark.parametrize("eager", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize("config", quick(1, [
    network_core_config(2, 2, 2, 2, multiplier="fip", softmax=True, **MEMORY),
    network_core_config(4, 4, 4, 2, multiplier="plain", requantize="single", **MEMORY),
    network_core_config(2, 2, 4, 2, multiplier="fip", multiply_maps=True, **MEMORY),
]), ids=["2x2x2", "4x4x4", "products"])
def test_random_lists(config, eager):
    rng = np.random.default_rng(20)
    kinds, forms, cases = [], [], 0
    while cases < 20:
        base, limit = int(rng.integers(9)), 8184
        try:
            case = random_list(
                rng, config, layers=5, base=base, limit=limit, most_channels=7, most_kernel=3
            )
        except MemoryError:
            continue
        cases += 1
        kinds += [type(descriptor) for descriptor in case.descriptors]
        outcome = run_list(
            config, case.image.memory, case.list_address, case.log_address,
            base=base, limit=limit, buffers=case.buffers, eager=eager,
        )
        assert outcome.error == ListError.NONE
        assert outcome.jobs == case.jobs
        for place, values in case.maps:
            assert (case.image.read_map(place, values.shape) == values).all()
        size = case.descriptors[-1].result_bytes
        assert outcome.result == case.image.vectors()[case.maps[-1][0].number :].tobytes()[:size]
        jobs = [d for d in case.descriptors if isinstance(d, ListJob)]
        forms += [job.softmax for job in jobs]
        assert [bank_conflicts(config, job) for job in jobs] == [[]] * len(jobs)
    assert {ListJob, ListLoad, ListLoop} <= set(kinds)
    assert config.softmax == any(forms)
