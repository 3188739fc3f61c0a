"""What tffc does, as functions, which `import tffc` gives.

    programs        a program from a module, a file, a bundle or an object of Python
    compiling       compiling a program to a bundle
    verification, proofs, audits, differences     `verify`, `prove`, `audit`, `diff`
    texts, pages    the text of a program, and an HTML page about a round
    plan            a run, described once
    running         runs from Python

The commands read their arguments, call these modules, and show what they return.
"""
