"""Who vouches for a bundle: signed statements, approvals, and the gate of a node."""
