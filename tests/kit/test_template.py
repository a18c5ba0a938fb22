"""The Verilog instantiation template: it has every port of the core, and elaborates."""

import re
import subprocess

import pytest
from tiers import quick


@pytest.mark.parametrize("bus", quick(1, ["dma", "wishbone"]))
def test_instance_has_every_port(kits, bus, tmp_path):
    ip, files = kits(bus)
    template, core = (files[f"{ip.name}.{kind}"].decode() for kind in ("veo", "v"))
    ports = re.search(rf"^module {ip.name}\((.*?)\);", core, re.M | re.S)[1]
    ports = [port.strip() for port in ports.split(",")]
    assert sorted(re.findall(r"^    \.(\w+)\(\1\)", template, re.M)) == sorted(ports)
    (tmp_path / "holder.v").write_text(f"module holder;\n{template}endmodule\n{core}")
    done = subprocess.run(
        ["iverilog", "-g2005", "-t", "null", "-s", "holder", "holder.v"],
        cwd=tmp_path, capture_output=True, text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ports_have_comments(kits):
    ip, files = kits("axi")
    text = files[f"{ip.name}.veo"].decode()
    assert re.search(r"^wire +irq;$", text, re.M)
    assert re.search(r"^wire \[31:0\] s_axil_rdata;$", text, re.M)
    assert re.search(r"^    \.aclk\(aclk\), +// in: clock of all ports, and of the", text, re.M)
    assert f"\n{ip.name} core (\n" in text
