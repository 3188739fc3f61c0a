"""Rounds one after another by value, as far as the first state decides them."""
