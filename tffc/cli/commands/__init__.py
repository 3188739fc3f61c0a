"""One module for each command, with its arguments and its help.

A command imports whatever it needs beyond click only when it is called, so that help is quick.
"""
