"""One step of splitmix64 (Steele, Lea and Flood 2014), with Python's whole numbers."""

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix_by_hand(value: int) -> int:
    value = (value + GOLDEN) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)
