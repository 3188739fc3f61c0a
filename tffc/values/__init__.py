"""Values of programs in memory: checked when they come in, in their containers going out."""
