"""What the words of a prompt are: typed by the user, pasted, or written by a client."""
