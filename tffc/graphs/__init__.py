"""GraphDefs as data: their nodes, functions and state, and a canonical form.

    node, body, functions  single nodes; a graph or function in one form; a library of functions
    state, order           what nodes keep, and the order in which they use it
    reading, canonical     graphs of strangers, checked; bytes that depend on content alone
    rewrites, operations   graphs made of graphs; what is known of each operation

Nothing here knows the types and the nodes of programs.
"""
