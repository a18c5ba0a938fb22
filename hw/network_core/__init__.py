"""The core for networks: it executes a list from its own memory."""
