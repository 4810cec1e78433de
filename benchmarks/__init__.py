# SPDX-License-Identifier: BSD-3-Clause
"""Speed, measured beside the memory limit and beside what people use instead; every answer is checked.

``python -m benchmarks``               tables on the terminal, in about two minutes
``python -m benchmarks report``        writes benchmarks/RESULTS.md and benchmarks/encode.svg
``python -m benchmarks compare A B``   two instruction sets, or two git commits, interleaved
``python -m benchmarks.instruction_counts``   the instruction counts that the tests guard
"""
