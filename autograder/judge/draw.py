"""Random inputs of hidden tests, from a seed that belongs to one submission and one test."""

from __future__ import annotations

import hashlib

import torch

_PRIMES = (2, 3, 5, 7, 11, 13)


def derive(seed: int, *names: str) -> int:
    """A seed for what ``names`` names, derived from another: a non-negative 63-bit int."""
    text = "/".join((str(seed), *names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


class Draw:
    """Draws tensors and sizes. The same seed gives the same sequence."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape: int, dtype: torch.dtype = torch.float64, scale: float = 1.0) -> torch.Tensor:
        """Normal numbers of standard deviation ``scale``, of the given shape."""
        return (torch.randn(*shape, generator=self.generator, dtype=torch.float64) * scale).to(dtype)

    def uniform(
        self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float64
    ) -> torch.Tensor:
        """Uniform numbers in [low, high), of the given shape."""
        return (low + (high - low) * torch.rand(*shape, generator=self.generator, dtype=torch.float64)).to(dtype)

    def tokens(self, vocab: int, *shape: int) -> torch.Tensor:
        """Token numbers 0 … vocab-1 as int64, of the given shape."""
        return torch.randint(vocab, shape, generator=self.generator)

    def permutation(self, n: int) -> torch.Tensor:
        """A permutation of n as an int64 (n,) tensor, never the identity for n > 1."""
        while True:
            found = torch.randperm(n, generator=self.generator)
            if n < 2 or not torch.equal(found, torch.arange(n)):
                return found

    def integer(self, low: int, high: int) -> int:
        """An int between low and high, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def primes(self, n: int) -> list[int]:
        """n distinct primes between 2 and 13, shuffled: sizes that cannot be taken for one another."""
        if n > len(_PRIMES):
            raise ValueError(f"there are {len(_PRIMES)} primes between 2 and 13, {n} were asked for")
        order = torch.randperm(len(_PRIMES), generator=self.generator).tolist()
        return [_PRIMES[i] for i in order[:n]]

    def mask(self, T: int, S: int) -> torch.Tensor:
        """A boolean (T, S) mask, True = allowed, that is not causal and has at least one True in every row."""
        allowed = torch.rand(T, S, generator=self.generator) < 0.5  # (T, S)
        allowed[torch.arange(T), torch.randint(S, (T,), generator=self.generator)] = True
        if S > 1 and T > 0:
            allowed[0, S - 1] = True  # the first receiver sees the last source: no causal mask does
        return allowed
