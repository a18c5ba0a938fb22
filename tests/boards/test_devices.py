"""The devices compared with their data sheets, and the counts of resources."""

import pytest

from weft.boards.devices import DEVICES, RESOURCES, amount


def test_names():
    assert list(DEVICES) == [
        "LFE5U-25F", "LFE5U-45F", "LFE5U-85F", "iCE40UP5K", "iCE40HX8K", "GW2AR-18C",
        "GW1NR-9C",
    ]
    assert all(device.name == name for name, device in DEVICES.items())


@pytest.mark.parametrize(("name", "dsp", "ram", "spram"), [
    ("LFE5U-25F", 28, 56, None), ("LFE5U-45F", 72, 108, None), ("LFE5U-85F", 156, 208, None),
    ("iCE40UP5K", 8, 30, 4), ("iCE40HX8K", None, 32, None), ("GW2AR-18C", 96, 46, None),
    ("GW1NR-9C", 40, 26, None),
])
def test_capacities(name, dsp, ram, spram):
    found = DEVICES[name].capacity
    assert [found.get(key) for key in ("DSP", "RAM", "SPRAM")] == [dsp, ram, spram]
    assert set(found) <= set(RESOURCES)


def test_ecp5_resources_are_counted_in_the_report():
    placed = {"TRELLIS_COMB": 103, "TRELLIS_FF": 81, "MULT18X18D": 2, "DCCA": 1}
    used = DEVICES["LFE5U-25F"].count_resources({"LUT4": 65, "TRELLIS_FF": 80}, placed)
    assert used == {"LUT": 103, "FF": 81, "DSP": 2, "RAM": 0}


def test_an_alu_of_gowin_is_counted_as_a_lut():
    device = DEVICES["GW2AR-18C"]
    placed = {"LUT4": 3906, "ALU": 1180, "DFF": 3223, "BSRAM": 6, "MULT9X9": 4, "RAM16SDP4": 59}
    assert device.count_resources({}, placed) == {"LUT": 5086, "FF": 3223, "DSP": 4, "RAM": 6}
    assert [device.resource(kind) for kind in ("ALU", "LUT2", "DFFSE", "SDP", "BUFG")] == [
        "LUT", "LUT", "FF", "RAM", "BUFG"
    ]
    assert amount({"SDPX9B": 3, "SDPB": 2, "DPB": 4, "ALU": 9}, "BSRAM") == 9


def test_only_the_clocks_of_gowin_leave_something_out():
    assert [name for name, device in DEVICES.items() if device.untimed] == [
        "GW2AR-18C", "GW1NR-9C"
    ]


def test_the_part_of_a_gowin_fpga_is_its_package():
    assert DEVICES["GW2AR-18C"].package == "GW2AR-LV18QN88C8/I7"
    assert DEVICES["LFE5U-25F"].package == "CABGA381"


def test_ice40_flip_flops_are_counted_in_the_netlist():
    cells = {"SB_LUT4": 97, "SB_DFF": 3, "SB_DFFESR": 64, "SB_DFFSR": 17, "SB_CARRY": 31}
    placed = {"ICESTORM_LC": 130, "ICESTORM_DSP": 1, "ICESTORM_RAM": 4, "ICESTORM_SPRAM": 2}
    used = DEVICES["iCE40UP5K"].count_resources(cells, placed)
    assert used == {"LUT": 130, "FF": 84, "DSP": 1, "RAM": 4, "SPRAM": 2}
    assert DEVICES["iCE40HX8K"].count_resources(cells, placed) == {"LUT": 130, "FF": 84, "RAM": 4}


def test_no_dsp_blocks_are_inferred():
    """`synth_gowin` infers them unless it is told not to, `synth_ice40` if it is told to."""
    assert not any(" -dsp" in device.flow.synthesis for device in DEVICES.values())
    assert " -nodsp" in DEVICES["GW2AR-18C"].flow.synthesis


def test_each_gowin_fpga_has_its_family_and_its_die():
    flows = {name: DEVICES[name].flow for name in ("GW2AR-18C", "GW1NR-9C")}
    assert {name: flow.packer_options for name, flow in flows.items()} == {
        "GW2AR-18C": ("-d", "GW2A-18C"), "GW1NR-9C": ("-d", "GW1N-9C")
    }
    assert {name: flow.synthesis.split()[2] for name, flow in flows.items()} == {
        "GW2AR-18C": "gw2a", "GW1NR-9C": "gw1n"
    }
    assert flows["GW1NR-9C"].pll(27, 54).parameters["DEVICE"] == "GW1NR-9C"


@pytest.mark.parametrize("name", ["iCE40HX8K", "iCE40UP5K"])
def test_few_flip_flops_of_an_ice40_have_no_clock_enable(name):
    assert DEVICES[name].flow.synthesis.endswith(" -dffe_min_ce_use 5")
