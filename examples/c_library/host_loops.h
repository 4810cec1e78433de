/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_LOOPS_H
#define HOST_LOOPS_H

#include <stddef.h>

/* A rotation in the style of ggml, of neighbours. Heads of a token lie side by side, `columns` floats further on than
 * those of the token before. */
void host_loop(const float* x, float* out, int tokens, int heads, int head_dim, int columns, float base, int past);

/* Adds to x [frames, width]; frames count from 1. */
void loop_of_sherpa_onnx(float* x, int frames, int width, int past);

/* Matrices [rows, pairs, 2, 2] of three coordinates `ids` [rows, 3], as Flux has them. */
void loop_of_stable_diffusion_cpp(const float* ids, float* out, int rows, const int* widths, float base);

void table_of_ctranslate2(float* out, int rows, int width);
void rotation_of_ctranslate2(const float* x, const float* cosines, const float* sines, float* out, int heads,
                             int tokens, int width);

#endif
