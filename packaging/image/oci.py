#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""oci.py LAYER.tar VERSION ARCHITECTURE IMAGE: an OCI image of one layer, as a tar of the OCI image layout.

podman load, skopeo copy oci-archive:IMAGE and docker load (25 and later) read it. The same layer gives the same bytes.
"""
import datetime
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

CREATED = int(os.environ["SOURCE_DATE_EPOCH"])


def config(version):
    """How the image is run."""
    return {
        "User": "65532:65532",
        "Env": ["PATH=/usr/bin", "OUTBOX_CONFIG=/etc/outbox/outbox.yaml", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
        "Entrypoint": ["/usr/bin/outbox"],
        "Cmd": ["relay", "--config", "/etc/outbox/outbox.yaml"],
        "WorkingDir": "/var/lib/outbox",
        "Volumes": {"/var/lib/outbox": {}},
        "StopSignal": "SIGTERM",
        "Labels": {
            "org.opencontainers.image.title": "outbox",
            "org.opencontainers.image.description": "transactional outbox: relay of messages from databases to brokers",
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.licenses": "Apache-2.0",
        },
    }


class Layout:
    """The tar of an image layout, written file by file."""

    def __init__(self, path):
        self.tar = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)

    def add(self, name, data):
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime, entry.mode = len(data), CREATED, 0o644
        self.tar.addfile(entry, io.BytesIO(data))

    def blob(self, kind, data, **more):
        """Add a blob; its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        self.add(f"blobs/sha256/{digest}", data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data), **more}


def dump(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def main(layer, version, architecture, image):
    with open(layer, "rb") as file:
        files = file.read()
    created = datetime.datetime.fromtimestamp(CREATED, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    layout = Layout(image)
    layers = [layout.blob("layer.v1.tar+gzip", gzip.compress(files, 9, mtime=0))]
    description = layout.blob("config.v1+json", dump({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": config(version),
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]},
        "history": [{"created": created, "created_by": "scripts/image"}],
    }))
    manifest = layout.blob("manifest.v1+json", dump({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": description, "layers": layers,
    }), annotations={"org.opencontainers.image.ref.name": f"outbox:{version}"})
    layout.add("index.json", dump({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                                   "manifests": [manifest]}))
    layout.add("oci-layout", dump({"imageLayoutVersion": "1.0.0"}))
    layout.tar.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
