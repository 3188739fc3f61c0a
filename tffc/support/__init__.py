"""What every package needs: errors and their pages, files, and text for people."""
