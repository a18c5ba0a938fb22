"""The event at the end of a job."""

from amaranth.lib import data

__all__ = ["JobDone"]

# `tag` and `status` are valid with `valid`, a pulse.
JobDone = data.StructLayout({"valid": 1, "tag": 16, "status": 8})
