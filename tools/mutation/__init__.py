"""Mutation testing: changes one line of the sources at a time, and checks that a test fails."""
