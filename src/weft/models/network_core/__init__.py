"""Compiles networks for a core that executes lists, and runs them.

==================  =============================================================================
module              content
==================  =============================================================================
`layers`            layers, and the maps between them
`division`          which operators are layers, in which lists, and which the host computes
`tensor_places`     where each tensor is: in a map of the core, or in the memory of the host
`host_operators`    operators of the host as steps
`products`          convolutions and matrix products as layers, with `space_to_depth`
`pools`             average pools and means as layers with equal weights
`additions`         ADD and MUL in the layer before them; tables
`pitches`           distances of pixels and rows, so that no banks conflict
`memory`            the places of all maps, with `placing`
`weights`           words of B and parameter lines
`pieces`            the pixels and the taps of a job, where not even one tile fits a buffer
`schedule`          jobs, and what loads when
`jobs`, `image`     descriptors, and the bytes of the memory
`compiler`          makes a `NetworkCoreProgram`
`program`           the compiled network
`runner`            the interface to a core; `golden_runner` implements it in numpy
`session`           runs a program on a core
==================  =============================================================================
"""
