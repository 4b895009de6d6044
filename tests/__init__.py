"""The tests: a folder per room of the house, and `house` for the house itself."""
