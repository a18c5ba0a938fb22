"""Explore: estimates of accelerators, and the search for the best one for workloads and a board.

==================  ===========================================================================
module              content
==================  ===========================================================================
`points`            a point of the design space, what came of it, and the store of all outcomes
`flow`              the tool runs of a point: synthesis, packing, place and route
`features`          what area and clock depend on, by block of the design
`network_features`  the same for network cores
`model`             the fitted model of area and clock
`workload`          cycles, bytes and energy of a product or a network
`space`             the Designs that a search tries on a device
`candidates`        the best Designs by their estimates
`findings`          the recorded points, what to place next, and what an exploration found
`page`              the report of it, with its pictures
==================  ===========================================================================
"""
