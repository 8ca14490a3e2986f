// Exact arithmetic. Integer: 128 bits; every count in headroom is one, and overflow is an error,
// never a wrap. Expr: a polynomial with integer coefficients over a closed set of symbols.
// Invariant: terms are sorted in display order, monomials are distinct, coefficients are nonzero.
// So two Exprs compare equal, and print alike, exactly when they are the same polynomial.
//
//   24·b·s·d² + 4·b·s²·d        unicode
//   24*b*s*d^2 + 4*b*s^2*d      ascii
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace headroom {

/// A signed 128-bit integer. Training FLOPs reach 1e26; 2^127 is 1.7e38.
__extension__ using Integer = __int128;

namespace detail {

/// Built-in integers and Integer, which std::integral leaves out without GNU extensions.
template <class Int>
concept AnyInteger = std::integral<Int> || std::same_as<Int, Integer>;

/// Integer ranges up to 2^127 - 1.
inline constexpr unsigned kIntegerBits = 127;

/// Throws Error{overflow}: the largest value is 2^`bits` - 1.
[[noreturn]] void throw_overflow(unsigned bits);
/// Throws Error{internal}.
[[noreturn]] void throw_divisor_not_positive();

}  // namespace detail

/// a + b. Throws Error{overflow} when the sum leaves the range of Integer.
[[nodiscard]] constexpr Integer checked_add(Integer a, Integer b) {
  Integer sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) detail::throw_overflow(detail::kIntegerBits);
  return sum;
}

/// a * b. Throws Error{overflow} when the product leaves the range of Integer.
[[nodiscard]] constexpr Integer checked_multiply(Integer a, Integer b) {
  Integer product = 0;
  if (__builtin_mul_overflow(a, b, &product)) detail::throw_overflow(detail::kIntegerBits);
  return product;
}

/// `value` in 64 bits. Throws Error{overflow} when it leaves their range.
[[nodiscard]] constexpr std::int64_t checked_int64(Integer value) {
  constexpr unsigned kBits = 63;
  const bool fits = value >= std::numeric_limits<std::int64_t>::min() &&
                    value <= std::numeric_limits<std::int64_t>::max();
  if (!fits) detail::throw_overflow(kBits);
  return static_cast<std::int64_t>(value);
}

/// base to the power of `exponent`. Throws Error{overflow}.
[[nodiscard]] Integer checked_power(Integer base, unsigned exponent);

/// ⌈dividend / divisor⌉, of the dividend's type. Throws Error{internal} unless divisor > 0.
template <detail::AnyInteger Int>
[[nodiscard]] constexpr Int ceil_div(Int dividend, std::type_identity_t<Int> divisor) {
  if (divisor <= 0) detail::throw_divisor_not_positive();
  const Int quotient = dividend / divisor;
  return dividend % divisor > 0 ? quotient + 1 : quotient;
}

/// The least multiple of `divisor` that is not below `value`. Throws Error{internal} unless
/// divisor > 0, and Error{overflow} when that multiple leaves the range of the type.
template <detail::AnyInteger Int>
[[nodiscard]] constexpr Int round_up(Int value, std::type_identity_t<Int> divisor) {
  Int multiple = 0;
  if (__builtin_mul_overflow(ceil_div(value, divisor), divisor, &multiple)) {
    constexpr bool is_signed = static_cast<Int>(-1) < 0;
    detail::throw_overflow(8 * sizeof(Int) - (is_signed ? 1 : 0));
  }
  return multiple;
}

/// Greatest common divisor of |a| and |b|; gcd(0, 0) = 0. Throws Error{overflow} for -2^127.
[[nodiscard]] Integer gcd(Integer a, Integer b);

/// Decimal digits without separators: "-1234".
[[nodiscard]] std::string to_string(Integer value);

/// Decimal digits in groups of three: "109,482,240".
[[nodiscard]] std::string with_separators(Integer value);

// The symbols of every count: a closed set, so that a symbol indexes an array and a legend can be
// printed. The order below is the order inside a printed term.

