/* SPDX-License-Identifier: BSD-3-Clause
 * The options of fastpe_rotary_create, read out of a GGUF file. Copy this file into your program; it needs no other
 * library. C99, and C++.
 *
 *     gguf_rotary model;
 *     if (!gguf_rotary_read("model.gguf", 0, &model)) fail(model.message);
 *     fastpe_rotary_create(&model.options, &rotary);
 *     gguf_rotary_free(&model);
 *
 * Keys and defaults are those of llama.cpp: load_hparams in src/llama-model.cpp, and src/llama-context.cpp. What would
 * change the rotation and is not read here is refused. */
#ifndef GGUF_ROTARY_H
#define GGUF_ROTARY_H

#include <fastpe/fastpe.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gguf_rotary {
  fastpe_rotary_options options; /* it points to what follows, so do not copy the struct */
  fastpe_scaling scaling;
  double* divisors;
  char message[200]; /* what is wrong; "" if nothing is */
} gguf_rotary;

/* llama_model_rope_type in src/llama-model.cpp: the file does not say which columns are pairs. All layers of these
 * models are rotated alike. */
static const struct gguf_pairing {
  const char* architecture;
  int32_t pairing;
} gguf_pairings[] = {{"llama", FASTPE_PAIRING_INTERLEAVED},     {"granite", FASTPE_PAIRING_INTERLEAVED},
                     {"command-r", FASTPE_PAIRING_INTERLEAVED}, {"internlm2", FASTPE_PAIRING_INTERLEAVED},
                     {"minicpm", FASTPE_PAIRING_INTERLEAVED},   {"qwen2", FASTPE_PAIRING_HALVES},
                     {"qwen2moe", FASTPE_PAIRING_HALVES},       {"qwen3", FASTPE_PAIRING_HALVES},
                     {"qwen3moe", FASTPE_PAIRING_HALVES},       {"gemma", FASTPE_PAIRING_HALVES},
                     {"gemma2", FASTPE_PAIRING_HALVES},         {"falcon", FASTPE_PAIRING_HALVES},
                     {"gptneox", FASTPE_PAIRING_HALVES},        {"stablelm", FASTPE_PAIRING_HALVES},
                     {"starcoder2", FASTPE_PAIRING_HALVES},     {"olmo2", FASTPE_PAIRING_HALVES},
                     {"phi2", FASTPE_PAIRING_HALVES},           {"phi3", FASTPE_PAIRING_HALVES}};

/* Numbers of the file, by their keys without the architecture; the last ones have none. */
enum gguf_key {
  GGUF_HEAD_DIM,
  GGUF_EMBEDDING_LENGTH,
  GGUF_HEAD_COUNT,
  GGUF_CONTEXT_LENGTH,
  GGUF_SLIDING_WINDOW,
  GGUF_ROTARY_DIM,
  GGUF_BASE,
  GGUF_SCALE_LINEAR,
  GGUF_FACTOR,
  GGUF_ORIGINAL_LENGTH,
  GGUF_ATTENTION_FACTOR,
  GGUF_FINETUNED,
  GGUF_BETA_FAST,
  GGUF_BETA_SLOW,
  GGUF_ALIGNMENT,
  GGUF_SPLIT_COUNT,
  GGUF_KEYS
};
static const char* const gguf_keys[] = {"attention.key_length",
                                        "embedding_length",
                                        "attention.head_count",
                                        "context_length",
                                        "attention.sliding_window",
                                        "rope.dimension_count",
                                        "rope.freq_base",
                                        "rope.scale_linear",
                                        "rope.scaling.factor",
                                        "rope.scaling.original_context_length",
                                        "rope.scaling.attn_factor",
                                        "rope.scaling.finetuned",
                                        "rope.scaling.yarn_beta_fast",
                                        "rope.scaling.yarn_beta_slow",
                                        "general.alignment",
                                        "split.count"};
