"""The steps of a job: when each one starts, and which vectors it reads."""