/// A quantity that costs depend on, named after its Hugging Face config key where one exists.
enum class Symbol : std::uint8_t {
  num_hidden_layers,            ///< l: layers of the decoder or of the only stack
  num_encoder_layers,           ///< m: layers of the encoder in an encoder-decoder
  batch_size,                   ///< b: sequences in a batch
  seq_len,                      ///< s: new tokens per sequence
  new_tokens,                   ///< G: tokens that a generation adds
  sequence_shard_len,           ///< σ: tokens of one sequence-parallel rank, s·τ⁻¹
  enc_seq_len,                  ///< n: tokens read by the encoder of an encoder-decoder
  visible_keys,                 ///< t: keys read by attention, p + s
  visible_pairs,                ///< c: unmasked causal pairs, s·p + s·(s + 1)/2
  windowed_keys,                ///< u: keys read by a sliding-window layer
  chunk_keys,                   ///< χ: keys of the chunks that the new tokens are in
  windowed_pairs,               ///< x: unmasked pairs under a causal mask and a window
  encoder_windowed_pairs,       ///< Y: pairs within the window of an encoder-decoder's encoder
  encoder_block_tokens,         ///< Z: tokens of its encoder, padded to whole blocks
  transient_global_tokens,      ///< Γ: one per block of its tokens, that they all see (LongT5)
  chunked_tokens,               ///< Λ: new tokens, padded to whole windows of attention in chunks
  global_tokens,                ///< γ: tokens with global attention per sequence
  chosen_keys,                  ///< K: keys that an indexer's choices read
  chosen_pairs,                 ///< z: pairs of a query and a key that an indexer chooses
  compressed_keys,              ///< j: compressed keys that an indexer scores
  new_compressed_keys,          ///< i: those that the new tokens complete
  heavily_compressed_keys,      ///< J: compressed keys without an indexer
  new_heavily_compressed_keys,  ///< I: those that the new tokens complete
  heavily_compressed_pairs,     ///< X: unmasked pairs of a query and one of them
  past_len,                     ///< p: tokens in the KV-cache
  images,                       ///< M: images of the pass
  image_patches,                ///< A: patches of all images
  image_pairs,                  ///< H: pairs of rows of one image in its tower, over all images
  image_window_pairs,           ///< Y: those of one window of patches
  image_tokens,                 ///< D: visual tokens of all images
  later_image_pairs,            ///< U: pairs of a visual token and a later one of its image
  audio_segments,               ///< ω: segments of sound of the pass
  audio_rows,                   ///< β: rows of sound of the audio tower
  audio_tokens,                 ///< δ: audio tokens of all clips
  audio_pairs,                  ///< ψ: pairs of rows of the audio tower that see each other
  hidden_size,                  ///< d
  intermediate_size,            ///< f: inner width of the feed-forward network
  num_attention_heads,          ///< h: query heads
  num_key_value_heads,          ///< g: key and value heads
  n_groups,                     ///< ζ: groups of state-space heads that share B and C
  linear_num_key_heads,         ///< η: heads of a gated delta layer's queries and keys
  head_dim,                     ///< k: dimensions of a query or key head
  value_head_dim,               ///< v: dimensions of a value head
  sliding_window,               ///< w: keys in the window
  kernel_size,                  ///< κ: taps of a convolution
  num_experts,                  ///< E: routed experts per layer
  num_experts_per_tok,          ///< a: experts that each token is routed to
  moe_intermediate_size,        ///< F: inner width of a routed expert
  experts_read,              ///< y: routed experts whose weights are read, at most min(E, b·s·a)
  shared_intermediate_size,  ///< S: inner width of the shared experts
  q_lora_rank,               ///< Q: rank of MLA's query compression
  kv_lora_rank,              ///< r: rank of MLA's key-value compression
  qk_nope_head_dim,          ///< ν: non-rotary dimensions of an MLA head
  qk_rope_head_dim,          ///< o: rotary dimensions of an MLA head
  embedding_size,            ///< e: width of the word embedding where it differs from d
  vocab_size,                ///< V
  max_position_embeddings,   ///< P: rows of a learned position table
  type_vocab_size,           ///< T: rows of the token-type table
  patch_elements,            ///< q: values in an image patch, channels · patch²
  relative_attention_num_buckets,  ///< R: rows of a relative-position table
  num_labels,                      ///< C: outputs of a classifier
  tensor_parallel_share,  ///< τ⁻¹: one rank's fraction; appears in formulas, never bound
  weight_bytes,           ///< bytes per weight
  activation_bytes,       ///< bytes per activation
  kv_cache_bytes,         ///< bytes per KV-cache element
  mask_bytes,             ///< bytes per dropout-mask element
  cast_bytes,  ///< bytes per activation cast from float32: 0 when activations are float32
};

/// Number of symbols. symbol.cpp asserts that `cast_bytes` is the last one.
inline constexpr std::size_t kSymbolCount = static_cast<std::size_t>(Symbol::cast_bytes) + 1;

/// Spelling and meaning of a symbol.
struct SymbolInfo {
  Symbol symbol;
  std::string_view unicode;  ///< one letter where the literature has one
  std::string_view latex;
  std::string_view key;  ///< key in a config or report
  /// Value of a derived symbol in other symbols, else empty. It names symbols by their spelling, so
  /// that a legend can define these too; hence no article "a" in it.
  std::string_view definition;
};

