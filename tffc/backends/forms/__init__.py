"""The deployable forms: what each is made of, and how a program becomes one and is read back."""
