"""One module a command: its arguments and its help.

A command that needs more than click to do its work imports that when it is called, so that help is
quick.
"""
