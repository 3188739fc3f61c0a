"""Clients' data: where it comes from, and how values are kept as named arrays.

    source      what a data set and its clients are to those who read them
    location    opening the data set that a text such as `csv:visits.csv?client=user` names
    table       rows grouped by client, and tensors from their cells
    csv_file, parquet, tfrecord     tables in files of these kinds
    folder      a folder of `.npz` files
    packed, packing, pack_format    a folder of arrays that are mapped into memory
    python_function     clients that a function of the user's gives
    arrays      values as named arrays
    groups      many clients' values at once, stacked
    npz         reading and writing `.npz` files

Everything is read when it is asked for: a data set holds the clients' names and where their data
lies, never the data of all.
"""
