"""The store: everything that must not be lost, in SQL. No decisions are made here."""