/* Tensors that divide frequencies. */
enum gguf_tensor { GGUF_FREQS, GGUF_SHORT, GGUF_LONG, GGUF_TENSORS };
static const char* const gguf_tensors[] = {"rope_freqs.weight", "rope_factors_short.weight",
                                           "rope_factors_long.weight"};

typedef struct gguf_reader {
  FILE* file;
  gguf_rotary* result;
  char architecture[64], prefix[64], scaling_type[64]; /* prefix: of all keys of numbers */
  double numbers[GGUF_KEYS];
  char has[GGUF_KEYS];
  uint64_t offsets[GGUF_TENSORS], counts[GGUF_TENSORS];
} gguf_reader;

/* The first thing that is wrong is told. Returns 0. */
static int gguf_refuse(gguf_reader* reader, const char* name, const char* what) {
  char* const message = reader->result->message;
  if (message[0] == '\0') snprintf(message, sizeof reader->result->message, "%.100s %s", name, what);
  return 0;
}
static int gguf_is_refused(const gguf_reader* reader) { return reader->result->message[0] != '\0'; }

static void gguf_bytes(gguf_reader* reader, void* to, size_t size) {
  memset(to, 0, size);
  if (!gguf_is_refused(reader) && fread(to, 1, size, reader->file) != size) {
    gguf_refuse(reader, "the file", "ends too early");
  }
}

static uint32_t gguf_u32(gguf_reader* reader) {
  uint32_t value;
  gguf_bytes(reader, &value, sizeof value);
  return value;
}

static uint64_t gguf_u64(gguf_reader* reader) {
  uint64_t value;
  gguf_bytes(reader, &value, sizeof value);
  return value;
}

static void gguf_skip(gguf_reader* reader, uint64_t size) {
  if (gguf_is_refused(reader)) return;
  if (size > LONG_MAX || fseek(reader->file, (long)size, SEEK_CUR) != 0) {
    gguf_refuse(reader, "the file", "has a value that is too long");
  }
}

/* A text, without its end where `size` is too small. */
static void gguf_text(gguf_reader* reader, char* to, size_t size) {
  const uint64_t length = gguf_u64(reader);
  const size_t kept = length < size ? (size_t)length : size - 1;
  gguf_bytes(reader, to, kept);
  to[kept] = '\0';
  gguf_skip(reader, length - kept);
}

enum gguf_type { GGUF_FLOAT32 = 6, GGUF_TEXT = 8, GGUF_LIST = 9, GGUF_TYPES = 13 };
static const size_t gguf_sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static double gguf_number(gguf_reader* reader, uint32_t type) {
  union {
    uint8_t u8;
    int8_t i8;
    uint16_t u16;
    int16_t i16;
    uint32_t u32;
    int32_t i32;
    float f32;
    uint64_t u64;
    int64_t i64;
    double f64;
  } value;
  memset(&value, 0, sizeof value);
  gguf_bytes(reader, &value, gguf_sizes[type]);
  switch (type) {
    case 0:
    case 7: return value.u8;
    case 1: return value.i8;
    case 2: return value.u16;
    case 3: return value.i16;
    case 4: return value.u32;
    case 5: return value.i32;
    case 6: return (double)value.f32;
    case 10: return (double)value.u64;
    case 11: return (double)value.i64;
    default: return value.f64;
  }
}

static void gguf_pass_over(gguf_reader* reader, uint32_t type) {
  char text[1];
  if (type == GGUF_TEXT) {
    gguf_text(reader, text, sizeof text);
  } else if (type == GGUF_LIST) {
    const uint32_t inner = gguf_u32(reader);
    uint64_t count = gguf_u64(reader);
    if (inner < GGUF_TYPES && gguf_sizes[inner] > 0 && count <= LONG_MAX / 8) {
      gguf_skip(reader, count * gguf_sizes[inner]);
    } else if (inner == GGUF_TEXT) {
      for (; count > 0 && !gguf_is_refused(reader); --count) gguf_text(reader, text, sizeof text);
    } else {
      gguf_refuse(reader, "the file", "has a list of an unknown type");
    }
  } else {
    gguf_skip(reader, gguf_sizes[type]);
  }
}

