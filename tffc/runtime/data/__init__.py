"""Clients' data: opening data sets, checking them against a type, reading one client at a time.

    source      the protocols of data sets and of the clients in them
    location    opening the data set that a text such as `csv:visits.csv?client=user` names
    table       rows grouped by client, and tensors made from their cells
    csv_file, parquet, tfrecord     tables in files of these kinds
    folder      a folder of `.npz` files, one a client
    packed, packing, pack_format    a folder of arrays in one file
    python_function     clients that a Python function returns
    arrays      values as named arrays
    groups      the values of many clients, stacked into arrays
    npz         reading and writing `.npz` files

Data is read lazily: an open data set holds the clients' names and where their data lies, never the
data of all clients.
"""
