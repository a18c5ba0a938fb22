"""Regress: the verification matrix of Configs, checks and seeds, on an engine (`weft.tasks`).

=======  ==========================================================================
module   content
=======  ==========================================================================
`case`   random Configs, and the cases of the matrix with what came of them
`check`  the process that runs a case; cases as tasks of an engine, and their store
=======  ==========================================================================
"""
