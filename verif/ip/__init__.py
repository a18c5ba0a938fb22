"""Testbenches of IP cores with bus models of third parties; cocotb runs the tests of `MODULES`."""

MODULES = ("verif.ip.jobs", "verif.ip.misuse", "verif.ip.resets")
