"""The latest arrival at the registers of each block."""

from weft.boards.arrivals import latest_arrivals

CLK, OTHER = "posedge clk", "posedge other"


def net(event, *endpoints):
    return {"event": event, "endpoints": [
        {"cell": cell, "event": end, "delay": delay} for cell, end, *delay in endpoints
    ]}


def test_the_latest_arrival_of_each_block_and_the_latest_block_first():
    report = {"detailed_net_timings": [
        net(CLK, ("core.drain.a_TRELLIS_FF_Q", CLK, 1.0, 2.0),
            ("accelerator.core.array.pe_0_0.x_TRELLIS_FF_Q", CLK, 2.5, 3.0)),
        net(CLK, ("core.drain.b_TRELLIS_FF_Q", CLK, 0.5, 1.5),
            ("accelerator.core.array.pe_7_7.x_TRELLIS_FF_Q", CLK, 1.0, 4.5)),
        net(OTHER, ("core.loader.page_TRELLIS_FF_Q", OTHER, 7.0)),
    ]}
    found = latest_arrivals(report)
    assert list(found.items()) == [("loader", 7.0), ("array", 4.5), ("drain", 2.0)]


def test_a_path_between_two_clocks_does_not_count():
    report = {"detailed_net_timings": [
        net(OTHER, ("core.drain.a_TRELLIS_FF_Q", CLK, 9.0)),
        net(CLK, ("core.drain.a_TRELLIS_FF_Q", CLK, 1.0)),
    ]}
    assert latest_arrivals(report) == {"drain": 1.0}
