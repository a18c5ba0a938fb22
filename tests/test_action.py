"""The action for GitHub: its steps run here, up to the bitstream, and its template calls it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
TEMPLATE = ROOT / "examples" / "github_action"
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "run" in step}


def run(name, inputs, folder, **more):
    """Run a step as GitHub does, in bash with the inputs in its environment."""
    env = {
        key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], value)
        for key, value in STEPS[name].get("env", {}).items()
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]],
        cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PATH": path, **env, **more},
    )


@pytest.mark.slow
def test_the_steps_run(tmp_path):
    shutil.copy(ROOT / "examples" / "digits_cnn.tflite", tmp_path / "my net.tflite")
    inputs = {name: rule.get("default") for name, rule in ACTION["inputs"].items()}
    inputs |= {"network": "my net.tflite", "folder": "a folder"}
    for name in ("Make the project", "Write the report"):
        done = run(name, inputs, tmp_path)
        assert done.returncode == 0, done.stderr
    page = (tmp_path / "a folder" / "report.html").read_text(encoding="utf-8")
    assert "icebreaker" in page and "</html>" in page
    # The synthesis takes minutes: make only prints what it would do.
    done = run("Make the bitstream", inputs, tmp_path, MAKEFLAGS="n")
    assert done.returncode == 0 and "python -m weft build --board board.py\n" in done.stdout


def test_the_installed_extra_exists():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert STEPS["Install Weft"]["run"] == 'pip install "$GITHUB_ACTION_PATH[all]"'
    assert re.search(r"^all = ", text, re.M)


def test_no_input_is_part_of_a_command():
    """An input inside of a command could be a command itself; inputs are in the environment."""
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []
    assert all(step["shell"] == "bash" for step in STEPS.values())


@pytest.mark.parametrize("path", [
    TEMPLATE / ".github" / "workflows" / "bitstream.yml",
    ROOT / "src" / "weft" / "project" / "files" / "board" / "weft.yml",
])
def test_a_workflow_is_valid(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert job["runs-on"] and workflow[True]  # YAML reads the key `on` as a truth value
    assert all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_the_template_gives_the_inputs_of_the_action():
    path = TEMPLATE / ".github" / "workflows" / "bitstream.yml"
    (job,) = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    (step,) = [step for step in job["steps"] if step.get("uses") == "./.weft"]
    required = {name for name, rule in ACTION["inputs"].items() if rule.get("required")}
    assert required <= {*step["with"]} <= {*ACTION["inputs"]}


def test_the_verbs_of_the_workflow_are_those_of_the_makefile():
    folder = ROOT / "src" / "weft" / "project" / "files" / "board"
    verbs = re.findall(r"^\.PHONY: (.*)$", (folder / "Makefile").read_text(), re.M)[0].split()
    used = re.findall(r"make (\w+)", (folder / "weft.yml").read_text())
    assert verbs == ["help", "lint", "sim", "build", "program", "run"] and {*used} <= {*verbs}
