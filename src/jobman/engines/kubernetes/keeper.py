"""Who carries the output of a copy to an object store: a container that starts before it and ends after it.

The copy writes into a folder that both see. What is there is brought to the store every few seconds, so that
little is lost with a node, and once more when the copy has ended, which waits for that. Who can write to the
store is the keeper alone: the copy does not see its keys.
"""

from __future__ import annotations

import posixpath
from typing import Any

from jobman.engines.kubernetes.kept_logs import END, LOGS, VOLUME, KeptLogs

KEEPER = "keeper"
"""The container, beside the one that runs the command."""
_SCRIPT = """\
folder=$1 place=$2 end=$3 stop= due=0
export RCLONE_CONFIG= RCLONE_S3_ENV_AUTH=true RCLONE_S3_NO_CHECK_BUCKET=true
export RCLONE_S3_ENDPOINT="${RCLONE_S3_ENDPOINT:-$AWS_ENDPOINT_URL}"
export RCLONE_S3_REGION="${RCLONE_S3_REGION:-${AWS_REGION:-$AWS_DEFAULT_REGION}}"
if [ "$RCLONE_S3_ENDPOINT" ]; then other=Other; else other=AWS; fi
export RCLONE_S3_PROVIDER="${RCLONE_S3_PROVIDER:-$other}"
export AWS_REQUEST_CHECKSUM_CALCULATION="${AWS_REQUEST_CHECKSUM_CALCULATION:-when_required}"
trap stop=1 TERM INT
keep() {
  [ -d "$folder" ] || return 0
  begun=$(date +%s)
  rclone copy --quiet --no-traverse --size-only --local-no-check-updated "$folder" "$place"
  code=$? now=$(date +%s)
  due=$((now + 10 + 10 * (now - begun)))
  return "$code"
}
while [ ! "$stop" ]; do
  if [ -e "$end" ]; then
    keep && rm -f "$end"
  elif [ "$(date +%s)" -ge "$due" ]; then
    keep
  fi
  sleep 1 &
  wait $!
done
keep"""
"""Logs only grow, so their size tells whether there is more. What takes long is done less often.

Stores other than the first of their kind may not know the checksums that it has come to know.
"""


def keeper(kept: KeptLogs, job: str, image: str, secret: str) -> dict[str, Any]:
    """The container, without what all containers of the pod share."""
    place = posixpath.join(kept.bucket, kept.path, job)
    return {
        "name": KEEPER,
        "image": image,
        "restartPolicy": "Always",
        "command": ["/bin/sh", "-c", _SCRIPT, "sh", f"{LOGS}/{job}", f":s3:{place}", END],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "envFrom": [{"secretRef": {"name": secret}}],
        # Of the cores it takes what is left over: a copy may have asked for all there are.
        "resources": {"requests": {"cpu": "0", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [{"name": VOLUME, "mountPath": LOGS}],
    }
