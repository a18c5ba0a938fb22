"""Benches of IP cores, with bus models of third parties: cocotb finds their tests in `MODULES`."""

MODULES = ("weft.sim.ip.jobs", "weft.sim.ip.misuse", "weft.sim.ip.restarts")
