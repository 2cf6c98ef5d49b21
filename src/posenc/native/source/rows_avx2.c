/* 256-bit vectors: eight pairs at a time. */
#include "kernels.h"
#ifdef POSENC_X86
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c,fma")
#endif
#include <immintrin.h>

#include "scalar.h"

#define LANES 8
#define STREAMS 1
typedef __m256 V;

static inline V v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline V v_add(V a, V b) { return _mm256_add_ps(a, b); }
static inline V v_sub(V a, V b) { return _mm256_sub_ps(a, b); }
static inline V v_mul(V a, V b) { return _mm256_mul_ps(a, b); }
static inline V v_flip(V a, V sign) { return _mm256_xor_ps(a, sign); }
static inline V v_all_bits(uint32_t u) { return _mm256_castsi256_ps(_mm256_set1_epi32((int)u)); }

static inline V from_bf16(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
static inline __m256i rounded_bf16(V v) { /* the result in the upper half of each word */
    __m256i u = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i none = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(r, _mm256_set1_epi32(0x7fc00000), none);
}
static inline __m128i packed(__m256i words) { /* the lower halves of eight words below 2^16 */
    __m256i pairs = _mm256_packus_epi32(words, words);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08));
}
static inline __m128i to_bf16(V v) { return packed(_mm256_srli_epi32(rounded_bf16(v), 16)); }
static inline V from_f16(__m128i h) { return _mm256_cvtph_ps(h); }
static inline __m128i to_f16(V v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

static inline void load_halves_f32(const float *p, int64_t partner, V *a, V *b) {
    *a = _mm256_loadu_ps(p);
    *b = _mm256_loadu_ps(p + partner);
}
static inline void store_halves_f32(float *p, int64_t partner, V a, V b) {
    _mm256_storeu_ps(p, a);
    _mm256_storeu_ps(p + partner, b);
}
static inline void stream_halves_f32(float *p, int64_t partner, V a, V b) {
    _mm256_stream_ps(p, a);
    _mm256_stream_ps(p + partner, b);
}
#define HALVES(name)                                                                                                  \
    static inline void load_halves_##name(const uint16_t *p, int64_t partner, V *a, V *b) {                           \
        *a = from_##name(_mm_loadu_si128((const __m128i *)p));                                                        \
        *b = from_##name(_mm_loadu_si128((const __m128i *)(p + partner)));                                            \
    }                                                                                                                 \
    static inline void store_halves_##name(uint16_t *p, int64_t partner, V a, V b) {                                  \
        _mm_storeu_si128((__m128i *)p, to_##name(a));                                                                 \
        _mm_storeu_si128((__m128i *)(p + partner), to_##name(b));                                                     \
    }                                                                                                                 \
    static inline void stream_halves_##name(uint16_t *p, int64_t partner, V a, V b) {                                 \
        _mm_stream_si128((__m128i *)p, to_##name(a));                                                                 \
        _mm_stream_si128((__m128i *)(p + partner), to_##name(b));                                                     \
    }
HALVES(bf16)
HALVES(f16)

static inline V in_order(V v) { return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8)); }
static inline void load_adjacent_f32(const float *p, int64_t partner, V *a, V *b) {
    V low = _mm256_loadu_ps(p), high = _mm256_loadu_ps(p + 8);
    (void)partner;
    *a = in_order(_mm256_shuffle_ps(low, high, 0x88));
    *b = in_order(_mm256_shuffle_ps(low, high, 0xdd));
}
static inline void zipped_f32(V a, V b, V *low, V *high) {
    V even = _mm256_unpacklo_ps(a, b), odd = _mm256_unpackhi_ps(a, b);
    *low = _mm256_permute2f128_ps(even, odd, 0x20);
    *high = _mm256_permute2f128_ps(even, odd, 0x31);
}
static inline void store_adjacent_f32(float *p, int64_t partner, V a, V b) {
    V low, high;
    (void)partner;
    zipped_f32(a, b, &low, &high);
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
}
static inline void stream_adjacent_f32(float *p, int64_t partner, V a, V b) {
    V low, high;
    (void)partner;
    zipped_f32(a, b, &low, &high);
    _mm256_stream_ps(p, low);
    _mm256_stream_ps(p + 8, high);
}
/* A pair in half precision is one word of 32 bits. */
static inline void load_adjacent_bf16(const uint16_t *p, int64_t partner, V *a, V *b) {
    __m256i pair = _mm256_loadu_si256((const __m256i *)p);
    (void)partner;
    *a = _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16));
    *b = _mm256_castsi256_ps(_mm256_and_si256(pair, _mm256_set1_epi32((int)0xffff0000u)));
}
/* a and b rounded, side by side. Rarely is one of them no number; the others round up where the lower half, plus one
 * after an odd upper half, passes the middle. */
