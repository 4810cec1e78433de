/* SPDX-License-Identifier: BSD-3-Clause
 * The options of fastpe_rotary_create from the metadata of a GGUF file, and the tables of one position by them.
 *
 *     gguf MODEL.gguf POSITION
 */
#include <fastpe/fastpe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of llama.cpp, src/llama-model.cpp, llama_model_rope_type: the file does not say which columns are pairs. */
static const struct {
  const char* architecture;
  enum { HALVES = FASTPE_PAIRING_HALVES, INTERLEAVED = FASTPE_PAIRING_INTERLEAVED } pairing;
} PAIRINGS[] = {{"llama", INTERLEAVED}, {"granite", INTERLEAVED}, {"command-r", INTERLEAVED},
                {"qwen2", HALVES},      {"qwen3", HALVES},        {"gemma", HALVES},
                {"gemma2", HALVES},     {"falcon", HALVES},       {"olmo2", HALVES}};

/* Numbers of the file as doubles; 0 where it has none. */
typedef struct {
  char architecture[64], scaling_type[64];
  double head_dim, embedding_length, head_count, context_length, rotary_dim, base;
  double factor, original_length, attention_factor, beta_fast, beta_slow, alignment;
  double* divisors; /* of the tensor rope_freqs.weight, or NULL */
  int64_t divisor_count;
} metadata;

static void fail(const char* what) {
  fprintf(stderr, "gguf: %s\n", what);
  exit(1);
}

static void read_bytes(FILE* file, void* to, size_t size) {
  if (fread(to, 1, size, file) != size) fail("the file ends too early");
}

static uint32_t read_u32(FILE* file) {
  uint32_t value;
  read_bytes(file, &value, sizeof value);
  return value;
}

static uint64_t read_u64(FILE* file) {
  uint64_t value;
  read_bytes(file, &value, sizeof value);
  return value;
}

static void skip(FILE* file, uint64_t size) {
  if (size > INT32_MAX || fseek(file, (long)size, SEEK_CUR) != 0) fail("a value is too long");
}

/* A text, without its end where `size` is too small. */
static void read_text(FILE* file, char* to, size_t size) {
  const uint64_t length = read_u64(file);
  const size_t kept = length < size ? (size_t)length : size - 1;
  read_bytes(file, to, kept);
  to[kept] = '\0';
  skip(file, length - kept);
}

