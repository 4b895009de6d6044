"""A CNI plugin, last in its chain: has a pod wait for the rules of its network before it starts.

It is copied to where the runtime looks for plugins, beside a script that starts it for pods that come, and so
stands alone. Its configuration names the socket of the enforcer (enforcer.py); if nobody answers there, the
runtime is told to try again later.
"""

import json
import os
import socket
import sys

PATIENCE = 15
TRY_AGAIN_LATER = 11


def announced(configuration: dict, arguments: dict[str, str]) -> str:  # type: ignore[type-arg]
    """Tell the enforcer who gets which address, and return its answer."""
    result = configuration["prevResult"]
    addresses = [each["address"].partition("/")[0] for each in result["ips"] if ":" not in each["address"]]
    announcement = {
        "namespace": arguments["K8S_POD_NAMESPACE"],
        "name": arguments["K8S_POD_NAME"],
        "uid": arguments["K8S_POD_UID"],
        "address": addresses[0],
    }
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE)
        line.connect(configuration["counter"])
        line.sendall(json.dumps(announcement).encode() + b"\n")
        return line.makefile().readline().strip()


def main() -> int:
    command = os.environ["CNI_COMMAND"]
    if command == "VERSION":
        print(json.dumps({"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0"]}))
        return 0
    configuration = json.load(sys.stdin)
    if command != "ADD":
        return 0
    arguments = dict(each.partition("=")[::2] for each in os.environ.get("CNI_ARGS", "").split(";"))
    try:
        answer = announced(configuration, arguments)
    except OSError as error:
        answer = f"the enforcer of network policies does not answer: {error}"
    if answer == "ready":
        print(json.dumps(configuration["prevResult"]))
        return 0
    print(json.dumps({"cniVersion": configuration["cniVersion"], "code": TRY_AGAIN_LATER, "msg": answer}))
    return 1


if __name__ == "__main__":
    sys.exit(main())
