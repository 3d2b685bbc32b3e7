"""How fast a program works, by its own measure: what core/ledger/src/analyze/pace.rs does, whose comments say why."""

from enum import IntEnum
from statistics import median_low

# How many times as long as the proof of the password a gap is; as the answer to a server's greeting; as the usual gap.
FACTORS = (1, 2, 250)
FACTORS_ANSWERS = (64, 128, 16384)
FACTORS_USUAL = (64, 160, 8192)
GAPS_KEPT = 64
GAPS_MIN = 4
RENEWED_EVERY = 8
ENCRYPTION_REQUEST = 8
PROOF_STEP = 3
CHOICE_STEP = 2
PROOF_BYTES = range(80, 256)


class Gap(IntEnum):
    """How long a gap is."""

    SHORT = 0
    SLOW = 1
    WAITING = 2
    PAUSE = 3


class Pace:
    """How fast the program of one connection works."""

    def __init__(self) -> None:
        self.steps = 0
        self.proof_ns = 0
        self.is_greeted = False
        self.answer_ns = 0
        self.gaps: list[int] = []
        self.seen = 0
        self.usual_ns = 0

    def login(self, bytes_sent: int, gap_ns: int) -> None:
        """Takes one more step of the login."""
        if bytes_sent == ENCRYPTION_REQUEST:
            return
        self.steps += 1
        self.is_greeted |= self.steps == 1 and bytes_sent == 0
        if self.is_greeted and self.steps == CHOICE_STEP:
            self.answer_ns = gap_ns
        if self.steps == PROOF_STEP and bytes_sent in PROOF_BYTES:
            self.proof_ns = gap_ns

    def take(self, gap_ns: int) -> None:
        """Takes one more gap between two trips of the program's work."""
        self.gaps[self.seen % GAPS_KEPT : self.seen % GAPS_KEPT + 1] = [gap_ns]
        self.seen += 1
        if self.seen >= GAPS_MIN and (self.seen <= RENEWED_EVERY or self.seen % RENEWED_EVERY == 0):
            self.usual_ns = median_low(self.gaps)

    def compare(self, gap_ns: int) -> Gap:
        """How long a gap is, by all that is known so far."""
        if self.proof_ns:
            return Gap(sum(gap_ns > factor * self.proof_ns for factor in FACTORS))
        # Where gaps are too short to be measured, or not known yet, none is long.
        known = ((self.usual_ns, FACTORS_USUAL), (self.answer_ns, FACTORS_ANSWERS))
        limits = [[factor * unit for factor in factors] for unit, factors in known if unit]
        return Gap(sum(gap_ns > min(some) for some in zip(*limits, strict=True)))
