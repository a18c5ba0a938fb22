"""The one-row core for language models."""
