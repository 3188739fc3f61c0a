"""Side effects of programs, found before anything runs, and the user's consent to them."""
