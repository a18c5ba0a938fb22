"""The IP kit: a core behind a bus, with all that others need to drop it in and to trust it."""
