"""The SDK and its example, as a daemon would drive them, over streams in memory and over a real process."""

import base64
import hashlib
import hmac
import io
import json
import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, ROOT)

from open_conduit import Attach, Extension, Fresh, InvalidConfig, NotDecided, wire  # noqa: E402

INITIALIZE = {"protocol_min": 1, "protocol_max": 1, "runtime": {}, "limits": {}}
EXAMPLE = os.path.join(ROOT, "examples", "tickets.py")


def line(identity, method, params):
    request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
    return json.dumps(request).encode() + b"\n"


def deciding(route, event_type, payload):
    return {"route": route, "event": {"type": event_type}, "payload": json.dumps(payload), "scope": {}}


def sample():
    extension = Extension("sample", "1")

    def check(config):
        if "bad" in config:
            raise InvalidConfig(("bad", "must not be there"))

    @extension.handler("sample", check=check, announcements=["core.turn.ended"])
    def decide(config, event, payload):
        if event["type"] == "boom":
            raise ValueError("a bug")
        if event["type"] == "later":
            raise NotDecided("extension_unavailable", "not now")
        return Fresh("sample.kind") if payload["n"] == 1 else None

    return extension


class Talk:
    """A process of an extension, asked line by line."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.asked = 0

    def ask(self, method, params):
        self.asked += 1
        self.process.stdin.write(line(self.asked, method, params))
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.asked, answer
        return answer

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(60)
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return status, said


class ServeTest(unittest.TestCase):
    def first(self, *lines):
        """The answers to lines of which each is answered before the next is read."""
        target = io.BytesIO()
        sample().serve(io.BytesIO(b"".join(lines)), target)
        return [json.loads(answer) for answer in target.getvalue().splitlines()]

    def test_nothing_is_answered_before_initialize(self):
        answers = self.first(line(1, "handler.prepare", {}), line(2, "initialize", INITIALIZE))
        self.assertEqual(answers[0]["error"]["code"], wire.NOT_INITIALIZED)
        self.assertEqual(answers[1]["result"]["capabilities"], {"handlers": ["sample"], "ingresses": []})

    def test_initialize_is_answered_once(self):
        answers = self.first(line(1, "initialize", INITIALIZE), line(2, "initialize", INITIALIZE))
        self.assertEqual(answers[1]["error"]["code"], wire.NOT_INITIALIZED)

    def test_another_version_is_refused(self):
        newer = dict(INITIALIZE, protocol_min=2, protocol_max=3)
        self.assertEqual(self.first(line(1, "initialize", newer))[0]["error"]["code"], wire.UNSUPPORTED_VERSION)

    def test_what_is_no_request_is_said_so(self):
        answers = self.first(b"nonsense\n", b"[]\n")
        self.assertEqual([answer["error"]["code"] for answer in answers], [wire.PARSE, wire.INVALID_REQUEST])


class CallTest(unittest.TestCase):
    def setUp(self):
        self.extension = sample()
        self.call("initialize", INITIALIZE)
        prepared = {"route": "h1", "handler": "sample", "config": {}, "announcements": ["core.turn.ended", "core.x"]}
        self.prepared = self.call("handler.prepare", prepared)["result"]

    def call(self, method, params):
        target = io.BytesIO()
        self.extension._answer(target, {"id": 1, "method": method, "params": params})
        return json.loads(target.getvalue())

    def test_a_route_says_what_it_takes(self):
        self.assertEqual(self.prepared["announcements"], ["core.turn.ended"])
        self.assertTrue(self.prepared["ignores_work"])

    def test_a_handler_matches_or_does_not(self):
        matched = self.call("handler.decide", deciding("h1", "x", {"n": 1}))["result"]["matched"]
        self.assertEqual(matched, {"match": "fresh", "kind": "sample.kind", "lifecycle": "run_once", "keys": []})
        self.assertIsNone(self.call("handler.decide", deciding("h1", "x", {"n": 2}))["result"]["matched"])

    def test_errors_are_those_of_the_protocol(self):
        wrong = {"route": "h2", "handler": "sample", "config": {"bad": 1}, "announcements": []}
        error = self.call("handler.prepare", wrong)["error"]
        self.assertEqual(error["code"], wire.INVALID_CONFIG)
        self.assertEqual(error["data"]["problems"], [{"path": "bad", "message": "must not be there"}])
        error = self.call("handler.decide", deciding("h1", "later", {"n": 1}))["error"]
        self.assertEqual((error["code"], error["data"]["reason"]), (wire.NOT_DECIDED, "extension_unavailable"))
        error = self.call("handler.decide", deciding("h9", "x", {}))["error"]
        self.assertEqual(error["code"], wire.UNKNOWN_HANDLE)
        self.assertEqual(self.call("nothing.such", {})["error"]["code"], wire.METHOD_NOT_FOUND)

    def test_a_bug_is_an_error_and_not_the_end(self):
        stderr, sys.stderr = sys.stderr, io.StringIO()
        try:
            error = self.call("handler.decide", deciding("h1", "boom", {"n": 1}))["error"]
        finally:
            sys.stderr = stderr
        self.assertEqual(error["code"], wire.INTERNAL)
        self.assertIsNotNone(self.call("handler.decide", deciding("h1", "x", {"n": 1}))["result"]["matched"])

    def test_a_released_route_is_forgotten(self):
        self.call("handler.release", {"route": "h1"})
        error = self.call("handler.decide", deciding("h1", "x", {"n": 1}))["error"]
        self.assertEqual(error["code"], wire.UNKNOWN_HANDLE)

    def test_keys_are_pairs(self):
        body = Attach([("a", "1")], kind="k", reopens=["failed"]).body()
        self.assertEqual(body["keys"], [{"source": "a", "external_id": "1"}])
        self.assertEqual(body["reopens"], ["failed"])


class ExampleTest(unittest.TestCase):
    def test_the_example_takes_tickets_and_gives_them_work(self):
        talk = Talk(EXAMPLE)
        offered = talk.ask("initialize", INITIALIZE)["result"]["capabilities"]
        self.assertEqual(offered, {"handlers": ["tickets"], "ingresses": ["tickets"]})
        wrong = {"route": "h1", "handler": "tickets", "config": {}, "announcements": []}
        self.assertEqual(talk.ask("handler.prepare", wrong)["error"]["data"]["problems"][0]["path"], "at_least")
        right = dict(wrong, config={"at_least": 3})
        self.assertEqual(talk.ask("handler.prepare", right)["result"]["describe"], "tickets of urgency 3")
        urgent = talk.ask("handler.decide", deciding("h1", "ticket.changed", {"ticket": 7, "urgency": 3}))
        self.assertEqual(urgent["result"]["matched"]["keys"], [{"source": "tickets", "external_id": "7"}])
        other = talk.ask("handler.decide", deciding("h1", "ticket.changed", {"ticket": 7, "urgency": 2}))
        self.assertEqual(other["result"]["matched"]["match"], "drop")

        entry = {"entry": "h2", "type": "tickets", "name": "desk", "scope": "main", "secret_names": ["desk"]}
        talk.ask("ingress.prepare", dict(entry, config={"namespace": "desk"}))
        body = b'{"change": 1, "ticket": 7, "urgency": 3}'
        signature = hmac.new(b"secret", body, hashlib.sha256).hexdigest()
        encoded = lambda data: base64.b64encode(data).decode()  # noqa: E731
        request = {
            "entry": "h2",
            "path_tail": "",
            "headers": [{"name": "x-desk-signature", "value": encoded(signature.encode())}],
            "body": encoded(body),
            "received_at": "2026-01-31T09:30:00Z",
            "fresh_id": "f",
            "secrets": [{"name": "desk", "value": "secret"}],
        }
        delivery = talk.ask("ingress.receive", request)["result"]["deliveries"][0]
        self.assertEqual((delivery["delivery_id"], delivery["payload"]), ("1", body.decode()))
        refused = talk.ask("ingress.receive", dict(request, body=encoded(b"{}")))["error"]
        self.assertEqual(refused["data"]["refusal"], "unauthorized")
        unread = dict(request, secrets=[{"name": "desk", "problem": "there is none"}])
        self.assertEqual(talk.ask("ingress.receive", unread)["error"]["data"]["refusal"], "unavailable")

        status, said = talk.end()
        self.assertEqual((status, said), (0, b"change 1 of ticket 7\n"))


if __name__ == "__main__":
    unittest.main()
