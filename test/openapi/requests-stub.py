"""The part of the library `requests` that the reference's samples use, by means of Python's own library."""

import json as json_module
import urllib.request


class Response:
    def __init__(self, text):
        self.ok = True
        self.text = text


def post(url, headers, json, timeout):
    body = json_module.dumps(json).encode()
    request = urllib.request.Request(url, body, {**headers, "content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return Response(response.read().decode())
