"""What a run leaves behind: its folder, its record, metrics, states, plots and the report."""
