"""The audit of a round: what leaves the clients, how it is protected, and whether a policy allows
it."""
