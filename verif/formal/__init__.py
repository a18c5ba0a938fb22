"""Proofs of the rules of buses: they hold in every cycle, for all inputs."""
