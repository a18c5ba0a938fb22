"""The report of a compiled network: where each layer runs, the reason, its cost and its limit.

==============  =======================================================================
module          content
==============  =======================================================================
`interface`     what the reports of all kinds of core have: facts, text, pictures, page
`product_core`  the report of a product core, with `product_core_views`
`network_core`  the report of a network core, with `network_core_views`
`placement`     the placement line, the reasons of the host, bytes on the link
`streams`       bytes to and from a product core
`energy`        an estimate of the energy
`pictures`      roofline, bars, timeline, as SVG
==============  =======================================================================
"""

from weft.design import PerKind
from weft.models.program import CompiledNetwork
from weft.models.report.interface import Report
from weft.models.report.network_core import NetworkCoreReport
from weft.models.report.placement import placement_line
from weft.models.report.product_core import ProductCoreReport, product_core_report

__all__ = ["NetworkCoreReport", "ProductCoreReport", "Report", "placement_line", "report"]

_REPORTS = PerKind(product=product_core_report, network=NetworkCoreReport)


def report(program: CompiledNetwork, against: CompiledNetwork | None = None) -> Report:
    """The report of a program.

    Parameters
    ----------
    program : Program or NetworkCoreProgram
    against : Program or NetworkCoreProgram, optional
        The same network compiled for another target, to compare with.
    """
    return _REPORTS.of(program)(program, None if against is None else report(against))
