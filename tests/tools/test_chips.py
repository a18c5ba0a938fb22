"""The figures of several chips: the page, the shape of the network, and the record."""

from tools import chips, results


def test_the_network_has_the_weights_of_its_shape():
    # Of a layer: q, k, v and o of 288 x 288, and three of 288 x 768; then the words.
    assert chips.WEIGHTS == 6 * (4 * 288**2 + 3 * 288 * 768) + 288 * 32_000 == 15_187_968


def test_the_page_is_up_to_date():
    assert chips.page_text() == chips.PAGE.read_text(encoding="utf-8"), "stale; type: make chips"


def test_the_record_has_the_times_of_the_page():
    tables = {each["title"]: each for each in results.load("chips")["tables"]}
    for where, title in (("link", "over the link"), ("memory", "beside the chip")):
        rows = tables[f"A token, weights {title}"]["rows"]
        assert [row[0] for row in rows] == chips.CHIPS
        for n, link in enumerate(chips.LINKS):
            times = [row[1 + 2 * n] for row in rows]
            assert times == [round(ms, 1) for ms in chips.curves()[where][link.name]]


def test_what_the_page_says_of_the_links():
    over, beside = chips.curves()["link"], chips.curves()["memory"]
    names = [link.name for link in chips.LINKS]
    for name in names[:2]:  # a link of its own for each chip: 8 chips gain
        assert over[name][3] < over[name][0] / 7
    assert over[names[2]][1] > over[names[2]][0]
    assert round(beside[names[3]][0] / beside[names[3]][3], 1) == 2.7
    for links in (beside, {name: over[name] for name in names[2:]}):
        assert all(times[-1] > min(times) for times in links.values())


def test_the_record_has_no_bit_that_differs_and_the_speed_of_its_goal():
    training = results.load("chips")["tables"][0]
    heads = [column["name"] for column in training["columns"]]
    for row in training["rows"]:
        found = dict(zip(heads, row, strict=True))
        assert found["bits that differ"] == 0
        assert found["speed-up"] >= {2: 1.9, 4: 3.7}[found["cores"]]
