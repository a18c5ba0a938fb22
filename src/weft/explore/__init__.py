"""Explore: estimates of accelerators, and the search for the best one for workloads and a board.

======================  ===========================================================================
module                  content
======================  ===========================================================================
`points`                a point of the design space, and what came of it
`flow`                  the process that runs the tools for a point
`steps`                 synthesis, packing, place and route, as tasks of an engine (`weft.tasks`)
`store`                 keeps all outcomes, in SQLite
`reasons`               why designs lost
`recorded`              the points that come with Weft (``points.json``)
`feature_set`           what a kind of core is estimated from
`features`              what area and clock depend on, by block of the design
`network_features`      the same for a network core
`single_port_features`  the same if its memory has one port
`model`                 the fitted model of area and clock, with `least_squares`
`workload`              cycles, bytes and energy of a product or a network
`rough_cycles`          cycles for a first ranking of many designs
`estimate`              a design's area, clock and figures, without tools
`space`                 the Configs that a search tries on a device
`config_fields`         the fields of a design by name, as a line and as a TOML file
`candidates`            the best Configs by their estimates
`network_candidates`    the same for network cores, near the front of time and LUTs
`search`                both of them: the candidates of a search
`guide`                 which point to place and route next
`findings`              what an exploration found, with `pictures` and `page` for its report
======================  ===========================================================================
"""
