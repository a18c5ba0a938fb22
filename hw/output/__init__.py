"""What happens to a sum between the array and the result stream."""
