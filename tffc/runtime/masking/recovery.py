"""Secrets from the shares that participants reveal, and who revealed wrong ones.

Of the shares, the first `threshold` are combined and the result is checked.  If it is wrong, each
share is compared with the commitment of the participant that dealt it, and the right ones are
combined.  So a wrong share costs nothing as long as `threshold` right ones are left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from tffc.runtime.masking.commitments import (
    BOTH,
    SECRETS,
    SEED,
    SEEDS,
    commit_to_seed,
    commit_to_share,
    of_kind,
)
from tffc.runtime.masking.keys import BYTES, Agreement
from tffc.runtime.masking.shamir import PRIME, combine, weights
from tffc.runtime.masking.terms import Revealed
from tffc.support.errors import ExecutionError


class Recovery:
    """Combines the `revealed` shares, at the point of each holder.

    `dealt` has what each dealer sent about the shares of each holder, which ends with commitments.
    `wrong` has the participants whose shares were wrong so far.
    """

    def __init__(
        self,
        digest: bytes,
        threshold: int,
        points: Mapping[str, int],
        revealed: Mapping[str, Revealed],
        dealt: Mapping[str, Mapping[str, bytes]],
    ) -> None:
        self._digest = digest
        self._threshold = threshold
        self._points = points
        self._revealed = revealed
        self._dealt = dealt
        self._weights: dict[tuple[str, ...], list[int]] = {}
        self.wrong: set[str] = set()

    def seed(self, dealer: str) -> bytes:
        """Return a survivor's seed.

        Raises:
          ExecutionError: too few shares are right, or the dealer's commitments are not.
        """
        committed = self._dealt[dealer][dealer][:SEED]

        def is_right(secret: bytes) -> bool:
            return commit_to_seed(self._digest, dealer, secret) == committed

        return self._secret(dealer, SEEDS, is_right)

    def agreement(self, dealer: str, public: bytes) -> Agreement:
        """Return the masking keys of a participant that dropped out; raises as `seed` does."""
        secret = self._secret(dealer, SECRETS, lambda secret: Agreement(secret).public == public)
        return Agreement(secret)

    def _secret(self, dealer: str, kind: str, is_right: Callable[[bytes], bool]) -> bytes:
        # Those who gave a wrong share before come last.
        holders = sorted(self._revealed, key=lambda holder: holder in self.wrong)
        secret = self._combined(holders, dealer, kind)
        if is_right(secret):
            return secret
        right = [value for value in self._revealed if self._fits(value, dealer, kind)]
        wrong = self._revealed.keys() - set(right)
        self.wrong |= wrong
        if len(right) < self._threshold:
            raise _refusal(dealer, wrong)
        secret = self._combined(right, dealer, kind)
        if not is_right(secret):
            # It dealt shares, and committed to them, that do not give back what it committed to.
            self.wrong.add(dealer)
            raise _refusal(dealer, (dealer,))
        return secret

    def _combined(self, holders: Collection[str], dealer: str, kind: str) -> bytes:
        first = tuple(sorted(list(holders)[: self._threshold]))
        if first not in self._weights:
            self._weights[first] = weights([self._points[holder] for holder in first])
        shares = (getattr(self._revealed[holder], kind)[dealer] for holder in first)
        # A secret has 32 bytes, and wrong shares can yield a number beyond them.
        return (combine(shares, self._weights[first]) % 256**BYTES).to_bytes(BYTES, "little")

    def _fits(self, holder: str, dealer: str, kind: str) -> bool:
        share = getattr(self._revealed[holder], kind)[dealer]
        if not 0 <= share < PRIME:
            return False
        committed = of_kind(self._dealt[dealer][holder][-BOTH:], kind)
        return commit_to_share(self._digest, dealer, holder, kind, share) == committed


def _refusal(dealer: str, wrong: Collection[str]) -> ExecutionError:
    return ExecutionError(
        "E860",
        f"the shares of {dealer} do not give back its secret: wrong shares are from "
        + ", ".join(sorted(wrong)),
        help="leave these participants out",
    )
