"""The compiler of language models for a language core."""
