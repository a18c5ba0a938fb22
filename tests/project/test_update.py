"""Updates of a project: what was not changed is renewed, what was changed is kept and named."""

import json

import pytest
from rejects import rejects

from weft.project import create as making
from weft.project.create import MANIFEST, Facts, ProjectError, create, update

NOTHING = {"updated": [], "added": [], "kept": [], "deleted": []}


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "mine"
    create(folder, Facts("mine", "icebreaker"), None)
    return folder


@pytest.fixture
def newer(monkeypatch):
    """A Weft with another Makefile and view, and one more file."""
    real = making._text
    new = {"board/Makefile": "all:\n", "board/product.gtkw": "[size] 1 1\n"}
    monkeypatch.setattr(making, "_text", lambda name: new.get(name) or real(name))
    monkeypatch.setattr(making, "version", lambda: "0.9.0")
    monkeypatch.setattr("weft.project.create.version", lambda: "0.9.0")
    return new


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_project_of_this_weft_stays_as_it_is(project):
    before = contents(project)
    assert update(project) == NOTHING
    assert contents(project) == before


def test_unchanged_files_are_renewed_and_changed_ones_kept(project, newer):
    (project / "waves.gtkw").write_text("my view\n")
    (project / "run.py").write_text("my program\n")  # this Weft has the same one as before
    (project / "design.toml").write_text("rows = 2\n")
    assert update(project) == {
        **NOTHING, "updated": ["Makefile", "README.md"], "kept": ["run.py", "waves.gtkw"],
    }
    assert (project / "Makefile").read_text() == "all:\n"
    assert "Weft 0.9.0" in (project / "README.md").read_text()
    assert (project / "waves.gtkw").read_text() == "my view\n"
    assert (project / "design.toml").read_text() == "rows = 2\n"
    # A second update still knows which files the user has changed.
    assert update(project) == {**NOTHING, "kept": ["run.py", "waves.gtkw"]}
    assert json.loads((project / MANIFEST).read_text())["weft"] == "0.9.0"


def test_a_deleted_file_stays_deleted_and_a_new_one_is_added(project, newer):
    (project / "Makefile").unlink()
    manifest = json.loads((project / MANIFEST).read_text())
    del manifest["files"]["waves.gtkw"]
    (project / MANIFEST).write_text(json.dumps(manifest))
    (project / "waves.gtkw").unlink()
    done = update(project)
    assert done == {
        "updated": ["README.md"], "added": ["waves.gtkw"], "kept": [], "deleted": ["Makefile"],
    }
    assert not (project / "Makefile").exists()
    assert (project / "waves.gtkw").read_text() == newer["board/product.gtkw"]


def test_a_file_of_the_user_with_the_name_of_a_new_one_is_kept(project, newer):
    manifest = json.loads((project / MANIFEST).read_text())
    del manifest["files"]["waves.gtkw"]
    (project / MANIFEST).write_text(json.dumps(manifest))
    (project / "waves.gtkw").write_text("mine\n")
    assert update(project)["kept"] == ["waves.gtkw"]
    assert (project / "waves.gtkw").read_text() == "mine\n"


def test_rejects_a_folder_that_is_no_project(tmp_path):
    with rejects(ProjectError, f"project must have the file project.json, and {tmp_path} has none"):
        update(tmp_path)


def test_rejects_a_project_of_a_newer_weft(project, monkeypatch):
    monkeypatch.setattr("weft.project.create.version", lambda: "0.0.9")
    before = contents(project)
    with rejects(ProjectError, f"{project} must be of Weft 0.0.9 or older, and was made by 0.1.0"):
        update(project)
    assert contents(project) == before


@pytest.mark.parametrize("template, name", [("ip", "top.v"), ("litex", "soc.py")])
def test_a_project_keeps_its_template(tmp_path, template, name):
    create(tmp_path / "mine", Facts("mine", template=template), None)
    file = tmp_path / "mine" / name
    file.write_text("// mine\n")
    assert update(tmp_path / "mine") == {**NOTHING, "kept": [name]}
    assert file.read_text() == "// mine\n"


def test_rejects_an_unknown_template(project):
    manifest = json.loads((project / MANIFEST).read_text())
    (project / MANIFEST).write_text(json.dumps({**manifest, "template": "asic"}))
    with rejects(ProjectError, (
        f"template in {project / MANIFEST} must be one of board, ip, litex, not 'asic'"
    )):
        update(project)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weft": 3}', '{"files": []}', "[" * 100_000])
def test_rejects_a_manifest_that_is_damaged(project, text):
    (project / MANIFEST).write_text(text)
    with pytest.raises(ProjectError, match="^.*project.json must "):
        update(project)
