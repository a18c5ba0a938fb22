"""Mutation testing: breaks one line of the sources at a time, and sees whether a test fails."""
