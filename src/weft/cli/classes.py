"""Classes of ``weft run``: the largest values of an output, their labels, and the accuracy."""

from pathlib import Path

__all__ = ["accuracy_line", "read_labels", "show_top"]


def read_labels(path, classes: int) -> list[str]:
    """Return the names of the classes: a line for each. Raises ModelError for another number."""
    from weft.models.errors import ModelError
    from weft.visible import visible

    try:
        names = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: labels must be lines of UTF-8: {error}") from error
    names = [visible(name.strip()) for name in names]
    while names and not names[-1]:
        names.pop()
    if len(names) != classes:
        raise ModelError(
            f"{path}: labels must be {classes} lines, one for each class, not {len(names)}"
        )
    return names


def show_top(rows, count: int, labels: list[str] | None, names: list[str]) -> None:
    """Print the ``count`` largest values of each row [inferences, classes], with their labels.

    ``names`` are those of the inputs; empty if they have none.
    """
    import numpy as np

    for n, row in enumerate(rows):
        places = np.argsort(-row.astype(np.float64), kind="stable")[:count]
        found = ", ".join(
            f"{place}{f' {labels[place]}' if labels else ''} ({row[place]:.4g})" for place in places
        )
        name = f"{names[n]}: " if names else f"inference {n}: " if len(rows) > 1 else ""
        print(f"{name}top {len(places)}: {found}")


def accuracy_line(rows, wanted: list[str], count: int, labels: list[str] | None) -> str:
    """Return the share of rows whose largest value has the wanted class: a number or a label.

    With ``count`` above 1 also the share with the class among the ``count`` largest values. Raises
    ModelError for a class that does not exist.
    """
    import numpy as np

    from weft.models.errors import ModelError

    known = {label: place for place, label in enumerate(labels or [])}
    classes = rows.shape[1]
    places = []
    for label in wanted:
        place = known.get(label, int(label) if label.isdecimal() else -1)
        if not 0 <= place < classes:
            rule = f"a number in 0..{classes - 1}" + (" or a line of --labels" if labels else "")
            raise ModelError(f"class must be {rule}, not {label!r:.60}")
        places.append(place)
    order = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")
    hits = order == np.array(places)[:, None]
    text = f"accuracy: {_share(hits[:, :1])}"
    return f"{text}; in the top {count}: {_share(hits[:, :count])}" if count > 1 else text


def _share(hits):
    right = int(hits.any(axis=1).sum())
    return f"{right / len(hits):.2%} ({right} of {len(hits)})"
