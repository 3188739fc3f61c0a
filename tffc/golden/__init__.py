"""Golden files: what each example prints and compiles to, kept in the repository.

A folder holds `golden.yaml`, which lists the examples, and one folder an example:

    simple:
      target: examples/slides.py:simple
    temperature:
      target: examples/temperature/temperature.py:mean_temperature
      forms: [mapreduce]

Targets are relative to the folder that holds the golden folder.  Files of an example:

    program.sexpr               the traced program
    initialize.sexpr            the computation of the first state, of a process
    sections.txt                what the compiled sections of both consist of, if there are any
    FORM/passes/NN-PASS.sexpr   the program after each pass of the form's pipeline
    FORM/summary.txt            the types of the form's components
    FORM/components.sexpr       what compiling makes of the first state and of the round
    FORM/manifest.json          the manifest without versions, and hashes that move with them
"""
