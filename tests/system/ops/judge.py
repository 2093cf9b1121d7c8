# SPDX-License-Identifier: Apache-2.0
"""openapi-core and jsonschema in a process of their own, since they bring newer versions of what pytest has loaded.

Lines of JSON: first the description, then answers of the server ({"method", "path", "status", "type", "body"}) or values
({"schema", "value"}). Each is answered by null, or by what is wrong with it."""
import base64
import json
import subprocess
import sys


class Judge:
    """Judges by a description; `folder` is where the packages are."""

    def __init__(self, folder, spec):
        self.process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"})
        self.spec = spec
        wrong = self.ask(spec)
        assert wrong is None, wrong

    def ask(self, value):
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the judge is gone"
        return json.loads(line)

    def answer(self, method, path, answer):
        """None, or why this answer is not as described."""
        return self.ask({"method": method, "path": path.partition("?")[0], "status": answer.status,
                         "type": answer.headers["Content-Type"], "body": base64.b64encode(answer.body).decode()})

    def allows(self, schema, value):
        return self.ask({"schema": schema, "value": value}) is None

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)


def main():
    import jsonschema  # pylint: disable=import-error,import-outside-toplevel
    import openapi_core  # pylint: disable=import-error,import-outside-toplevel
    import openapi_spec_validator  # pylint: disable=import-error,import-outside-toplevel
    from openapi_core.testing import MockRequest, MockResponse  # pylint: disable=import-error,import-outside-toplevel

    def judge(openapi, item):
        if "schema" in item:
            return jsonschema.Draft202012Validator(item["schema"]).validate(item["value"])
        request = MockRequest("http://localhost", item["method"].lower(), item["path"])
        response = MockResponse(base64.b64decode(item["body"]), item["status"], content_type=item["type"].split(";")[0])
        return openapi.validate_response(request, response)

    openapi = None
    for line in sys.stdin:
        wrong = None
        try:
            if openapi:
                judge(openapi, json.loads(line))
            else:
                openapi_spec_validator.validate(json.loads(line))
                openapi = openapi_core.OpenAPI.from_dict(json.loads(line))
        except Exception as error:  # pylint: disable=broad-except
            wrong = f"{type(error).__name__}: {error} {error.__cause__ or ''} {getattr(error.__cause__, 'schema_errors', '')}"
        print(json.dumps(wrong), flush=True)


if __name__ == "__main__":
    main()
