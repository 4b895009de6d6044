"""The durable service: what happens to a job after it was submitted, and the record of it.

Decisions are pure: the conductor takes a plan, what is known and what happened, and says what to do next.
Knows nothing of command lines.
"""
