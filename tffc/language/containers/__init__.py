"""Python containers of users' values: the generic `Struct`, and those whose elements have names."""
