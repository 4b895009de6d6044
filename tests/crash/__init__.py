"""The proof that nothing acknowledged is lost and nothing runs twice, whoever is killed and whenever."""
