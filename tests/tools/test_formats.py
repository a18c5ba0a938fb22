"""tools/formats.py copies sections of the documentation into the kits."""

from tooling import load

from weft.kit.documents import SECTIONS


def test_writes_the_files(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "src/weft/kit/files").mkdir(parents=True)
    for page, (_, names) in SECTIONS.items():
        held = "".join(f"## {name}\n\nof {name}\n\n" for name in ("Other", *names))
        (tmp_path / "docs" / page).write_text(held)
    assert load("formats").main(tmp_path) == 0
    for file, names in SECTIONS.values():
        text = (tmp_path / "src/weft/kit/files" / file).read_text()
        assert text == "\n".join(f"## {name}\n\nof {name}\n" for name in names)