static void gguf_pair(gguf_reader* reader) {
  char key[128];
  gguf_text(reader, key, sizeof key);
  const uint32_t type = gguf_u32(reader);
  if (type >= GGUF_TYPES) gguf_refuse(reader, key, "is of an unknown type");
  if (gguf_is_refused(reader)) return;
  const char* const point = strchr(key, '.');
  const int is_general = !point || strncmp(key, "general.", 8) == 0 || strncmp(key, "split.", 6) == 0;
  const char* const name = is_general ? key : point + 1;
  char* const text = strcmp(name, "general.architecture") == 0 ? reader->architecture
                     : strcmp(name, "rope.scaling.type") == 0  ? reader->scaling_type
                                                               : NULL;
  int known = 0;
  while (known < GGUF_KEYS && strcmp(name, gguf_keys[known]) != 0) ++known;
  if (text && type == GGUF_TEXT) {
    gguf_text(reader, text, sizeof reader->architecture);
  } else if (known < GGUF_KEYS && gguf_sizes[type] > 0) {
    reader->numbers[known] = gguf_number(reader, type);
    reader->has[known] = 1;
  } else if (text || known < GGUF_KEYS) {
    gguf_refuse(reader, key, "is of another type than expected, such as a list of one value for each layer");
  } else if (strncmp(name, "rope.", 5) == 0) {
    gguf_refuse(reader, key, "is not known, and may change the rotation");
  } else {
    gguf_pass_over(reader, type);
    return;
  }
  if (is_general) return;
  const size_t length = (size_t)(point - key);
  if (length >= sizeof reader->prefix || (reader->prefix[0] != '\0' && strncmp(reader->prefix, key, length + 1) != 0)) {
    gguf_refuse(reader, key, "belongs to another architecture than the keys before it");
  } else {
    memcpy(reader->prefix, key, length + 1); /* with the point */
  }
}

static void gguf_tensor_info(gguf_reader* reader) {
  char name[128];
  gguf_text(reader, name, sizeof name);
  uint64_t count = 1;
  for (uint32_t axes = gguf_u32(reader); axes > 0 && !gguf_is_refused(reader); --axes) count *= gguf_u64(reader);
  const uint32_t type = gguf_u32(reader);
  const uint64_t offset = gguf_u64(reader);
  if (strncmp(name, "rope_", 5) != 0) return;
  int known = 0;
  while (known < GGUF_TENSORS && strcmp(name, gguf_tensors[known]) != 0) ++known;
  if (known == GGUF_TENSORS) {
    gguf_refuse(reader, name, "is not known, and may change the rotation");
  } else if (type != 0 || count == 0 || count > 4096) {
    gguf_refuse(reader, name, "is not a short list of float32");
  } else {
    reader->offsets[known] = offset;
    reader->counts[known] = count;
  }
}

/* What an option or a place in the file can be; else -1, which is refused. */
static int64_t gguf_integer(double number) { return number >= 0.0 && number <= 1e15 ? (int64_t)number : -1; }

/* Frequencies are divided by a tensor's numbers times `factor`, which are exact as doubles. */
static int gguf_divide(gguf_reader* reader, int tensor, double factor) {
  gguf_rotary* const result = reader->result;
  const int64_t step = reader->has[GGUF_ALIGNMENT] ? gguf_integer(reader->numbers[GGUF_ALIGNMENT]) : 32;
  const long end = ftell(reader->file);
  if (step < 1 || end < 0) return gguf_refuse(reader, "general.alignment", "is not a positive number");
  const uint64_t start = (uint64_t)((end + step - 1) / step * step);
  if (start > LONG_MAX || reader->offsets[tensor] > LONG_MAX - start ||
      fseek(reader->file, (long)(start + reader->offsets[tensor]), SEEK_SET) != 0) {
    return gguf_refuse(reader, gguf_tensors[tensor], "is out of reach");
  }
  const size_t count = (size_t)reader->counts[tensor];
  result->divisors = (double*)malloc(count * sizeof(double));
  if (!result->divisors) return gguf_refuse(reader, gguf_tensors[tensor], "does not fit into memory");
  for (size_t k = 0; k < count; ++k) result->divisors[k] = factor * gguf_number(reader, GGUF_FLOAT32);
  result->scaling.type = FASTPE_SCALING_DIVISORS;
  result->scaling.divisors = result->divisors;
  result->scaling.divisor_count = (int64_t)count;
  result->options.scaling = &result->scaling;
  return 1;
}

