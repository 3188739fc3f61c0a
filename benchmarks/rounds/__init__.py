"""Rounds of federated averaging in tffc and its alternatives, one module for each."""
