"""GraphDefs and HLO as data: their nodes, functions, state and effects, and a canonical form.

Nothing here knows the types and the nodes of programs.
"""
