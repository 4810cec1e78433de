/* SPDX-License-Identifier: BSD-3-Clause
 * The loop of a host in the style of ggml: cosines and sines of a token once for all heads, of an angle that grows by a
 * factor in float32; neighbours are pairs. Heads of a token lie side by side, `columns` of its floats further on than
 * those of the token before. */
#include <math.h>
#include <stddef.h>

enum { MOST_PAIRS = 256 };

void host_loop(const float* restrict x, float* restrict out, int tokens, int heads, int head_dim, int columns,
               float base, int past) {
  float cosines[MOST_PAIRS], sines[MOST_PAIRS];
  const int pairs = head_dim / 2;
  const float step = powf(base, -2.0f / (float)head_dim);
  for (int token = 0; token < tokens; ++token) {
    float angle = (float)(past + token);
    for (int k = 0; k < pairs; ++k, angle *= step) {
      cosines[k] = cosf(angle);
      sines[k] = sinf(angle);
    }
    for (int head = 0; head < heads; ++head) {
      const float* from = x + (size_t)token * (size_t)columns + (size_t)head * (size_t)head_dim;
      float* to = out + ((size_t)token * (size_t)heads + (size_t)head) * (size_t)head_dim;
      for (int k = 0; k < pairs; ++k) {
        to[2 * k] = from[2 * k] * cosines[k] - from[2 * k + 1] * sines[k];
        to[2 * k + 1] = from[2 * k] * sines[k] + from[2 * k + 1] * cosines[k];
      }
    }
  }
}
