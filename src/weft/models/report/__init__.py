"""The report of a compiled network: where each layer runs, the reason, its cost and its limit.

==============  =================================================================================
module          content
==============  =================================================================================
`figures`       the data of a report, and its JSON
`build`         makes the data from a `Program`
`streams`       bytes that a step moves: words, results, frames
`energy`        an estimate of the energy
`placement`     the placement line
`text`          tables for a terminal
`pictures`      roofline, timeline, memory, energy, as SVG
`page`          one HTML page with all of it, which needs no network
`network_core`          the report of a program for a network core; with `network_core_phases`,
                `network_core_placement`, `network_core_text`, `network_core_pictures` and
                `network_core_page`
==============  =================================================================================
"""

from weft.models.report.build import report
from weft.models.report.figures import LayerReport, NetworkReport
from weft.models.report.network_core import NetworkCoreReport
from weft.models.report.placement import placement_line

__all__ = ["NetworkCoreReport", "LayerReport", "NetworkReport", "placement_line", "report"]
