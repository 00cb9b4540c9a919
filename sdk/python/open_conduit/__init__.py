"""Extensions of Open Conduit in Python: handlers and ingress, served over standard streams."""

from .extension import Extension, Request
from .wire import Addressed, Attach, Delivery, Drop, Fresh, InvalidConfig, NotDecided, Refused

__all__ = [
    "Addressed",
    "Attach",
    "Delivery",
    "Drop",
    "Extension",
    "Fresh",
    "InvalidConfig",
    "NotDecided",
    "Refused",
    "Request",
]
