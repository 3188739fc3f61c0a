"""The engine on Apache Beam."""
