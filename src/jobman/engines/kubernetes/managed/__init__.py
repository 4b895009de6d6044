"""Kubernetes as a host: the service places every copy, and here it becomes a pod that runs just there.

Nothing in here decides what runs where or what follows a failure. How a pod is written stands one room above,
since a plain cluster is given the same ones.
"""
