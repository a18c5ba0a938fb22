"""The internal register bus: requests and their responses, in order."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RegisterBus", "Request", "Response"]

Request = data.StructLayout({
    "addr": 10,  # address of a 32-bit word
    "aligned": 1,  # the bus gave the address of the word; without it the access is an error
    "write": 1,
    "mask": 4,  # bytes to write
    "data": 32,  # `mask` and `data` are valid with `write`; without it they need not stay stable
})
Response = data.StructLayout({"data": 32, "error": 1})


class RegisterBus(wiring.Signature):
    """One response for each request, in the order of the requests.

    The responder answers in bounded time, at the earliest in the cycle after the request. It
    accepts the next request in the cycle of the response at the earliest, and in the cycle after
    it at the latest. The requester always accepts a response.

    Attributes
    ----------
    request : Out, stream of `Request`
    response : In, stream of `Response`; always ready
    """

    def __init__(self):
        super().__init__({
            "request": Out(stream.Signature(Request)),
            "response": In(stream.Signature(Response, always_ready=True)),
        })
