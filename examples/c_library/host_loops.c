/* SPDX-License-Identifier: BSD-3-Clause
 * What programs in C and C++ compute by loops of their own, by the formulas and in the order that they have. */
#include "host_loops.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_PAIRS = 1024 };

/* Cosines and sines of a token once for all heads, of an angle that grows by a factor in float32. */
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

void loop_of_sherpa_onnx(float* x, int frames, int width, int past) {
  const int half = width / 2;
  const float scale = -logf(10000.0f) / (float)(half - 1);
  for (int frame = 0; frame < frames; ++frame) {
    float* const row = x + (size_t)frame * (size_t)width;
    for (int k = 0; k < half; ++k) {
      const float angle = (float)(frame + 1 + past) * expf((float)k * scale);
      row[k] += sinf(angle);
      row[k + half] += cosf(angle);
    }
  }
}

/* As there, a row of angles, of an axis, and of all axes is an array of its own, before all go into one. */
void loop_of_stable_diffusion_cpp(const float* ids, float* out, int rows, const int* widths, float base) {
  float** const all = (float**)malloc(sizeof(float*) * (size_t)rows);
  const size_t columns = 2 * (size_t)(widths[0] + widths[1] + widths[2]);
  for (int row = 0; row < rows; ++row) all[row] = (float*)calloc(columns, sizeof(float));
  size_t first = 0;
  for (int axis = 0; axis < 3; first += 2 * (size_t)widths[axis], ++axis) {
    const int half = widths[axis] / 2;
    float** const angles = (float**)malloc(sizeof(float*) * (size_t)rows);
    float** const matrices = (float**)malloc(sizeof(float*) * (size_t)rows);
    for (int row = 0; row < rows; ++row) {
      angles[row] = (float*)calloc((size_t)half, sizeof(float));
      matrices[row] = (float*)calloc(4 * (size_t)half, sizeof(float));
    }
    float scales[MOST_PAIRS];
    for (int k = 0; k < half; ++k) scales[k] = 1.0f / powf(base, 2.0f * (float)k / (float)widths[axis]);
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < half; ++k) angles[row][k] = ids[3 * row + axis] * scales[k];
    }
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < half; ++k) {
        matrices[row][4 * k] = cosf(angles[row][k]);
        matrices[row][4 * k + 1] = -sinf(angles[row][k]);
        matrices[row][4 * k + 2] = sinf(angles[row][k]);
        matrices[row][4 * k + 3] = cosf(angles[row][k]);
      }
    }
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < 4 * half; ++k) all[row][first + (size_t)k] = matrices[row][k];
      free(angles[row]);
      free(matrices[row]);
    }
    free(angles);
    free(matrices);
  }
  for (int row = 0; row < rows; ++row) {
    for (size_t k = 0; k < columns; ++k) out[(size_t)row * columns + k] = all[row][k];
    free(all[row]);
  }
  free(all);
}

void table_of_ctranslate2(float* out, int rows, int width) {
  const int half = width / 2;
  float scales[MOST_PAIRS];
  for (int k = 0; k < half; ++k) scales[k] = expf(-logf(10000.0f) / (float)(half - 1) * (float)k);
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < half; ++k) {
      out[(size_t)row * (size_t)width + (size_t)k] = sinf((float)(row + 1) * scales[k]);
      out[(size_t)row * (size_t)width + (size_t)(half + k)] = cosf((float)(row + 1) * scales[k]);
    }
  }
}

/* Its cosines and sines have each column twice, and its output is another array. */
void rotation_of_ctranslate2(const float* restrict x, const float* restrict cosines, const float* restrict sines,
                             float* restrict out, int heads, int tokens, int width) {
  const int half = width / 2;
  for (int row = 0; row < heads * tokens; ++row) {
    const float *from = x + (size_t)row * (size_t)width, *c = cosines + (size_t)(row % tokens) * (size_t)width;
    const float* s = sines + (size_t)(row % tokens) * (size_t)width;
    float* to = out + (size_t)row * (size_t)width;
    for (int k = 0; k < half; ++k) to[k] = from[k] * c[k] - from[k + half] * s[k];
    for (int k = half; k < width; ++k) to[k] = from[k] * c[k] + from[k - half] * s[k];
  }
}
