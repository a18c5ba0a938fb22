"""Explore: estimates of accelerators, and the search for the best one for workloads and a board.

==================  ============================================================
module              content
==================  ============================================================
`points`            a point of the design space, and what came of it
`flow`              the tool runs of a point: synthesis, packing, place and route
`store`             keeps all outcomes, in SQLite
`recorded`          the points that come with Weft (``points.json``)
`features`          what area and clock depend on, by block of the design
`network_features`  the same for network cores
`model`             the fitted model of area and clock
`workload`          cycles, bytes and energy of a product or a network
`estimate`          a design's area, clock and figures, without tools
`space`             the Designs that a search tries on a device
`config_fields`     the fields of a design by name, as values and as a line
`candidates`        the best Designs by their estimates
`guide`             which point to place and route next, and why designs lost
`findings`          what an exploration found
`page`              the report of it, with its pictures
==================  ============================================================
"""
