/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fastpe for C and C++: exact sinusoidal positional encodings and rotary embeddings on the CPU.
 *
 * What holds for every function:
 *
 * Errors. A function that can fail returns FASTPE_OK or another status, and fastpe_error_message() says why. Everything
 * is checked before the first write: after another status than FASTPE_OK, no array has changed, and a handle that was
 * to be made is NULL. No C++ exception leaves the library, and nothing is printed.
 *
 * Threads. A handle never changes: any number of threads may call functions with one handle at the same time, each with
 * output arrays of its own. Calls need no lock. A handle may be used after fork().
 *
 * Memory. The library keeps no pointer to anything that is passed to it. Handles keep the rows of max_len, and tables
 * of about a kilobyte per column. On a warm handle (see fastpe_encoding_warm_up), calls with one thread whose positions
 * are integers from 0 to max_len - 1 allocate nothing: rotations of any size, and other calls that write at most 256
 * KiB, each with rows whose columns are contiguous. All other calls, and those that write encodings or tables of 16
 * bits, need scratch memory for each thread: on the stack up to 32 KiB in all, and else on the heap until the call
 * returns.
 *
 * Values. A float32, float16 or bfloat16 value is the exact one, rounded once; a float64 value is within 1 ulp + 2e-16.
 * It depends on its position, frequency and dtype only, and has the same bits as in Python, on every machine. Sums and
 * rotations round each operation. For 16-bit arrays they compute in float32, and round the result once. Positions are
 * integers or fractional numbers of magnitude up to 2^53.
 *
 * FASTPE_NUM_THREADS, FASTPE_ISA (avx512, avx2, neon, baseline) and FASTPE_STREAMING_BYTES are read from the
 * environment, once.
 */
#ifndef FASTPE_H
#define FASTPE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(FASTPE_BUILDING)
#define FASTPE_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(FASTPE_STATIC)
#define FASTPE_API __declspec(dllimport)
#elif defined(FASTPE_BUILDING)
#define FASTPE_API __attribute__((visibility("default")))
#else
#define FASTPE_API
#endif

/* Of this header: major * 10000 + minor * 100 + patch. */
#define FASTPE_VERSION 100

/* How every struct begins: fastpe_rows rows = FASTPE_ZERO; */
#ifdef __cplusplus
#define FASTPE_ZERO \
  {                 \
  }
