"""Values of programs in memory: checking Python objects on the way in, and containers on the way
out."""
