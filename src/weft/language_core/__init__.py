"""The one-row core for language models: its sizes, its descriptors, its cycles."""
