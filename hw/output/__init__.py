"""The output stage: it turns sums from the array into words of the result stream."""
