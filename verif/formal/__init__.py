"""Proofs of the rules of buses: what holds in every cycle, whatever comes."""
