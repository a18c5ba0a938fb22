"""The control: from the command stream to the steps of the array."""