static inline __m256i zipped_bf16(V a, V b) {
    if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)), 0))
        return _mm256_blend_epi16(_mm256_srli_epi32(rounded_bf16(a), 16), rounded_bf16(b), 0xaa);
    const __m256i one = _mm256_set1_epi16(1), middle = _mm256_set1_epi16((short)0x8000);
    __m256i ua = _mm256_castps_si256(a), ub = _mm256_castps_si256(b);
    __m256i upper = _mm256_blend_epi16(_mm256_srli_epi32(ua, 16), ub, 0xaa);
    __m256i lower = _mm256_blend_epi16(ua, _mm256_slli_epi32(ub, 16), 0xaa);
    __m256i past = _mm256_subs_epu16(_mm256_adds_epu16(lower, _mm256_and_si256(upper, one)), middle);
    return _mm256_add_epi16(upper, _mm256_min_epu16(past, one));
}
static inline void load_adjacent_f16(const uint16_t *p, int64_t partner, V *a, V *b) {
    __m256i pair = _mm256_loadu_si256((const __m256i *)p);
    (void)partner;
    *a = _mm256_cvtph_ps(packed(_mm256_and_si256(pair, _mm256_set1_epi32(0xffff))));
    *b = _mm256_cvtph_ps(packed(_mm256_srli_epi32(pair, 16)));
}
static inline __m256i zipped_f16(V a, V b) {
    return _mm256_or_si256(_mm256_cvtepu16_epi32(to_f16(a)), _mm256_slli_epi32(_mm256_cvtepu16_epi32(to_f16(b)), 16));
}
#define ADJACENT(name)                                                                                                \
    static inline void store_adjacent_##name(uint16_t *p, int64_t partner, V a, V b) {                                \
        (void)partner;                                                                                                \
        _mm256_storeu_si256((__m256i *)p, zipped_##name(a, b));                                                       \
    }                                                                                                                 \
    static inline void stream_adjacent_##name(uint16_t *p, int64_t partner, V a, V b) {                               \
        (void)partner;                                                                                                \
        _mm256_stream_si256((__m256i *)p, zipped_##name(a, b));                                                       \
    }
ADJACENT(bf16)
ADJACENT(f16)

/* Sixteen pairs in bfloat16: the zeros put below each half word make it a float, four from each side of a register,
 * and packing puts them back in order, so that only the cosines are gathered that way. */
static inline V sides_of(const float *p) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 8), 1);
}
static inline __m256i number_to_bf16(V v) { /* in the lower half of each word; v is a number */
    __m256i u = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
}
static inline __m256i any_to_bf16(V v) { return _mm256_srli_epi32(rounded_bf16(v), 16); }

static inline void turn_sixteen(const uint16_t *x, int64_t partner, const float *c, const float *s, V sign,
                                __m256i *y, __m256i *y_partner) {
    const __m256i zero = _mm256_setzero_si256(), xa = _mm256_loadu_si256((const __m256i *)x),
                  xb = _mm256_loadu_si256((const __m256i *)(x + partner));
    V a0 = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, xa));
    V b0 = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, xb));
    V a1 = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, xa));
    V b1 = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, xb));
    V c0 = sides_of(c), s0 = v_flip(sides_of(s), sign), c1 = sides_of(c + 4), s1 = v_flip(sides_of(s + 4), sign);
    V p0 = v_sub(v_mul(a0, c0), v_mul(b0, s0)), q0 = v_add(v_mul(b0, c0), v_mul(a0, s0));
    V p1 = v_sub(v_mul(a1, c1), v_mul(b1, s1)), q1 = v_add(v_mul(b1, c1), v_mul(a1, s1));
    V none = _mm256_or_ps(_mm256_cmp_ps(p0, q0, _CMP_UNORD_Q), _mm256_cmp_ps(p1, q1, _CMP_UNORD_Q));
    if (__builtin_expect(_mm256_movemask_ps(none), 0)) {
        *y = _mm256_packus_epi32(any_to_bf16(p0), any_to_bf16(p1));
        *y_partner = _mm256_packus_epi32(any_to_bf16(q0), any_to_bf16(q1));
    } else {
        *y = _mm256_packus_epi32(number_to_bf16(p0), number_to_bf16(p1));
        *y_partner = _mm256_packus_epi32(number_to_bf16(q0), number_to_bf16(q1));
    }
}
static inline void turn_sixteen_halves(const uint16_t *x, uint16_t *y, int64_t partner, const float *c,
                                       const float *s, V sign) {
    __m256i p, q;
    turn_sixteen(x, partner, c, s, sign, &p, &q);
    _mm256_storeu_si256((__m256i *)y, p);
    _mm256_storeu_si256((__m256i *)(y + partner), q);
}
static inline void stream_sixteen(uint16_t *y, __m256i v) { /* rows are aligned to 16 bytes */
    _mm_stream_si128((__m128i *)y, _mm256_castsi256_si128(v));
    _mm_stream_si128((__m128i *)(y + 8), _mm256_extracti128_si256(v, 1));
}
static inline void stream_sixteen_halves(const uint16_t *x, uint16_t *y, int64_t partner, const float *c,
                                         const float *s, V sign) {
    __m256i p, q;
    turn_sixteen(x, partner, c, s, sign, &p, &q);
    stream_sixteen(y, p);
    stream_sixteen(y + partner, q);
}
#define WIDE 16
#define WIDE_HALVES_BF16 turn_sixteen_halves
#define WIDE_STREAMED_BF16 stream_sixteen_halves

