"""The reference interpreter, which says what a program computes."""
