"""The version of tffc."""

VERSION = "0.1.0"
