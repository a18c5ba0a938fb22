"""Bench: designs placed and routed with several seeds, on an engine (`weft.tasks`).

====================  ===========================================================================
module                content
====================  ===========================================================================
`placement`           a design and a seed, as the work of an engine
`measure`             all seeds of many designs; finished runs are cached
====================  ===========================================================================
"""
