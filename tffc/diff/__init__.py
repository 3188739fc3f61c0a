"""What differs between two programs, down to the operation of a graph."""
