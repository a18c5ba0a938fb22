"""The accesses of the host to a network core's memory, over frames or a bus."""
