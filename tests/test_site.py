"""The documents build as a site; a broken link or reference is an error."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d",
         place / "trees", ROOT / "docs", place / "html"],
        capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    return place / "html"


@pytest.mark.slow
def test_every_page_can_be_reached(site):
    start = (site / "index.html").read_text(encoding="utf-8")
    docs = ROOT / "docs"
    pages = {
        path.relative_to(docs).with_suffix("").as_posix()
        for path in (*docs.glob("*.md"), *docs.glob("learn/*.md"))
    } - {"index"}
    linked = set(re.findall(r'href="([\w/-]+)\.html"', start))
    assert pages - linked == set()


@pytest.mark.slow
def test_the_api_shows_what_people_import(site):
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    for name in (
        "weft.host.accelerator.Accelerator.matmul", "weft.config.Config", "weft.cycles.predict",
        "weft.sim.transport.SimTransport", "weft.quantize.tflite_scale", "weft.ip.Ip",
        "weft.jax.offload", "weft.torch.backend", "weft.torch.report",
    ):
        assert f'id="{name}"' in text
    assert "scale_cycles" in text
