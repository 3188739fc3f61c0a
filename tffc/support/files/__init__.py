"""Safe reading of untrusted files, atomic writing, and locks."""
