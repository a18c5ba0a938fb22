"""Brings a project to the installed Weft, and leaves alone what its user has changed."""

import dataclasses
import hashlib
import json
from pathlib import Path

from weft.files import write_bytes
from weft.project.create import MANIFEST, TEMPLATES, Facts, generated_files, version

__all__ = ["ProjectError", "update"]


class ProjectError(ValueError):
    """The folder is no project, or one of a newer Weft."""


def update(folder: Path) -> dict[str, list[str]]:
    """Replace the generated files that were not changed; return names by what was done.

    The keys are ``updated``, ``added``, ``kept`` (the user changed the file, and Weft has another
    one now) and ``deleted`` (the user deleted it). The design and the network are the user's: they
    are never replaced.

    Raises ProjectError for a folder without a valid manifest, or of a newer Weft.
    """
    old = _read(folder)
    digests = old["files"]
    done: dict[str, list[str]] = {"updated": [], "added": [], "kept": [], "deleted": []}
    new = {}
    for name, data in generated_files(_facts(old)).items():
        path, known, wanted = folder / name, digests.get(name), hashlib.sha256(data).hexdigest()
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        if found == wanted:
            digests[name] = wanted
        elif found is None and known is not None:
            done["deleted"].append(name)
        elif found is not None and found != known:
            done["kept"].append(name)
        else:
            done["added" if found is None else "updated"].append(name)
            digests[name], new[name] = wanted, data
    for name, data in new.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / name, data)
    text = json.dumps({**old, "weft": version(), "files": digests}, indent=2) + "\n"
    write_bytes(folder / MANIFEST, text.encode())
    return done


def _read(folder):
    path = folder / MANIFEST
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        text = f"project must have the file {MANIFEST}, and {folder} has none"
        raise ProjectError(text) from None
    except (ValueError, RecursionError) as error:
        raise ProjectError(f"{path} must be the JSON that weft new wrote: {error}") from error
    names = [f.name for f in dataclasses.fields(Facts)]
    is_valid = isinstance(old, dict) and isinstance(old.get("files"), dict) and all(
        isinstance(old.get(name), str) for name in (*names, "weft")
    )
    if not is_valid:
        raise ProjectError(
            f"{path} must have the texts {', '.join(names)} and weft, and the table files"
        )
    if _numbers(old["weft"]) > _numbers(version()):
        raise ProjectError(
            f"{folder} must be of Weft {version()} or older, and was made by {old['weft']}"
        )
    if old["template"] not in TEMPLATES:
        raise ProjectError(
            f"template in {path} must be one of {', '.join(TEMPLATES)}, not {old['template']!r}"
        )
    return old


def _facts(old):
    return Facts(**{f.name: old[f.name] for f in dataclasses.fields(Facts)})


def _numbers(text):
    return [int(part) if part.isdigit() else 0 for part in text.split(".")]
