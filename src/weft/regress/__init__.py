"""Regress: the verification matrix of Configs, checks and seeds, on an engine (`weft.tasks`).

========  ====================================================================================
module    content
========  ====================================================================================
`case`    a case of the matrix, and what came of it
`matrix`  random Configs, and the cases of a regression
`check`   the process that runs a case, such as random products on the simulated transport
`work`    the cases as tasks of an engine, and the store that keeps the outcomes, in SQLite
========  ====================================================================================
"""
