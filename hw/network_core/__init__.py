"""The network core: it executes a list from its own memory."""
