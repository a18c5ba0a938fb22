"""The lists of a network core: descriptors are read ahead, and start jobs and loads."""
