#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a queue has, read and deleted by AWS' own client for Python: witness.py PORT QUEUE FILE appends the bodies, one a line."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "support"))
# pylint: disable=wrong-import-position
import fetch

BOTO = fetch.fetch("boto3==1.44.3", "boto3")
if BOTO:
    sys.path.insert(0, str(BOTO))


def client(service, port, **more):
    import boto3  # pylint: disable=import-error,import-outside-toplevel
    from botocore.config import Config  # pylint: disable=import-error,import-outside-toplevel
    return boto3.client(service, endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1",
                        aws_access_key_id="witness", aws_secret_access_key="secret",
                        config=Config(retries={"max_attempts": 0}), **more)


def read(sqs, url):
    """Every message of the queue, in order; they are gone afterwards."""
    found = []
    while True:
        batch = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"],
                                    MessageAttributeNames=["All"]).get("Messages", [])
        if not batch:
            return found
        found += batch
        sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]}
                                                        for i, m in enumerate(batch)])


def main():
    port, queue, path = sys.argv[1:]
    messages = read(client("sqs", port), f"http://127.0.0.1:{port}/000000000000/{queue}")
    with open(path, "a", encoding="utf-8") as out:
        out.writelines(message["Body"] + "\n" for message in messages)


if __name__ == "__main__":
    main()
