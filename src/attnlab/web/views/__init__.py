"""What each address answers, a file for each kind of page."""
