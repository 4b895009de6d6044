"""Tools of the house: what is run by hand or by make, never by a user."""
