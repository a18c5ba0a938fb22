"""The template of a project for a board."""
