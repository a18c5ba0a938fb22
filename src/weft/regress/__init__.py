"""Regress: the verification matrix of Configs, checks and seeds, on an engine (`weft.tasks`).

====================  ===========================================================================
module                content
====================  ===========================================================================
`configs`             draws random Configs
`case`                a case of the matrix, and what came of it
`matrix`              the cases of a regression
`products`            random products on the simulated transport
`check`               the process that runs a case
`work`                the cases as tasks of an engine
`store`               keeps the outcomes, in SQLite
====================  ===========================================================================
"""
