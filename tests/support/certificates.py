# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by openssl: authorities, and what they sign."""
import subprocess


def openssl(folder, *args):
    subprocess.run(["openssl", *map(str, args)], cwd=folder, check=True, capture_output=True)


def authority(folder, name):
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            f"{name}.key", "-out", f"{name}.pem", "-days", 2, "-subj", f"/CN={name}")


def certificate(folder, name, san, ca="ca", days=2):
    (folder / "ext").write_text(f"subjectAltName={san}\n")
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}.invalid")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key",
            "-CAcreateserial", "-days", days, "-extfile", "ext", "-out", f"{name}.pem")


def matrix(folder):
    """Good ones, wrong ones, and one for a client."""
    for name in ("ca", "stranger", "self"):
        authority(folder, name)
    certificate(folder, "good", "DNS:localhost")
    certificate(folder, "ip", "IP:127.0.0.1")
    certificate(folder, "wrong", "DNS:other.example")
    certificate(folder, "expired", "DNS:localhost", days=-1)
    certificate(folder, "unknown", "DNS:localhost", ca="stranger")
    certificate(folder, "client", "DNS:client")
    return folder
