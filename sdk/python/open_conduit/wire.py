"""What travels: the answers of an extension, and the errors it may raise."""

import json

PROTOCOL = 1

PARSE = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
UNSUPPORTED_VERSION = -32001
NOT_INITIALIZED = -32002
UNKNOWN_NAME = -32003
UNKNOWN_HANDLE = -32004
INVALID_CONFIG = -32005
NOT_DECIDED = -32006
REFUSED = -32007


class WireError(Exception):
    """An error as it travels."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def body(self):
        """The error as JSON has it."""
        body = {"code": self.code, "message": self.message}
        if self.data is not None:
            body["data"] = self.data
        return body


class InvalidConfig(WireError):
    """A configuration is refused: pairs of a path below `config` and what is wrong there."""

    def __init__(self, *problems):
        problems = [{"path": path, "message": message} for path, message in problems]
        super().__init__(INVALID_CONFIG, "the configuration is refused", {"problems": problems})


class NotDecided(WireError):
    """A handler could not decide. `extension_unavailable` holds the Event; any other word counts as a try."""

    def __init__(self, word, message):
        super().__init__(NOT_DECIDED, message, {"reason": word})


class Refused(WireError):
    """A request is refused: `not_found`, `unauthorized`, `malformed` or `unavailable`."""

    def __init__(self, refusal, message=""):
        super().__init__(REFUSED, message, {"refusal": refusal})


def _keys(keys):
    return [{"source": source, "external_id": external_id} for source, external_id in keys]


class Attach:
    """The Work that owns these keys, made when none does. A key is a pair of source and external id."""

    def __init__(self, keys, kind, lifecycle="standing", concurrency=None, reopens=()):
        self._body = {"match": "attach", "keys": _keys(keys), "kind": kind, "lifecycle": lifecycle}
        if concurrency is not None:
            self._body["concurrency"] = concurrency
        if reopens:
            self._body["reopens"] = list(reopens)

    def body(self):
        """The answer as JSON has it."""
        return self._body


class Fresh:
    """A new Work for this Event alone."""

    def __init__(self, kind, lifecycle="run_once", keys=(), concurrency=None):
        self._body = {"match": "fresh", "kind": kind, "lifecycle": lifecycle, "keys": _keys(keys)}
        if concurrency is not None:
            self._body["concurrency"] = concurrency

    def body(self):
        """The answer as JSON has it."""
        return self._body


class Addressed:
    """The Work that the Event is addressed to."""

    def body(self):
        """The answer as JSON has it."""
        return {"match": "addressed"}


class Drop:
    """Nothing: the Event is recorded as dropped."""

    def __init__(self, code, reason):
        self._body = {"match": "drop", "code": code, "reason": reason}

    def body(self):
        """The answer as JSON has it."""
        return self._body


class Delivery:
    """One delivery of an ingress. The payload is JSON text, or a value that becomes it."""

    def __init__(self, delivery_id, event_type, payload, key=None, occurred_at=None, drop=None):
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
        self._body = {"delivery_id": delivery_id, "type": event_type, "payload": text}
        if key is not None:
            self._body["key"] = _keys([key])[0]
        if occurred_at is not None:
            self._body["occurred_at"] = occurred_at
        if drop is not None:
            self._body["drop"] = {"code": drop[0], "reason": drop[1]}

    def body(self):
        """The delivery as JSON has it."""
        return self._body
