"""Bundles: the folder that holds a form and the program that it came from."""
