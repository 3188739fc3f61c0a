"""What leaves the clients, in what protection, and whether a policy allows it."""
