"""How the tables came to be what they are. A migration is never changed once it was released."""