static int gguf_scale(gguf_reader* reader, int64_t context_length) {
  gguf_rotary* const result = reader->result;
  const double* const numbers = reader->numbers;
  const char* const type = reader->scaling_type[0] != '\0' ? reader->scaling_type : "linear";
  const int is_yarn = strcmp(type, "yarn") == 0, is_longrope = strcmp(type, "longrope") == 0;
  const int is_none = strcmp(type, "none") == 0;
  if (!is_yarn && !is_longrope && !is_none && strcmp(type, "linear") != 0) {
    return gguf_refuse(reader, "rope.scaling.type", "is not known");
  }
  double factor = reader->has[GGUF_FACTOR] ? numbers[GGUF_FACTOR] : numbers[GGUF_SCALE_LINEAR];
  if (is_none || factor == 0.0) factor = 1.0;
  const double trained = numbers[numbers[GGUF_ORIGINAL_LENGTH] != 0.0 ? GGUF_ORIGINAL_LENGTH : GGUF_CONTEXT_LENGTH];
  if (reader->has[GGUF_ATTENTION_FACTOR]) {
    result->options.attention_factor = numbers[GGUF_ATTENTION_FACTOR];
    if (is_yarn && numbers[GGUF_ATTENTION_FACTOR] == 1.0)
      result->options.attention_factor = 0.0; /* that of yarn */
    else if (is_yarn)
      gguf_refuse(reader, "rope.scaling.attn_factor", "with yarn: versions of llama.cpp differ");
    else if (numbers[GGUF_ATTENTION_FACTOR] == 0.0)
      gguf_refuse(reader, "rope.scaling.attn_factor", "is 0");
  }
  if ((reader->has[GGUF_BETA_FAST] && numbers[GGUF_BETA_FAST] != 32.0) ||
      (reader->has[GGUF_BETA_SLOW] && numbers[GGUF_BETA_SLOW] != 1.0)) {
    gguf_refuse(reader, "rope.scaling.yarn_beta_fast, _slow", "are not 32 and 1: most of llama.cpp does not read them");
  }
  if (numbers[GGUF_SPLIT_COUNT] > 1.0 && !reader->counts[GGUF_FREQS] && !reader->counts[GGUF_SHORT]) {
    return gguf_refuse(reader, "split.count", "is above 1: tensors of another file may divide frequencies");
  }
  const int has_freqs = reader->counts[GGUF_FREQS] > 0;
  const int has_factors = reader->counts[GGUF_SHORT] > 0 && reader->counts[GGUF_LONG] > 0;
  if (has_factors ? has_freqs || !(is_longrope || strcmp(reader->architecture, "phi3") == 0)
                  : is_longrope || reader->counts[GGUF_SHORT] > 0 || reader->counts[GGUF_LONG] > 0) {
    return gguf_refuse(reader, "rope.scaling.type", "does not fit the tensors that divide frequencies");
  }
  if (is_yarn && (has_freqs || has_factors)) return gguf_refuse(reader, "yarn", "with tensors that divide frequencies");
  if (has_freqs) return gguf_divide(reader, GGUF_FREQS, factor);
  if (has_factors) {
    const double length = context_length > 0 ? (double)context_length : numbers[GGUF_CONTEXT_LENGTH];
    return gguf_divide(reader, length > trained ? GGUF_LONG : GGUF_SHORT, factor);
  }
  if (factor == 1.0) return 1;
  if (reader->has[GGUF_SLIDING_WINDOW] && strcmp(reader->architecture, "olmo2") == 0) {
    return gguf_refuse(reader, "olmo2.attention.sliding_window", "means layers that are not scaled");
  }
  result->scaling.type = is_yarn ? FASTPE_SCALING_YARN : FASTPE_SCALING_LINEAR;
  result->scaling.factor = factor;
  if (is_yarn) result->scaling.original_max_position_embeddings = gguf_integer(trained);
  result->options.scaling = &result->scaling;
  return 1;
}

