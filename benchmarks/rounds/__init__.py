"""Rounds of federated averaging in tffc beside what else a user could take: one module a side."""
