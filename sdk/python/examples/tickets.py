#!/usr/bin/env python3
"""Tickets of a help desk: an ingress that takes them, and a handler that gives each a Work of its own.

    [[extensions]]
    name = "tickets"
    command = ["python3", "/path/to/sdk/python/examples/tickets.py"]

    [[scopes.extensions]]
    name = "desk"
    type = "tickets"
    secret_names = ["desk"]
    config = { namespace = "desk" }

    [[scopes.routes]]
    name = "urgent"
    handler = "tickets"
    binding = "answer"
    config = { at_least = 3 }
"""

import hashlib
import hmac
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from open_conduit import Attach, Delivery, Drop, Extension, InvalidConfig, Refused  # noqa: E402

extension = Extension("tickets", "1.0")


def check_route(config):
    """The one key is a number."""
    if not isinstance(config.get("at_least"), int):
        raise InvalidConfig(("at_least", "must be a number: the least urgency that is taken"))


@extension.handler("tickets", check=check_route, describe=lambda config: "tickets of urgency %d" % config["at_least"])
def decide(config, event, payload):
    """An urgent ticket is Work, and all that is said about it is that Work's input."""
    if event["type"] != "ticket.changed":
        return None
    if payload["urgency"] < config["at_least"]:
        return Drop("not_urgent", "the ticket can wait")
    return Attach([("tickets", str(payload["ticket"]))], kind="tickets.ticket")


@extension.ingress("tickets", describe="tickets of the help desk")
def receive(config, request):
    """The desk signs the raw body with HMAC-SHA-256."""
    expected = hmac.new(request.secret("desk").encode(), request.body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(request.header("x-desk-signature") or "", expected):
        raise Refused("unauthorized")
    try:
        change = json.loads(request.body)
        identity = str(change["change"])
        ticket = str(change["ticket"])
    except (ValueError, KeyError, TypeError):
        raise Refused("malformed", "the body names no change and no ticket") from None
    print("change %s of ticket %s" % (identity, ticket))
    payload = request.body.decode("utf-8")
    return [Delivery(identity, "ticket.changed", payload, key=("tickets", ticket))]


if __name__ == "__main__":
    extension.run()
