// SPDX-License-Identifier: BSD-3-Clause
// Rotary embeddings, and requests to them, or to tables in their place.
#pragma once

#include <array>
#include <memory>

#include "fastpe/lazy.h"
#include "fastpe/operations/rotate.h"
#include "fastpe/operations/write.h"
#include "fastpe/sources/sinusoid/sinusoids.h"
#include "rotated_arrays.h"

namespace fastpe {

// Sinusoids whose rows are cosines, then sines, times a factor; and the pairs that they rotate.
struct RotaryEmbedding : Encoding {
  // `conjugate`: arrays are rotated by the negative angles.
  RotaryEmbedding(const WantedFrequencies& frequencies, double attention_factor, FrequencyCoordinates coordinates_of,
                  std::int64_t head_dim_, bool interleaved, bool conjugate, std::optional<std::int64_t> max_len);

  std::int64_t pairs() const { return encoder.frequency_count(); }
  // The factor of the rows by which arrays are rotated, or rotated back. A ValueError where it is not finite.
  double row_factor(bool inverse) const;
  // What rows of this factor rotate, or rotate back. Pairs of frequency 0 keep their bits where the factor is 1.
  const Pairing& pairing(double row_factor, bool is_inverse) const {
    return pairings_[(row_factor == 1.0 ? 2 : 0) + (is_inverse ? 1 : 0)];
  }
  // Yields rows of this factor: the embedding's own, 1, or the inverse. Only rows of the own one are kept.
  Sinusoids source(double row_factor) const {
    return Sinusoids(encoding_with(row_factor), 0, coordinates.count > 0 ? &coordinates : nullptr);
  }

  const FrequencyCoordinates coordinates;
  const std::int64_t head_dim;  // columns of a head; 0: not known

 private:
  const Encoding& encoding_with(double row_factor) const;

  std::array<Pairing, 4> pairings_;  // all pairs, then those that turn; each also to rotate back
  Lazy<std::unique_ptr<Encoding>> with_factor_one_, with_inverse_factor_;
};

struct TablesRequest : Request {
  explicit TablesRequest(const TableForm& form_) : form(form_) {}

  const TableForm& form;
  ArrayView out[2];  // as many as the form has
  std::optional<DType> dtype;
};
void write_tables(const RotaryEmbedding& embedding, const TablesRequest& request, FrontEnd& front_end);

void rotate(const RotaryEmbedding& embedding, const RotateRequest& request, FrontEnd& front_end);

void rotate_by_tables(const GivenTables& tables, const RotateRequest& request, FrontEnd& front_end);

}  // namespace fastpe
