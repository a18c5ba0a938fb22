"""What buses of IP cores take of a core's rate: ``python tools/rates.py`` prints a line for each.

128 x 128 by 128 x 128, job behind job, on Verilator; some minutes.
"""

from weft.config import Config
from weft.hw.export import plain
from weft.hw.ip.top import IpTop
from weft.ip import Ip
from weft.sim.build import folder
from weft.sim.ip.rig import facts
from weft.sim.runner import run

NARROW = {"bytes_in": 4, "bytes_out": 4}
CASES = [
    ({"depth": 2}, {"bus": "stream"}),
    ({"depth": 2}, {"bus": "stream", "clocks": 2}),
    (NARROW, {"bus": "axi"}),
    (NARROW, {"bus": "wishbone"}),
    (NARROW | {"depth": 2}, {"bus": "wishbone", "pipelined": True}),
]


def main():
    for fields, options in CASES:
        ip = Ip(config=Config(activation="none", **fields), **options)
        outcome = run(
            ip.config, "verilator", build_dir=folder() / "rates", top=ip.name, facts=facts(ip),
            verilog=plain(IpTop(ip), name=ip.name), modules=["weft.sim.ip.rates"],
        )
        said = outcome.log.read_text(encoding="utf-8").splitlines()
        print(options, *(line for line in said if line.startswith("interval")), flush=True)


if __name__ == "__main__":
    main()