#include "rows.h"

typedef __m256d D;
#define D_LANES 4
#define d_all(v) _mm256_set1_pd(v)
#define d_load(p) _mm256_loadu_pd(p)
#define d_mul(a, b) _mm256_mul_pd(a, b)
#define d_fma(a, b, c) _mm256_fmadd_pd(a, b, c)
#define d_fma_less(a, b, c) _mm256_fmsub_pd(a, b, c)
#define d_store_f32(p, v) _mm_storeu_ps(p, _mm256_cvtpd_ps(v))

static inline __m256i product64(__m256i a, __m256i b) { /* low 64 bits of 64 x 64 */
    __m256i cross = _mm256_mullo_epi32(a, _mm256_shuffle_epi32(b, 0xb1));
    __m256i high = _mm256_slli_epi64(_mm256_add_epi32(cross, _mm256_srli_epi64(cross, 32)), 32);
    return _mm256_add_epi64(_mm256_mul_epu32(a, b), high);
}
static inline D double_of(__m256i v) { /* |v| <= 2^61: the upper word as a signed, the lower as an unsigned number */
    const __m256i high_magic = _mm256_set1_epi64x(0x4530000080000000);
    const __m256i low_magic = _mm256_set1_epi64x(0x4330000000000000);
    __m256i high = _mm256_xor_si256(_mm256_srli_epi64(v, 32), high_magic);
    __m256i low = _mm256_blend_epi32(low_magic, v, 0x55);
    D upper = _mm256_sub_pd(_mm256_castsi256_pd(high), d_all(0x1p84 + 0x1p63 + 0x1p52));
    return _mm256_add_pd(upper, _mm256_castsi256_pd(low));
}
static inline void phase_parts(uint64_t id, const int64_t *turns, D *x, D *odd, D *flip_c, D *flip_s) {
    __m256i phase = product64(_mm256_set1_epi64x((int64_t)id), _mm256_loadu_si256((const __m256i *)turns));
    __m256i quarter = _mm256_srli_epi64(_mm256_add_epi64(phase, _mm256_set1_epi64x((int64_t)1 << 61)), 62);
    __m256i bit = _mm256_set1_epi64x(1);
    *x = _mm256_mul_pd(double_of(_mm256_sub_epi64(phase, _mm256_slli_epi64(quarter, 62))), d_all(RADIANS));
    *odd = _mm256_castsi256_pd(_mm256_slli_epi64(quarter, 63));
    *flip_c = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_srli_epi64(_mm256_add_epi64(quarter, bit), 1), 63));
    *flip_s = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_srli_epi64(quarter, 1), 63));
}
static inline D d_choose(D odd, D yes, D no) { return _mm256_blendv_pd(no, yes, odd); }
#define d_xor(a, b) _mm256_xor_pd(a, b)

#include "angles.h"

const kernel_set posenc_avx2 = {
    POSENC_AVX2,
    LANES,
    {{halves_f32, adjacent_f32}, {halves_bf16, adjacent_bf16}, {halves_f16, adjacent_f16}},
    {{streamed_f32, streamed_adjacent_f32},
     {streamed_bf16, streamed_adjacent_bf16},
     {streamed_f16, streamed_adjacent_f16}},
    cos_sin_rows,
    add_angle_rows,
};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int posenc_no_avx2;
#endif
