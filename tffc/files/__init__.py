"""Reading files that may be anything, writing them whole or not at all, and locks."""