static double read_number(FILE* file, uint32_t type) {
  static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
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
  read_bytes(file, &value, sizes[type]);
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

static void read_value(FILE* file, uint32_t type, const char* key, metadata* to) {
  enum { TEXT = 8, LIST = 9, LAST = 12 };
  char text[64];
  if (type > LAST) fail("a value is of an unknown type");
  if (type == LIST) {
    const uint32_t inner = read_u32(file);
    if (inner == LIST) fail("a list of lists");
    for (uint64_t count = read_u64(file); count > 0; --count) read_value(file, inner, "", to);
    return;
  }
  if (type == TEXT) {
    read_text(file, text, sizeof text);
    if (strcmp(key, "general.architecture") == 0) strcpy(to->architecture, text);
    if (strstr(key, ".rope.scaling.type")) strcpy(to->scaling_type, text);
    return;
  }
  const struct {
    const char* name;
    double* number;
  } known[] = {{"general.alignment", &to->alignment},
               {".attention.key_length", &to->head_dim},
               {".embedding_length", &to->embedding_length},
               {".attention.head_count", &to->head_count},
               {".context_length", &to->context_length},
               {".rope.dimension_count", &to->rotary_dim},
               {".rope.freq_base", &to->base},
               {".rope.scaling.factor", &to->factor},
               {".rope.scaling.original_context_length", &to->original_length},
               {".rope.scaling.attn_factor", &to->attention_factor},
               {".rope.scaling.yarn_beta_fast", &to->beta_fast},
               {".rope.scaling.yarn_beta_slow", &to->beta_slow}};
  const double number = read_number(file, type);
  const char* name = strncmp(key, "general.", 8) == 0 ? key : strchr(key, '.');
  for (size_t i = 0; name && i < sizeof known / sizeof *known; ++i) {
    if (strcmp(name, known[i].name) == 0) *known[i].number = number;
  }
}

static metadata read_file(const char* path) {
  metadata result;
  memset(&result, 0, sizeof result);
  result.alignment = 32;
  FILE* file = fopen(path, "rb");
  if (!file) fail("the file cannot be opened");
  char magic[4], name[128];
  read_bytes(file, magic, 4);
  const uint32_t version = read_u32(file);
  if (memcmp(magic, "GGUF", 4) != 0 || version < 2 || version > 3) fail("no GGUF file of version 2 or 3");
  const uint64_t tensors = read_u64(file), values = read_u64(file);
  for (uint64_t i = 0; i < values; ++i) {
    read_text(file, name, sizeof name);
    read_value(file, read_u32(file), name, &result);
  }
  uint64_t offset = 0;
  for (uint64_t i = 0; i < tensors; ++i) {
    read_text(file, name, sizeof name);
    uint64_t count = 1;
    for (uint32_t axes = read_u32(file); axes > 0; --axes) count *= read_u64(file);
    const uint32_t type = read_u32(file);
    const uint64_t at = read_u64(file);
    if (strcmp(name, "rope_freqs.weight") == 0) {
      if (type != 0 || count == 0 || count > 4096) fail("rope_freqs.weight is not a short list of float32");
      result.divisor_count = (int64_t)count;
      offset = at;
    } else if (strncmp(name, "rope_factors_", 13) == 0) {
      fail("factors for short and long texts: see FASTPE_SCALING_LONGROPE");
    }
  }
  if (result.divisor_count > 0) {
    const long step = (long)result.alignment, end = ftell(file);
    if (step < 1 || fseek(file, (end + step - 1) / step * step + (long)offset, SEEK_SET) != 0) fail("no data");
    result.divisors = (double*)malloc(sizeof(double) * (size_t)result.divisor_count);
    for (int64_t k = 0; k < result.divisor_count; ++k) result.divisors[k] = read_number(file, 6);
  }
  fclose(file);
  return result;
}

static fastpe_rotary* rotary_of(metadata* file, fastpe_rotary_options* options) {
  fastpe_scaling scaling = FASTPE_ZERO;
  for (size_t i = 0; i < sizeof PAIRINGS / sizeof *PAIRINGS; ++i) {
    if (strcmp(file->architecture, PAIRINGS[i].architecture) == 0) options->pairing = PAIRINGS[i].pairing;
  }
  if (options->pairing == 0) fail("an architecture whose pairing this reader does not know");
  const double shared = file->head_count > 0 ? file->embedding_length / file->head_count : 0;
  options->head_dim = (int64_t)(file->head_dim > 0 ? file->head_dim : shared);
  options->rotary_dim = file->rotary_dim > 0 ? (int64_t)file->rotary_dim : options->head_dim;
  options->base = file->base > 0 ? file->base : 10000.0;
  const int is_yarn = strcmp(file->scaling_type, "yarn") == 0;
  if (is_yarn || strcmp(file->scaling_type, "linear") == 0) {
    scaling.type = is_yarn ? FASTPE_SCALING_YARN : FASTPE_SCALING_LINEAR;
    scaling.factor = file->factor;
    if (is_yarn) {
      const double trained = file->original_length > 0 ? file->original_length : file->context_length;
      scaling.original_max_position_embeddings = (int64_t)trained;
      scaling.beta_fast = file->beta_fast;
      scaling.beta_slow = file->beta_slow;
    }
    options->scaling = &scaling;
  } else if (file->scaling_type[0] != '\0' && strcmp(file->scaling_type, "none") != 0) {
    fail("a type of scaling that this reader does not know");
  }
  if (file->attention_factor != 0 && file->attention_factor != 1) fail("an attn_factor other than 1");
  if (file->divisors) { /* as of Llama 3.1 */
    if (options->scaling) fail("rope_freqs.weight and a scaling");
    scaling.type = FASTPE_SCALING_DIVISORS;
    scaling.divisors = file->divisors;
    scaling.divisor_count = file->divisor_count;
    options->scaling = &scaling;
  }
  fastpe_rotary* rotary = NULL;
  if (fastpe_rotary_create(options, &rotary) != FASTPE_OK) fail(fastpe_error_message());
  return rotary;
}

int main(int count, char** arguments) {
  if (count != 3) fail("usage: gguf MODEL.gguf POSITION");
  metadata file = read_file(arguments[1]);
  fastpe_rotary_options options = FASTPE_ZERO;
  fastpe_rotary* rotary = rotary_of(&file, &options);
  free(file.divisors); /* the handle has numbers of its own */

  const int64_t shape[] = {1, options.rotary_dim / 2};
  double* tables = (double*)malloc(2 * sizeof(double) * (size_t)shape[1]);
  const fastpe_array cos = {tables, shape, NULL, 2, FASTPE_FLOAT64};
  const fastpe_array sin = {tables + shape[1], shape, NULL, 2, FASTPE_FLOAT64};
  fastpe_rows rows = FASTPE_ZERO;
  rows.offset = strtoll(arguments[2], NULL, 10);
  if (fastpe_tables(rotary, FASTPE_TABLES_HALVES, &cos, &sin, &rows, 1) != FASTPE_OK) fail(fastpe_error_message());
  printf("%lld %lld %s\n", (long long)options.head_dim, (long long)options.rotary_dim,
         options.pairing == FASTPE_PAIRING_HALVES ? "halves" : "interleaved");
  for (int64_t k = 0; k < shape[1]; ++k) printf("%.17g %.17g\n", tables[k], tables[shape[1] + k]);
  fastpe_rotary_destroy(rotary);
  free(tables);
  return 0;
}
