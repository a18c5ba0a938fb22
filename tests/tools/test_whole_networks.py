"""The script of networks of many kinds."""

import pytest

whole_networks = pytest.importorskip("tools.whole_networks")
pytest.importorskip("tflite_micro")


@pytest.mark.parametrize("kind", ["slices", "wake words", "attention", *(
    pytest.param(kind, marks=pytest.mark.slow)
    for kind in (
        "several inputs", "normalized", "keyword transformer", "vision transformer", "recurrent",
        "filters", "int16",
    )
)])
def test_a_kind_is_whole_and_equal(kind, capsys):
    assert whole_networks.main([kind]) == 0
    *rows, summary = capsys.readouterr().out.splitlines()
    assert len(rows) == whole_networks.COUNT
    assert all("lists 1  host: - " in row and row.endswith(" yes") for row in rows)
    assert summary == "3 of 3 networks are one list without an operator of the host."


def test_the_files_are_written(tmp_path, capsys):
    assert whole_networks.main(["each job", "--output", str(tmp_path / "nets")]) == 0
    names = [f"each-job-{number}.tflite" for number in range(whole_networks.COUNT)]
    assert sorted(path.name for path in (tmp_path / "nets").iterdir()) == names
    for number, name in enumerate(names):
        data = (tmp_path / "nets" / name).read_bytes()
        assert data == whole_networks.network("each job", number)


def test_an_unknown_kind_is_refused(capsys):
    with pytest.raises(SystemExit) as error:
        whole_networks.main(["slice"])
    assert error.value.code == 2
    assert "KIND must be one of: max pools;" in capsys.readouterr().err


def test_other_bytes_are_an_error(monkeypatch, capsys):
    monkeypatch.setattr(whole_networks, "reference", lambda data: lambda inputs: inputs)
    assert whole_networks.main(["uint8"]) == 1
    assert capsys.readouterr().out.count(" NO\n") == 3
