"""Jobs on a Kubernetes cluster: compiled to its own objects, and read back from them.

Nothing here knows of the control service. The cluster is the truth: whatever is to be found again later is a
label, an annotation or a name of an object.
"""
