"""The reference interpreter, which defines what a program computes."""
