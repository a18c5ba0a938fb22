"""Registered objects: order, layers, live choices, and the messages of errors."""

from types import SimpleNamespace

from rejects import rejects

from weft.registry import Choices, MissingLayerError, Registry


def item(name):
    return SimpleNamespace(name=name)


def registry():
    return Registry("data type", item("one"), item("two"))


def test_names_are_in_the_order_of_registration():
    found = registry()
    found.register(item("a"))
    assert list(found) == ["one", "two", "a"]
    assert len(found) == 3 and found["a"].name == "a"


def test_a_registration_reaches_all_layers():
    found = registry()
    hardware = found.layer("hardware", one=1, two=2)
    found.register(item("three"), hardware=3, driver="x")
    assert hardware == {"one": 1, "two": 2, "three": 3}
    assert found.layer("driver")["three"] == "x"


def test_remove_reaches_all_layers():
    found = registry()
    hardware, driver = found.layer("hardware", one=1, two=2), found.layer("driver", two=2)
    found.remove("one")
    assert (list(found), hardware, driver) == (["two"], {"two": 2}, {"two": 2})


def test_rejects_a_name_that_is_taken():
    with rejects(ValueError, "name of a data type must be new, not 'two'"):
        registry().register(item("two"))


def test_a_layer_reports_a_missing_object():
    found = registry()
    found.layer("driver", one=1)
    with rejects(MissingLayerError, (
        "data type 'two' must be registered with driver=..., not without it"
    )):
        found.layer("driver")["two"]


def test_choices_follow_the_registry():
    found = registry()
    choices = Choices(lambda: list(found))
    found.register(item("three"))
    assert list(choices) == ["one", "two", "three"]
    assert choices.index("three") == 2 and "three" in choices and "four" not in choices


def test_a_registration_extends_a_registry():
    found = registry()
    assert not found.extended
    found.register(item("three"))
    assert found.extended
    found.remove("three")
    assert not found.extended
    found.remove("two")
    assert not found.extended
