"""Products of a simulated Weft core: as commands on one stream, and results from another."""

import numpy as np
from weft_packing import A, B, job, load, pack, unpack


class CommandStream:
    """Sends jobs with their operands; a subclass gives ``send`` and ``receive``."""

    async def send(self, data):
        """Send bytes on the command stream."""
        raise NotImplementedError

    async def receive(self):
        """The result bytes of the next job, its tag and its status."""
        raise NotImplementedError

    async def multiply(self, a, b, tag):
        """The product of A[m, k] and B[k, n], computed by the core."""
        (m, k), n = a.shape, b.shape[1]
        loads = load(A, m, k) + pack(a, A) + load(B, n, k)
        await self.send(loads + pack(np.ascontiguousarray(b.T), B) + job(m, n, k, tag))
        data, *ended = await self.receive()
        assert ended == [tag, 0]
        return unpack(data, m, n)

    async def reject(self, tag):
        """Send a job with M, K and N of 0, which the core rejects: its tag and status."""
        await self.send(job(0, 0, 0, tag))
        return (await self.receive())[1:]
