"""Installing a service into a cluster: every object of it, as plain data. Talks to no cluster.

What an object is for stands beside it; what may be changed are the fields of `Site`.
"""