/// Position of `symbol` in `symbols()` and in a Monomial.
[[nodiscard]] constexpr std::size_t index(Symbol symbol) noexcept {
  return static_cast<std::size_t>(symbol);
}

/// All symbols, in order of the enumeration.
[[nodiscard]] const std::array<SymbolInfo, kSymbolCount>& symbols() noexcept;

/// Spelling and meaning of `symbol`.
[[nodiscard]] const SymbolInfo& info(Symbol symbol) noexcept;

/// The exponent of every symbol in a product, by `index(symbol)`.
using Monomial = std::array<std::uint8_t, kSymbolCount>;

/// A product of symbols with an integer coefficient.
struct Term {
  Integer coefficient = 0;
  Monomial powers{};
  bool operator==(const Term&) const = default;
};

/// Values of some symbols; the others are unbound.
class Bindings {
 public:
  /// Binds `symbol`, replacing any earlier value.
  void set(Symbol symbol, Integer value) { values_[index(symbol)] = value; }
  /// The value of `symbol`; empty if unbound.
  [[nodiscard]] std::optional<Integer> get(Symbol symbol) const { return values_[index(symbol)]; }

 private:
  std::array<std::optional<Integer>, kSymbolCount> values_{};
};

/// An integer polynomial over symbols. A value type; every operation keeps the canonical form.
class Expr {
 public:
  /// Zero.
  Expr() = default;
  /// A constant. Implicit, so that `2 * b * s` reads as on paper.
  Expr(Integer constant);  // NOLINT(google-explicit-constructor)
  /// A single symbol; implicit for the same reason.
  Expr(Symbol symbol);  // NOLINT(google-explicit-constructor)

  /// The sum of `terms`, given in any order. Throws Error{overflow}.
  [[nodiscard]] static Expr from_terms(std::vector<Term> terms);

  [[nodiscard]] std::span<const Term> terms() const noexcept { return terms_; }
  [[nodiscard]] bool is_zero() const noexcept { return terms_.empty(); }
  /// The value of a constant polynomial; empty if any symbol occurs.
  [[nodiscard]] std::optional<Integer> constant() const;
  /// The highest power of `symbol`: the order of growth in it.
  [[nodiscard]] unsigned degree(Symbol symbol) const noexcept;

  /// Replaces `symbol` with `value`. Throws Error{overflow}.
  [[nodiscard]] Expr substitute(Symbol symbol, const Expr& value) const;
  /// Replaces every bound symbol with its value. Throws Error{overflow}.
  [[nodiscard]] Expr substitute(const Bindings& bindings) const;
  /// The exact value. Throws Error{overflow}, and Error{internal} for an unbound symbol.
  [[nodiscard]] Integer evaluate(const Bindings& bindings) const;
  /// evaluate() for a size that must fit 64 bits. Throws Error{overflow} when it does not.
  [[nodiscard]] std::int64_t evaluate_int64(const Bindings& bindings) const {
    return checked_int64(evaluate(bindings));
  }

  Expr& operator+=(const Expr& other);
  Expr& operator-=(const Expr& other);
  bool operator==(const Expr&) const = default;

 private:
  std::vector<Term> terms_;
};

/// Sum, difference and product; each throws Error{overflow}.
[[nodiscard]] Expr operator+(const Expr& a, const Expr& b);
[[nodiscard]] Expr operator-(const Expr& a, const Expr& b);
[[nodiscard]] Expr operator*(const Expr& a, const Expr& b);

/// Returns whether monomial `a` prints before `b`: by layer count, then by ascending power of the
/// sequence lengths (terms without a length last), then by descending powers of the model's sizes.
[[nodiscard]] bool display_before(const Monomial& a, const Monomial& b) noexcept;

/// Returns whether monomial `divisor` divides `powers`.
[[nodiscard]] bool divides(const Monomial& divisor, const Monomial& powers) noexcept;

/// A rewrite rule such as h·k → d: replaces `product` in every term that it divides. `replacement`
/// must not contain `product`.
struct Relation {
  Monomial product{};
  Expr replacement;
};

/// Makes the relation `product` → `replacement`.
[[nodiscard]] Relation relation(std::initializer_list<Symbol> product, Expr replacement);

/// Applies each relation in turn, as often as it matches.
[[nodiscard]] Expr collapse(const Expr& expr, std::span<const Relation> relations);

/// Output syntax of a formula.
enum class Notation { unicode, ascii, latex };

/// Prints `expr` in its canonical form.
[[nodiscard]] std::string format(const Expr& expr, Notation notation = Notation::unicode);

/// Prints `expr` with values in place of bound symbols: "24·1·128·768² + 4·1·128²·768".
[[nodiscard]] std::string format_with_values(const Expr& expr, const Bindings& bindings,
                                             Notation notation = Notation::unicode);

}  // namespace headroom
