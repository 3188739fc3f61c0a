"""What programs do besides computing, found before anything runs, and the consent to it."""
