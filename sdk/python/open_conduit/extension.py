"""Serving handlers and ingress until the daemon goes away."""

import base64
import json
import os
import sys
import threading
import traceback

from . import wire
from .wire import WireError


class Request:
    """A request of the webhook listener, its body unread by anyone."""

    def __init__(self, params):
        self.path_tail = params["path_tail"]
        #: Pairs of a name in lower case and a value in bytes, in the order they came.
        self.headers = [(header["name"], base64.b64decode(header["value"])) for header in params["headers"]]
        self.body = base64.b64decode(params["body"])
        self.received_at = params["received_at"]
        #: An id that no other request has had.
        self.fresh_id = params["fresh_id"]
        self._secrets = {secret["name"]: secret for secret in params["secrets"]}

    def header(self, name):
        """The first header of that lower-case name, as text; None without one."""
        for known, value in self.headers:
            if known == name:
                return value.decode("utf-8", "replace")
        return None

    def secret(self, name):
        """The value of a secret that the entry names. Without it the sender is told to try again."""
        secret = self._secrets.get(name)
        if secret is None or secret.get("value") is None:
            raise wire.Refused("unavailable", "the secret `%s` cannot be read" % name)
        return secret["value"]


class _Part:
    """A handler or a type of entries, with what describes and checks it."""

    def __init__(self, function, check, describe, **more):
        self.function = function
        self.check = check
        self.describe = describe
        self.more = more


class Extension:
    """What one process offers. Names are the extension's own, or begin with it and a full stop."""

    def __init__(self, name, version):
        self.name = name
        self.version = version
        self._handlers = {}
        self._ingresses = {}
        self._prepared = {}
        self._lock = threading.Lock()
        self._initialized = False

    def handler(self, name, check=None, describe="what its extension decides", ignores_work=True, announcements=()):
        """Registers `function(config, event, payload)`, which answers a match or None.

        With `ignores_work=False` it is `function(config, event, payload, work)`, and is asked again when the Work has
        changed. `check(config)` raises InvalidConfig. `announcements` are the Events of the runtime it asks for.
        """

        def register(function):
            self._handlers[name] = _Part(
                function, check, describe, ignores_work=ignores_work, announcements=list(announcements)
            )
            return function

        return register

    def ingress(self, name, check=None, describe="what its extension reads", body_bytes_max=1 << 20):
        """Registers `function(config, request)`, which answers a list of Delivery or raises Refused."""

        def register(function):
            self._ingresses[name] = _Part(function, check, describe, body_bytes_max=body_bytes_max)
            return function

        return register

    def run(self):
        """Serves over standard streams until the daemon closes them. What is printed goes to standard error."""
        source = os.fdopen(os.dup(0), "rb")
        target = os.fdopen(os.dup(1), "wb")
        sys.stdout.flush()
        os.dup2(2, 1)
        self.serve(source, target)
        # Calls that go on have nobody to answer to.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def serve(self, source, target):
        """Answers requests, one a line, until there are no more."""
        for line in iter(source.readline, b""):
            try:
                request = json.loads(line)
            except ValueError:
                self._send(target, None, error=WireError(wire.PARSE, "the line is not JSON"))
                continue
            if not isinstance(request, dict) or not isinstance(request.get("method"), str):
                self._send(target, None, error=WireError(wire.INVALID_REQUEST, "the line is not a request"))
                continue
            if request["method"] == "initialize" or not self._initialized:
                self._answer(target, request)
            elif request["method"] in ("handler.release", "ingress.release"):
                self._answer(target, request)
            else:
                threading.Thread(target=self._answer, args=(target, request), daemon=True).start()

    def _answer(self, target, request):
        result = error = None
        try:
            result = self._result(request["method"], request.get("params") or {})
        except WireError as raised:
            error = raised
        except Exception:  # What a handler raises is its bug, and the process goes on.
            traceback.print_exc(file=sys.stderr)
            error = WireError(wire.INTERNAL, "the extension failed by a bug of its own")
        if request.get("id") is not None:
            self._send(target, request["id"], result, error)

    def _send(self, target, identity, result=None, error=None):
        answer = {"jsonrpc": "2.0", "id": identity}
        if error is None:
            answer["result"] = result
        else:
            answer["error"] = error.body()
        line = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._lock:
            try:
                target.write(line)
                target.flush()
            except OSError:
                pass  # Whoever asked is gone, and the input ends next.

    def _result(self, method, params):
        if method == "initialize" or not self._initialized:
            return self._initialize(method, params)
        if method == "handler.prepare":
            part = self._part(self._handlers, params["handler"])
            return self._prepare(part, params["route"], params["config"], self._route(part, params))
        if method == "ingress.prepare":
            part = self._part(self._ingresses, params["type"])
            return self._prepare(part, params["entry"], params["config"], part.more)
        if method == "handler.decide":
            return {"matched": self._decide(params)}
        if method == "ingress.receive":
            part, config = self._known(params["entry"])
            return {"deliveries": [delivery.body() for delivery in part.function(config, Request(params))]}
        if method in ("handler.release", "ingress.release"):
            with self._lock:
                self._prepared.pop(params.get("route", params.get("entry")), None)
            return None
        raise WireError(wire.METHOD_NOT_FOUND, "there is no such method")

    def _initialize(self, method, params):
        if method != "initialize" or self._initialized:
            raise WireError(wire.NOT_INITIALIZED, "`initialize` comes first, and once")
        if not params["protocol_min"] <= wire.PROTOCOL <= params["protocol_max"]:
            raise WireError(wire.UNSUPPORTED_VERSION, "this extension speaks version %d" % wire.PROTOCOL)
        self._initialized = True
        return {
            "protocol": wire.PROTOCOL,
            "extension": {"name": self.name, "version": self.version},
            "capabilities": {"handlers": list(self._handlers), "ingresses": list(self._ingresses)},
        }

    def _part(self, parts, name):
        if name not in parts:
            raise WireError(wire.UNKNOWN_NAME, "the extension offers nothing of that name")
        return parts[name]

    def _route(self, part, params):
        asked = part.more["announcements"]
        known = [word for word in params["announcements"] if word in asked]
        return {"ignores_work": part.more["ignores_work"], "announcements": known}

    def _prepare(self, part, handle, config, more):
        if part.check is not None:
            part.check(config)
        with self._lock:
            self._prepared[handle] = (part, config)
        describe = part.describe(config) if callable(part.describe) else part.describe
        return dict(more, describe=describe)

    def _known(self, handle):
        with self._lock:
            if handle not in self._prepared:
                raise WireError(wire.UNKNOWN_HANDLE, "nothing was prepared under that handle")
            return self._prepared[handle]

    def _decide(self, params):
        part, config = self._known(params["route"])
        asked = [config, params["event"], json.loads(params["payload"])]
        if not part.more["ignores_work"]:
            asked.append(params.get("work"))
        matched = part.function(*asked)
        return None if matched is None else matched.body()
