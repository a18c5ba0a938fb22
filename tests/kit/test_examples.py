"""The Amaranth example of a kit: a design with the core, whose result equals numpy's."""

import numpy as np
import pytest
from rejects import rejects
from tiers import quick

from weft.config import Config
from weft.kit.files.amaranth_soc import main, simulate

CONFIGS = [
    Config(rows=2, cols=4, a_words=64, b_words=64),
    Config(rows=1, cols=2, depth=2, bytes_in=64, bytes_out=64, lanes=2, a_words=64, b_words=64),
]


@pytest.mark.parametrize("config", quick(1, CONFIGS), ids=lambda config: config.name)
def test_total_equals_numpy(config):
    rng = np.random.default_rng(4)
    m, n, k = config.rows, 2 * config.cols, 3 * config.depth + 1
    a = rng.integers(-128, 128, (m, k), dtype=np.int8)
    b = rng.integers(-128, 128, (k, n), dtype=np.int8)
    want = (a.astype(np.int64) @ b.astype(np.int64)).sum()
    assert simulate(config, a, b) == want % (1 << 32)


@pytest.mark.slow
def test_runs_from_its_kit(kits, tmp_path, monkeypatch, capsys):
    (tmp_path / "config.toml").write_bytes(kits("axi")[1]["config.toml"])
    monkeypatch.chdir(tmp_path)
    assert main("config.toml") == 0
    total, want = (word.rstrip(",") for word in capsys.readouterr().out.split()[2::2])
    assert total == want
    assert (tmp_path / "amaranth_soc.v").read_text().count("module matmul_checksum(") == 1


def test_rejects_a_config_that_it_does_not_support(kits, tmp_path):
    config = Config(dtype="bf16", rows=2, cols=2)
    (tmp_path / "config.toml").write_text(f'dtype = "{config.dtype}"\nrows = 2\ncols = 2\n')
    with rejects(SystemExit, (
        "this example needs dtype int8, bytes_out a multiple of 4, and cols a multiple of lanes"
    )):
        main(tmp_path / "config.toml")
