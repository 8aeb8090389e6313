"""Writes ../sobol.bin: the free choices in the direction numbers of TensorFlow's Sobol points, as SobolSample shows them.

Dimension d (from the second on) belongs to the primitive polynomial number d - 1, counted by degree and then by value. Of a
polynomial of degree s the first s numbers are free: odd, the i-th below 2^i. The file holds them one after the other without
their last bit, i - 1 bits each, low bits first.
"""

import pathlib

import numpy as np
import tensorflow as tf

DEGREE = 13  # the largest
DIMENSIONS = 1111  # up to it


def is_primitive(polynomial, degree):
    value, order = 2 if degree > 1 else 1, 1
    while value != 1:
        value <<= 1
        if value >> degree & 1:
            value ^= polynomial
        order += 1
    return order == (1 << degree) - 1


def polynomials():
    for degree in range(1, DEGREE + 1):
        for middle in range(1 << (degree - 1)):
            polynomial = 1 << degree | middle << 1 | 1
            if is_primitive(polynomial, degree):
                yield degree, polynomial


count = 1 << (DEGREE + 2)
points = tf.raw_ops.SobolSample(dim=DIMENSIONS, num_results=count, skip=0, dtype=tf.float64).numpy()
integers = np.concatenate([np.zeros((1, DIMENSIONS), np.int64), (points * 2.0**31).astype(np.int64)])
found = list(polynomials())
assert len(found) + 1 == DIMENSIONS, len(found)
bits = []
for dimension, (degree, polynomial) in enumerate(found, 1):
    numbers = []
    for k in range(DEGREE + 2):
        at = (1 << k) - 1  # here the next point differs by direction k
        direction = int(integers[at + 1, dimension] ^ integers[at, dimension])
        numbers.append(direction >> (30 - k))
    for k in range(degree, len(numbers)):
        number = numbers[k - degree] << degree ^ numbers[k - degree]
        for i in range(1, degree):
            number ^= (polynomial >> (degree - i) & 1) * numbers[k - i] << i
        assert number == numbers[k], (dimension, k)
    for i, number in enumerate(numbers[:degree]):
        assert number & 1 and number < 2 << i
        bits += [number >> (1 + bit) & 1 for bit in range(i)]
packed = np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()
(pathlib.Path(__file__).parent.parent / "sobol.bin").write_bytes(packed)
print(len(packed), "bytes")
