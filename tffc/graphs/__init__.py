"""GraphDefs as data: their nodes, functions and state, and a canonical form.

Nothing here knows the types and the nodes of programs.
"""
