// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "array_view.h"

namespace fastpe {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 56;
// The search branches in two per stride if slices of one buffer are nested. Ten axes stay far below this bound.
constexpr int most_steps = 1 << 16;

// A term of a sum: any multiple of the stride, from 0 to count times it.
struct Term {
  std::uint64_t stride;
  std::uint64_t count;

  // The product is saturated, since wrong strides of foreign arrays may have any size.
  std::uint64_t reach() const {
    if (((stride | count) >> 28) != 0 && stride != 0 && count > most_bytes / stride) return most_bytes;
    return stride * count;
  }
};

// Inserts a term into `used` terms in the order of their strides.
void insert(const Term& term, Term* terms, std::size_t& used) {
  std::size_t at = used++;
  for (; at > 0 && terms[at - 1].stride > term.stride; --at) terms[at] = terms[at - 1];
  terms[at] = term;
}

std::uint64_t magnitude(std::ptrdiff_t stride) {
  const auto bits = static_cast<std::uint64_t>(stride);
  return stride < 0 ? 0 - bits : bits;
}

template <class Use>
void for_each_term(const ArrayView& array, const Use& use) {
  for (int axis = 0; axis < array.axes; ++axis) {
    if (array.shape[axis] <= 1) continue;  // whose stride may be any number
    use(Term{magnitude(array.strides_bytes[axis]), static_cast<std::uint64_t>(array.shape[axis]) - 1},
        array.strides_bytes[axis] < 0);
  }
}

std::uint64_t bytes_of(const ArrayView& array) { return static_cast<std::uint64_t>(element_bytes(array.dtype)); }

struct Bounds {
  std::uint64_t first;  // the address of the lowest byte
  std::uint64_t reach;  // the distance from it to the highest byte

  explicit Bounds(const ArrayView& array)
      : first(reinterpret_cast<std::uintptr_t>(array.data)), reach(bytes_of(array) - 1) {
    for_each_term(array, [&](const Term& term, bool is_descending) {
      const std::uint64_t distance = term.reach();
      if (is_descending) first -= distance;
      reach = std::min(reach + distance, most_bytes);
    });
  }
};

// Whether the terms and a number from 0 to `slack` can add up to a target.
class Sum {
 public:
  explicit Sum(std::uint64_t slack) : slack_(slack) {}

  void add(const ArrayView& array) {
    for_each_term(array, [&](const Term& term, bool) { insert(term, terms_.data(), used_); });
  }

  Overlap reaches(std::uint64_t target) {
    simplify();
    return search(used_, target);
  }

 private:
  // Equal strides make one term; a stride that the slack spans lengthens it without a gap.
  void simplify() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < used_; ++i) {
      if (terms_[i].stride <= slack_ + 1) {
        slack_ += terms_[i].reach();
      } else if (kept > 0 && terms_[kept - 1].stride == terms_[i].stride) {
        terms_[kept - 1].count += terms_[i].count;
      } else {
        terms_[kept++] = terms_[i];
      }
    }
    used_ = kept;
    reaches_[0] = slack_;
    divisors_[0] = 0;
    for (std::size_t i = 0; i < used_; ++i) {
      reaches_[i + 1] = reaches_[i] + terms_[i].reach();
      divisors_[i + 1] = std::gcd(divisors_[i], terms_[i].stride);
    }
  }

  // With the `count` smallest terms.
  Overlap search(std::size_t count, std::uint64_t target) {
    if (target > reaches_[count]) return Overlap::none;
    if (count == 0) return Overlap::some;
    if (target % divisors_[count] > slack_) return Overlap::none;
    const Term& term = terms_[count - 1];
    const std::uint64_t others = reaches_[count - 1];
    const std::uint64_t least = target > others ? (target - others + term.stride - 1) / term.stride : 0;
    const std::uint64_t most = std::min(term.count, target / term.stride);
    for (std::uint64_t n = most + 1; n-- > least;) {
      if (++steps_ > most_steps) return Overlap::unknown;
      const Overlap found = search(count - 1, target - n * term.stride);
      if (found != Overlap::none) return found;
    }
    return Overlap::none;
  }

  std::uint64_t slack_;
  std::array<Term, 2 * max_axes> terms_;  // in the order of their strides
  std::size_t used_ = 0;
  std::array<std::uint64_t, 2 * max_axes + 1> reaches_;   // of the smallest terms and the slack together
  std::array<std::uint64_t, 2 * max_axes + 1> divisors_;  // of the smallest terms' strides
  int steps_ = 0;
};

}  // namespace

bool is_nested(const ArrayView& array) {
  if (array.is_empty()) return true;
  std::array<Term, max_axes> terms;
  std::size_t used = 0;
  for_each_term(array, [&](const Term& term, bool) { insert(term, terms.data(), used); });
  std::uint64_t covered = bytes_of(array);
  for (std::size_t i = 0; i < used; ++i) {
    if (terms[i].stride < covered) return false;
    covered = std::min(covered + terms[i].reach(), most_bytes);
  }
  return true;
}

Overlap overlap_of(const ArrayView& a, const ArrayView& b) {
  if (a.is_empty() || b.is_empty()) return Overlap::none;
  const Bounds of_a(a), of_b(b);
  if (of_a.reach >= most_bytes || of_b.reach >= most_bytes) return Overlap::unknown;
  if (of_a.first + of_a.reach < of_b.first || of_b.first + of_b.reach < of_a.first) return Overlap::none;
  // The address of a byte of a is a's first plus a sum of a's terms, and that of a byte of b is b's last less a sum of
  // b's terms. Both are one byte if the two sums together are the distance from a's first to b's last.
  Sum sum(bytes_of(a) - 1 + bytes_of(b) - 1);
  sum.add(a);
  sum.add(b);
  return sum.reaches(of_b.first + of_b.reach - of_a.first);
}

}  // namespace fastpe