static int gguf_set_options(gguf_reader* reader, int64_t context_length) {
  fastpe_rotary_options* const options = &reader->result->options;
  const double* const numbers = reader->numbers;
  const size_t length = strlen(reader->architecture);
  for (size_t i = 0; i < sizeof gguf_pairings / sizeof *gguf_pairings; ++i) {
    if (strcmp(reader->architecture, gguf_pairings[i].architecture) == 0) options->pairing = gguf_pairings[i].pairing;
  }
  if (options->pairing == 0) return gguf_refuse(reader, reader->architecture, "is an architecture of unknown pairing");
  if (strncmp(reader->prefix, reader->architecture, length) != 0 || reader->prefix[length] != '.') {
    return gguf_refuse(reader, reader->prefix, "is not the architecture");
  }
  if (reader->has[GGUF_FINETUNED] && numbers[GGUF_FINETUNED] == 0.0 && strcmp(reader->architecture, "granite") == 0) {
    return gguf_refuse(reader, "granite.rope.scaling.finetuned", "is false: nothing is rotated");
  }
  const double heads = numbers[GGUF_HEAD_COUNT], shared = heads >= 1.0 ? numbers[GGUF_EMBEDDING_LENGTH] / heads : 0.0;
  options->head_dim = gguf_integer(reader->has[GGUF_HEAD_DIM] ? numbers[GGUF_HEAD_DIM] : shared);
  options->rotary_dim = reader->has[GGUF_ROTARY_DIM] ? gguf_integer(numbers[GGUF_ROTARY_DIM]) : options->head_dim;
  options->base = reader->has[GGUF_BASE] ? numbers[GGUF_BASE] : 10000.0;
  return gguf_scale(reader, context_length);
}

static void gguf_rotary_free(gguf_rotary* result) {
  free(result->divisors);
  result->divisors = NULL;
}

/* Returns 1, or 0 with a message. `context_length` is that of the sequences, which decides between short and long
 * factors; 0 stands for the file's. */
static int gguf_rotary_read(const char* path, int64_t context_length, gguf_rotary* result) {
  gguf_reader reader;
  memset(&reader, 0, sizeof reader);
  memset(result, 0, sizeof *result);
  reader.result = result;
  reader.file = fopen(path, "rb");
  if (!reader.file) {
    gguf_refuse(&reader, path, "cannot be opened");
    return 0;
  }
  char magic[4];
  gguf_bytes(&reader, magic, 4);
  const uint32_t version = gguf_u32(&reader);
  if (memcmp(magic, "GGUF", 4) != 0 || version < 2 || version > 3) {
    gguf_refuse(&reader, path, "is not a GGUF file of version 2 or 3 in this machine's byte order");
  }
  const uint64_t tensors = gguf_u64(&reader), pairs = gguf_u64(&reader);
  for (uint64_t i = 0; i < pairs && !gguf_is_refused(&reader); ++i) gguf_pair(&reader);
  for (uint64_t i = 0; i < tensors && !gguf_is_refused(&reader); ++i) gguf_tensor_info(&reader);
  if (!gguf_is_refused(&reader)) gguf_set_options(&reader, context_length);
  fclose(reader.file);
  if (gguf_is_refused(&reader)) gguf_rotary_free(result);
  return !gguf_is_refused(&reader);
}

#endif /* GGUF_ROTARY_H */
