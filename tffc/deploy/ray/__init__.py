"""The engine on Ray."""
