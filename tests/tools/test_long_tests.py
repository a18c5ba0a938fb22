"""The counts of the record of the long tests."""

import pytest

from tools.long_tests import counts

REPORT = """<testsuites><testsuite>
<testcase classname="tests.kit.test_bench" name="test_passes[a]" time="1.5"/>
<testcase classname="tests.kit.test_bench" name="test_passes[b]" time="2.25"/>
<testcase classname="tests.test_cycles" name="test_equals" time="4"/>
<testcase classname="tests.test_cycles" name="test_skipped" time="0.1"><skipped/></testcase>
</testsuite></testsuites>"""


def test_counts_the_tests_that_ran(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    assert counts(tmp_path / "report.xml") == {
        "tests/kit/test_bench.py": (2, 3.75), "tests/test_cycles.py": (1, 4.0),
    }


@pytest.mark.parametrize("kind", ["failure", "error"])
def test_a_test_that_failed_leaves_the_record(tmp_path, kind):
    (tmp_path / "report.xml").write_text(REPORT.replace("skipped", kind))
    with pytest.raises(SystemExit, match=f"test_{kind} must pass"):
        counts(tmp_path / "report.xml")
