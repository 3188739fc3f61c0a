"""Running: frameworks and the interpreter, clients' data, rounds on one machine, and their records.

- `effects`, `user_code`: consent to side effects; importing a user's module
- `frameworks`, `interpreter`: TensorFlow and JAX; the reference, which says what programs compute
- `data`: clients' data, read one client at a time
- `engines`: the rounds of a bundle, and the engine in this process
- `batching`, `reductions`: many clients in one call; sections rewritten to run faster
- `runs`: run folders, metrics, plots and reports
- `operations`: counts and logs for operators of machines
- `masking`: sums whose terms the server cannot see

A bundle runs without the front end.
"""
