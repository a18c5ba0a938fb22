"""Tests of the interrupt registers: no event is lost."""

from verif.amaranth_bench import play
from weft.hw.bus.register_bank import Interrupts


def run(script, *watched, tail=2):
    return play(Interrupts(width=3), script, *watched, tail=tail)


def test_status_stays_until_it_is_cleared():
    (status,) = run([
        {"events": 5}, {"events": 0}, {}, {"clear": 1, "data": 1}, {"clear": 0}, {},
        {"clear": 1, "data": 7}, {"clear": 0},
    ], "status")
    assert status == [0, 5, 5, 5, 4, 4, 4, 0, 0, 0]


def test_event_in_the_cycle_of_its_clear_is_kept():
    (status,) = run([
        {"events": 3}, {"events": 2, "clear": 1, "data": 7}, {"events": 0, "clear": 0}, {},
    ], "status")
    assert status[2:] == [2] * 4


def test_irq_follows_the_enabled_status():
    status, enable, irq = run([
        {"events": 1}, {"events": 0}, {"set": 1, "data": 2}, {"set": 0}, {"events": 2},
        {"events": 0}, {"clear": 1, "data": 1}, {"clear": 0}, {"clear": 1, "data": 2},
        {"clear": 0},
    ], "status", "enable", "irq")
    assert status == [0, 1, 1, 1, 1, 3, 3, 2, 2, 0, 0, 0]
    assert enable == [0, 0, 0] + [2] * 9
    assert irq == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0]


def test_clear_all_clears_status_but_not_enable():
    status, enable = run([
        {"events": 7, "set": 1, "data": 5}, {"set": 0, "clear_all": 1},
        {"events": 0, "clear_all": 0},
    ], "status", "enable")
    assert status == [0, 7, 0, 0, 0] and enable == [0, 5, 5, 5, 5]
