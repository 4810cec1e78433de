# SPDX-License-Identifier: BSD-3-Clause
"""Speed, measured beside the memory limit and beside what people use instead; every answer is checked.

``python -m benchmarks``               tables on the terminal, in about two minutes
``python -m benchmarks bars``          only what the bars need, in half a minute
``python -m benchmarks report``        writes benchmarks/RESULTS.md and benchmarks/encode.svg
``python -m benchmarks compare A B``   two instruction sets, or two git commits, interleaved
``python -m benchmarks.instruction_counts``   the instruction counts that the tests guard

Needs ``pip install '.[bench]'``; torch and JAX take part where they are installed. A C compiler gives native memory limits.
A comparison's side may also be a source directory: ``compare HEAD .`` shows what uncommitted changes do. The variables
FASTPE_ISA and FASTPE_NUM_THREADS hold for a whole run; peers get as many threads as fastpe. Needs 3 GB of memory.
"""
