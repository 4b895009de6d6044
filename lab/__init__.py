"""The real components that tests run on: one script each, and the list of them."""
