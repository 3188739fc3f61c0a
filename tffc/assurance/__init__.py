"""What one can trust: tests and proofs of compiled programs, differences, audits, goldens."""
