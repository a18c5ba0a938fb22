"""Compiles networks for a core that executes lists, and runs them.

===============  =======================================================================
module           content
===============  =======================================================================
`compiler`       makes a program of a graph, in the order of the next parts
`division`       which operators are layers, in which lists, and which the host computes
`operators`      layers of operators that are no product, sum or pool
`products`       convolutions and matrix products as layers; space to depth
`pools`          average pools and means as layers with equal weights
`additions`      ADD and MUL in the layer before them; tables
`onnx_nodes`     operators of ONNX on bytes; `channels_first` moves their channels
`wide_maps`      tensors of int16 as maps of int8
`variables`      variables that stay in the memory between inferences
`tensor_places`  where each tensor is: in a map of the core, or on the host
`layers`         layers, and the maps between them
`stripes`        layers some rows at a time, if their maps do not fit together
`map_pitches`    distances of pixels and rows, so that no banks conflict
`memory`         the places of all maps
`weights`        words of B, parameter lines and ADD tables
`pieces`         the pixels and the taps of a job, where not even one tile fits a buffer
`demands`        what layers need of the buffers
`schedule`       jobs, and what loads when
`residence`      which loads read the memory on the chip
`jobs`           the descriptor of a job
`image`          the bytes of the memory: lists and what they load
`resident`       the same for a core without loads
`prediction`     the cycles of a list
`list_steps`     operators of the host, and single products, between lists
`program`        the compiled network, with `program_check` and `size_texts`
`session`        runs a program on a core, with `tensor_maps` and `second_place`
`runners`        the interface to a core, and a golden one in numpy
===============  =======================================================================
"""
