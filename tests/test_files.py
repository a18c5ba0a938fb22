"""Files are written completely or not at all, and every error has the name of the file."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from weft.cli import main
from weft.files import write_bytes, write_text, written_whole

SOURCES = Path(weft.__file__).parent
ROOT = SOURCES.parent.parent


def full(*args, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_writes_text_and_bytes(tmp_path):
    write_text(tmp_path / "a", "ä\n")
    write_bytes(tmp_path / "b", b"\0")
    assert (tmp_path / "a").read_bytes() == "ä\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\0"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "file")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder/file").read_text() == "text"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_failed_write_names_the_file_and_leaves_the_old_one(tmp_path, number):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OSError) as caught, written_whole(path) as part:
        part.write_text("new")
        raise OSError(number, os.strerror(number))
    assert (caught.value.filename, caught.value.errno) == (str(path), number)
    assert os.listdir(tmp_path) == ["file"] and path.read_text() == "old"


def test_the_name_of_another_file_stays(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, written_whole(tmp_path / "file"):
        open(tmp_path / "other")
    assert str(caught.value.filename) == str(tmp_path / "other")
    assert os.listdir(tmp_path) == []


def test_other_errors_leave_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), written_whole(tmp_path / "file") as part:
        part.write_text("new")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(mount).returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named(small_disk, capsys):
    """The Verilog of a core has some 200 kB."""
    path = small_disk / "core.v"
    assert main(["generate", "--rows", "2", "--cols", "2", "-o", str(path)]) == 2
    said = capsys.readouterr().err
    assert said == f"weft: error: {path}: No space left on device\n"
    assert os.listdir(small_disk) == []


@pytest.mark.parametrize("command", [
    ["generate", "--rows", "2", "--cols", "2", "-o", "PATH"],
    ["report", "NETWORK", "--html", "PATH"],
    ["compile", "NETWORK", "--board", "icebreaker", "-o", "PATH"],
    ["run", "NETWORK", "--output", "PATH"],
    ["run", "NETWORK", "--activations", "PATH"],
])
def test_each_command_names_its_file(tmp_path, capsys, monkeypatch, command):
    """The writes of Python, numpy and zipfile fail where the first byte would be written."""
    from digits import CNN

    path = tmp_path / "file.npz"
    path.write_text("old")
    real = os.replace

    def replace(part, target):
        if str(target) == str(path):
            full()
        return real(part, target)

    monkeypatch.setattr(os, "replace", replace)
    words = {"PATH": str(path), "NETWORK": str(CNN)}
    assert main([words.get(word, word) for word in command]) == 2
    *progress, said = capsys.readouterr().err.splitlines()
    assert said == f"weft: error: {path}: No space left on device"
    assert all(line.startswith("   ...  ") for line in progress)  # on a slow machine
    assert os.listdir(tmp_path) == ["file.npz"] and path.read_text() == "old"


@pytest.mark.parametrize("words", [["info"], ["--help"]], ids=" ".join)
def test_a_full_standard_output_is_named(words):
    """A report, and a help text, which argparse would print without a word about the error."""
    with open("/dev/full", "w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "weft", *words], stdout=output, stderr=subprocess.PIPE,
            text=True, timeout=600,
        )
    assert (done.returncode, done.stderr) == (
        2, "weft: error: the standard output: No space left on device\n"
    )


def test_all_files_are_written_so():
    """Other calls write to a `part` of `written_whole`, to a log of a program, or hold a lock."""
    writes = re.compile(
        r"\.write_(?:text|bytes)\(|savefig\((?!file\b|data\b)|shutil\.copy|\bopen\([^)]*\"[wxa]b?\+?\""
        r"|os\.replace"
    )
    allowed = re.compile(r"\bpart\b|unfinished|as (?:output|log|lock)\b|lock = open|_spare")
    folders = SOURCES, ROOT / "boards", ROOT / "sim"
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in folders for path in sorted(folder.rglob("*.py"))
        if path.name != "files.py" and "files" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if writes.search(line) and not allowed.search(line)
    ]
    assert found == []