extern "C" {
#else
#define FASTPE_ZERO {0}
#endif

/* Each enumeration has one number below 0, which no function takes or returns: that makes it signed, as the int32_t of
 * fields and arguments are. */

/* The version of the library, as FASTPE_VERSION. Thread-safe. */
FASTPE_API int32_t fastpe_version(void);

/* The instruction set in use, such as "avx2"; "" where FASTPE_ISA names one that is not there. Thread-safe. */
FASTPE_API const char* fastpe_instruction_set(void);

/* ---- Errors */

typedef int32_t fastpe_status;
enum fastpe_status_code {
  FASTPE_STATUS_INVALID = -1,
  FASTPE_OK = 0,
  FASTPE_INVALID_VALUE = 1, /* a number, a shape, strides, memory that is shared */
  FASTPE_INVALID_TYPE = 2,  /* the dtype of an array */
  FASTPE_OUT_OF_MEMORY = 3,
  FASTPE_INTERNAL_ERROR = 4 /* a fault of the library: please report it */
};

/* What was wrong with the last call of this thread that did not return FASTPE_OK, in one sentence: which argument, what
 * was found, and what was expected. Thread-safe; valid until the thread's next call that fails, or its end. */
FASTPE_API const char* fastpe_error_message(void);

/* Copies the same sentence, with a zero at its end, into `size` bytes, and returns its length. If it is longer, its
 * beginning is copied. For programs that change threads: other work on a thread replaces its message. */
FASTPE_API size_t fastpe_last_error(char* message, size_t size);

/* The argument or field that the message is about, such as "out", "x[1]" or "base"; "" if it is about none. */
FASTPE_API const char* fastpe_error_argument(void);

/* ---- Arrays */

enum fastpe_dtype {
  FASTPE_DTYPE_INVALID = -1,
  FASTPE_FLOAT32 = 1,
  FASTPE_FLOAT64 = 2,
  FASTPE_FLOAT16 = 3,  /* bits of IEEE 754's binary16 */
  FASTPE_BFLOAT16 = 4, /* the upper 16 bits of a float32 */
  FASTPE_INT8 = 5,
  FASTPE_INT16 = 6,
  FASTPE_INT32 = 7,
  FASTPE_INT64 = 8,
  FASTPE_UINT8 = 9,
  FASTPE_UINT16 = 10,
  FASTPE_UINT32 = 11,
  FASTPE_UINT64 = 12,
  FASTPE_BOOL = 13 /* one byte; what is not 0 is true */
};

#define FASTPE_MAX_AXES 10

/* An array of the caller's. It may have any strides, negative ones too, if its elements are aligned. Arrays that are
 * written must have no two elements in the same place, and share no memory with other arrays of the call. Axes of
 * length 0 are fine everywhere. */
typedef struct fastpe_array {
  void* data;                   /* the element whose indices are all 0 */
  const int64_t* shape;         /* [ndim] */
  const int64_t* strides_bytes; /* [ndim], or NULL: contiguous, the last axis fastest */
  int32_t ndim;
  int32_t dtype; /* fastpe_dtype */
} fastpe_array;

/* An array that is only read, with the same fields. */
typedef struct fastpe_const_array {
  const void* data;
  const int64_t* shape;
  const int64_t* strides_bytes;
  int32_t ndim;
  int32_t dtype;
} fastpe_const_array;

/* Where the rows of a call are, and which of them are valid. What is not needed is 0 or NULL. In an array [B, .., L,
 * C], the first axis that is not the sequence is the batch B. */
typedef struct fastpe_rows {
  int64_t offset;                      /* row l is at position offset + l; a convention may count from 1 or 2 */
  const fastpe_const_array* offsets;   /* integers [B]: an offset for each sequence */
  const fastpe_const_array* positions; /* [L] or [B, L], integers, float32 or float64: explicit positions. With
                                          frequency_axes, [L, C] or [B, L, C]: the coordinates of each row */
  const fastpe_const_array* valid;     /* FASTPE_BOOL [L] or [B, L]: true where valid. Only valid rows are counted */
  const fastpe_const_array* lengths; /* integers [B]: how many rows of each sequence are valid, from the first one on */
  const fastpe_const_array* cu_seqlens; /* integers [N + 1]: where each of N packed sequences starts, and the end. There
                                           is no batch then, and `offsets` is [N] */
  int64_t reserved[4];                  /* 0 */
} fastpe_rows;

/* Each function below takes `rows`, which may be NULL for positions 0, 1, 2 .., and `num_threads`: at most this many,
 * or 0 for the default: FASTPE_NUM_THREADS, or else the processors that the process may use. Small calls use one
 * thread. */

/* ---- Sinusoidal encodings */

/* Sines and cosines of p * w_k, where p is the position and k counts from 0 to n - 1; n is d_model / 2.
 * Sine and cosine in turns:
 *   VASWANI 10000^(-k / n); POSITIONAL_ENCODINGS the same, with n rounded up; DOUBLED_EXPONENT 10000^(-2k / n);
 *   NERF 2^k
 * Sines, then cosines:
 *   CONCAT 10000^(-k / n); X_TRANSFORMERS the same, divided by sqrt(d_model); TENSOR2TENSOR and DDPM
 *   10000^(-k / (n - 1)); FAIRSEQ the same, counting from 2; OPENNMT_TF the same, counting from 1; MLX the same, times
 *   sqrt(2 / d_model); DEPTHCHARGE 2000 pi * 10000000^(-k / (n - 1))
 * Cosines, then sines:
 *   TIMESTEP 10000^(-k / n); MUSICGEN 10000^(-k / (n - 1)); STABLE_AUDIO3 pi * 20000^(k / (n - 1)) */

/* Named after implementations, as in Python; docs/conventions.md says which systems have which. */
enum fastpe_convention {
  FASTPE_CONVENTION_INVALID = -1,
  FASTPE_VASWANI = 1,
  FASTPE_CONCAT = 2,
  FASTPE_X_TRANSFORMERS = 3,
  FASTPE_TENSOR2TENSOR = 4, /* also Whisper */
  FASTPE_FAIRSEQ = 5,       /* counts from 2 */
  FASTPE_OPENNMT_TF = 6,    /* counts from 1 */
  FASTPE_MUSICGEN = 7,
  FASTPE_DDPM = 8,
  FASTPE_TIMESTEP = 9,
  FASTPE_MLX = 10,
  FASTPE_DEPTHCHARGE = 11,
  FASTPE_POSITIONAL_ENCODINGS = 12,
  FASTPE_NERF = 13,
  FASTPE_DOUBLED_EXPONENT = 14,
  FASTPE_STABLE_AUDIO3 = 15
};

typedef struct fastpe_encoding_options {
  int64_t d_model;           /* columns, from 1 */
  int64_t max_len;           /* rows of positions 0 .. max_len - 1 are kept once they are made; 0: none */
  double base;               /* 0: the convention's */
  double freq_scale;         /* 0: the convention's */
  const double* frequencies; /* radians per position, instead of base and freq_scale; or NULL */
  int64_t frequency_count;   /* of `frequencies`: one for each pair of columns */
  int32_t convention;        /* fastpe_convention */
  int32_t reserved_int32;    /* 0 */
  int64_t reserved[4];       /* 0 */
} fastpe_encoding_options;

typedef struct fastpe_encoding fastpe_encoding;

/* Thread-safe. */
FASTPE_API fastpe_status fastpe_encoding_create(const fastpe_encoding_options* options, fastpe_encoding** encoding);

/* Does nothing for NULL. No other thread may be using the handle. */
FASTPE_API void fastpe_encoding_destroy(fastpe_encoding* encoding);

/* Makes what calls with arrays of this dtype need, the rows of max_len included, so that no call has to. A float32
 * warm-up also serves sums of 16-bit arrays. Thread-safe. */
FASTPE_API fastpe_status fastpe_encoding_warm_up(const fastpe_encoding* encoding, int32_t dtype, int32_t num_threads);

/* out = PE. `out` is [L, d_model] or [B, L, d_model]. Rows that are not valid become 0. Thread-safe. */
FASTPE_API fastpe_status fastpe_encode(const fastpe_encoding* encoding, const fastpe_array* out,
                                       const fastpe_rows* rows, int32_t num_threads);

/* out = x * scale + alpha * PE. `out` has the shape and dtype of x; NULL, or x itself, changes x in place, and x is not
 * written otherwise. Columns are the last axis, d_model of them; `seq_axis` is the sequence, usually -2, the last axis
 * but one. Rows that are not valid stay, or are copied. Thread-safe. */
FASTPE_API fastpe_status fastpe_add(const fastpe_encoding* encoding, const fastpe_array* x, const fastpe_array* out,
                                    int32_t seq_axis, const fastpe_rows* rows, double scale, double alpha,
                                    int32_t num_threads);

/* The same with rows of a learned table, [max_len, d_model] of the dtype of x: position p has row p, and other
 * positions are refused. Thread-safe. */
FASTPE_API fastpe_status fastpe_add_table(const fastpe_const_array* table, const fastpe_array* x,
                                          const fastpe_array* out, int32_t seq_axis, const fastpe_rows* rows,
                                          double scale, double alpha, int32_t num_threads);

/* ---- Rotary embeddings */

/* Which columns are rotated together. There is no default: models differ, and the wrong one is wrong in silence. */
enum fastpe_pairing {
  FASTPE_PAIRING_INVALID = -1,
  FASTPE_PAIRING_HALVES = 1,     /* k and k + rotary_dim / 2: Llama in transformers, GPT-NeoX; "neox" in ggml */
  FASTPE_PAIRING_INTERLEAVED = 2 /* 2k and 2k + 1: Meta's Llama, and in GGUF files, GPT-J, Flux; "norm" in ggml */
};

/* The types of a config.json, with its numbers; "default" scales nothing. Fields that a type does not use must be 0. */
enum fastpe_scaling_type {
  FASTPE_SCALING_INVALID = -1,
  FASTPE_SCALING_LINEAR = 1,   /* factor */
  FASTPE_SCALING_NTK = 2,      /* factor: of the base, factor^(d / (d - 2)) */
  FASTPE_SCALING_DYNAMIC = 3,  /* factor, original_max_position_embeddings, seq_len */
  FASTPE_SCALING_YARN = 4,     /* factor, original_max_position_embeddings; beta_fast, beta_slow, mscale,
                                  mscale_all_dim, truncate */
  FASTPE_SCALING_LONGROPE = 5, /* divisors, original_max_position_embeddings, factor (1 if attention_factor is given) */
  FASTPE_SCALING_LLAMA3 = 6,   /* factor, original_max_position_embeddings, low_freq_factor, high_freq_factor */
  FASTPE_SCALING_PROPORTIONAL = 7, /* factor, rotated_count */
  FASTPE_SCALING_DIVISORS = 8      /* divisors, as the rope_freqs.weight of a GGUF file: w_k / divisors[k] */
};

/* Whether YaRN's ramp begins and ends at whole frequencies, which is "truncate" in a config.json. */
enum fastpe_truncate {
  FASTPE_TRUNCATE_INVALID = -1,
  FASTPE_TRUNCATE_YES = 0, /* the default */
  FASTPE_TRUNCATE_NO = 1
};

typedef struct fastpe_scaling {
  double factor;
  int64_t original_max_position_embeddings; /* where a file has none, "dynamic" means its max_position_embeddings */
  int64_t seq_len;                          /* of the sequences; up to the original one, nothing is scaled */
  double beta_fast;                         /* 0: 32 */
  double beta_slow;                         /* 0: 1 */
  double mscale;
  double mscale_all_dim;
  double low_freq_factor;
  double high_freq_factor;
  const double* divisors; /* [rotary_dim / 2]: long_factor if seq_len is beyond the original one, or short_factor */
  int64_t divisor_count;
  int64_t rotated_count; /* how many frequencies are not 0: the first ones */
  int32_t type;          /* fastpe_scaling_type */
  int32_t truncate;      /* fastpe_truncate */
  int64_t reserved[4];   /* 0 */
} fastpe_scaling;

typedef struct fastpe_rotary_options {
  int64_t rotary_dim;            /* columns that are rotated: even, and at most those of a head */
  int64_t max_len;               /* rows of positions 0 .. max_len - 1 are kept once they are made; 0: none */
  double base;                   /* rope_theta, at least 1 */
  const fastpe_scaling* scaling; /* or NULL */
  const double* frequencies;     /* [rotary_dim / 2], radians per position, instead of base and scaling; or NULL */
  int64_t frequency_count;
  double attention_factor; /* of cosines and sines; 0: the scaling's, or else 1 */
  int64_t head_dim; /* columns of a head: rotations refuse arrays of other widths, but for rotary_dim; 0: rotary_dim */
  const int32_t* frequency_axes; /* [rotary_dim / 2]: which coordinate each frequency belongs to; NULL: positions are
                                    single numbers. With it, calls take positions only */
  int32_t pairing;               /* fastpe_pairing */
  int32_t reserved_int32;        /* 0 */
  int64_t reserved[4];           /* 0 */
} fastpe_rotary_options;

typedef struct fastpe_rotary fastpe_rotary;

/* Thread-safe. */
FASTPE_API fastpe_status fastpe_rotary_create(const fastpe_rotary_options* options, fastpe_rotary** rotary);

/* Does nothing for NULL. No other thread may be using the handle. */
FASTPE_API void fastpe_rotary_destroy(fastpe_rotary* rotary);

/* As fastpe_encoding_warm_up. Inverse rotations are included if the attention factor is 1. Thread-safe. */
FASTPE_API fastpe_status fastpe_rotary_warm_up(const fastpe_rotary* rotary, int32_t dtype, int32_t num_threads);

/* Writes the frequencies in radians per position, `count` of them, which is rotary_dim / 2, and what cosines and sines
 * are multiplied by; NULL for what is not wanted. Thread-safe. */
FASTPE_API fastpe_status fastpe_rotary_frequencies(const fastpe_rotary* rotary, double* frequencies, int64_t count,
                                                   double* attention_factor);

/* How cosines and sines are arranged; n is rotary_dim / 2. */
enum fastpe_table_form {
  FASTPE_TABLES_INVALID = -1,
  FASTPE_TABLES_HALVES = 1,   /* two arrays, cos [.., n] and sin [.., n] */
  FASTPE_TABLES_TILE = 2,     /* two arrays [.., 2n], each set of columns twice: what rotate_half takes */
  FASTPE_TABLES_REPEAT = 3,   /* two arrays [.., 2n], each column twice */
  FASTPE_TABLES_COS_SIN = 4,  /* one array [.., 2n]: cosines, then sines */
  FASTPE_TABLES_SIN_COS = 5,  /* one array [.., 2n]: sines, then cosines */
  FASTPE_TABLES_PAIRS = 6,    /* one array [.., n, 2]: cosine and sine, as complex numbers have them */
  FASTPE_TABLES_MATRICES = 7, /* one array [.., n, 2, 2]: cos, -sin, sin, cos, as Flux has them */
  FASTPE_TABLES_ANGLES = 8    /* one array [.., n], float32 or float64: radians, not reduced */
};

/* Writes cosines and sines, times the attention factor. Leading axes are [L] or [B, L]; `second` is NULL where the form
 * has one array. `rows` has neither valid rows nor lengths. Thread-safe. */
FASTPE_API fastpe_status fastpe_tables(const fastpe_rotary* rotary, int32_t form, const fastpe_array* first,
                                       const fastpe_array* second, const fastpe_rows* rows, int32_t num_threads);

#define FASTPE_MAX_ROTATED 8

/* Rotates `count` arrays, usually queries and keys: [B, heads, L, head_dim] with a `seq_axis` of -2,
 * [B, L, heads, head_dim] with -3, or [L, heads, head_dim] with -3 and no batch. Arrays have the same dtype and length;
 * heads may differ. The first rotary_dim columns of a head are rotated, the others stay. `out` has as many arrays, of
 * the shapes and dtypes of x; NULL, or x itself, changes x in place, and x is not written otherwise. An `inverse` of 1
 * rotates back, 0 does not. Rows that are not valid stay, or are copied. Thread-safe. */
FASTPE_API fastpe_status fastpe_rotate(const fastpe_rotary* rotary, const fastpe_array* x, const fastpe_array* out,
                                       int32_t count, int32_t seq_axis, const fastpe_rows* rows, int32_t inverse,
                                       int32_t num_threads);

/* Moves rotated keys of a cache by `by` positions, to earlier ones where it is negative. `by` has integers or
 * fractional numbers: one for all rows (no axes), [B, 1], [L] or [B, L]; with frequency_axes, each is an axis [C] of
 * coordinates. `rows` may only say which rows are valid. The attention factor stays in the keys as it is. Thread-safe.
 */
FASTPE_API fastpe_status fastpe_shift(const fastpe_rotary* rotary, const fastpe_array* x, const fastpe_array* out,
                                      int32_t count, int32_t seq_axis, const fastpe_const_array* by,
                                      const fastpe_rows* rows, int32_t num_threads);

/* As fastpe_rotate, by cosines and sines of the caller's: [rows, pairs] each, float32 or of the dtype of x. Position p
 * has row p, and other positions are refused. Or [B, L, pairs], a row for each row of x; `rows` may then say which are
 * valid, and nothing else. `head_dim` is the columns of a head where only a part of it is rotated; 0: 2 * pairs.
 * Thread-safe. */
FASTPE_API fastpe_status fastpe_rotate_by_tables(const fastpe_const_array* cos, const fastpe_const_array* sin,
                                                 int32_t pairing, int64_t head_dim, const fastpe_array* x,
                                                 const fastpe_array* out, int32_t count, int32_t seq_axis,
                                                 const fastpe_rows* rows, int32_t inverse, int32_t num_threads);

/* ---- Beside the queries and keys. Arrays may have any strides, and up to 8 axes. */

/* The rows of T5's table of biases, for `relative_positions`, integers: the position of the key less that of the query.
 * `out` has their shape and is FASTPE_INT32 or FASTPE_INT64. `bidirectional`, 0 or 1: whether keys after the query have
 * buckets of their own. T5 has 32 buckets and a max_distance of 128. Exact. Thread-safe. */
FASTPE_API fastpe_status fastpe_relative_buckets(const fastpe_const_array* relative_positions, int32_t bidirectional,
                                                 int64_t num_buckets, int64_t max_distance, const fastpe_array* out);

/* The slopes of ALiBi: a head adds its slope times (key - query) to its scores. `out` [heads] is FASTPE_FLOAT32 or
 * FASTPE_FLOAT64; `max_bias` is 8 in most models. Exact, rounded once. Thread-safe. */
FASTPE_API fastpe_status fastpe_alibi_slopes(double max_bias, const fastpe_array* out);

/* The position ids of a graph for `mask` [L] or [B, S], FASTPE_BOOL, or integers 0 and 1: how many columns before each
 * are 1, and 1 where the mask is 0. `out` is FASTPE_INT32 or FASTPE_INT64 and has the mask's shape, or fewer columns:
 * those of the last tokens, which follow tokens that the model has had. Thread-safe. */
FASTPE_API fastpe_status fastpe_position_ids(const fastpe_const_array* mask, const fastpe_array* out);

#ifdef __cplusplus
}
#endif
#endif /* FASTPE_H */
