"""Two published settings of training across clients, in tffc, JAX by hand and pfl."""
