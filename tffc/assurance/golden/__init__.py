"""Golden files: the text that each example prints and compiles to, kept in the repository.

A golden folder holds `golden.yaml`, which lists the examples, and one folder for each:

    simple:
      target: examples/slides.py:simple
    temperature:
      target: examples/temperature/temperature.py:mean_temperature
      forms: [mapreduce]

Targets are relative to the parent of the golden folder.  The files of an example:

    program.sexpr               the traced program
    initialize.sexpr            the computation of the first state, of a process
    sections.txt                a listing of the compiled sections of both, if there are any
    FORM/passes/NN-PASS.sexpr   the program after each pass of the form's pipeline
    FORM/summary.txt            the types of the form's components
    FORM/components.sexpr       the compiled components, also of the first state
    FORM/manifest.json          the manifest, without versions and hashes that change with them
"""
