/* 512-bit vectors: sixteen pairs at a time. Included once more where the processor rounds to bfloat16 itself. */
#include "kernels.h"
#ifdef POSENC_X86
#ifdef ROUNDS_TO_BF16
#define TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,f16c,fma"
#else
#define TARGET "avx512f,avx512bw,avx512dq,avx512vl,f16c,fma"
#endif
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define PUSH(target_list) PRAGMA(clang attribute push(__attribute__((target(target_list))), apply_to = function))
PUSH(TARGET)
#elif defined(ROUNDS_TO_BF16)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,f16c,fma,prefer-vector-width=512")
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,f16c,fma,prefer-vector-width=512")
#endif
#include <immintrin.h>

#include "scalar.h"

#define LANES 16
#define STREAMS 1
typedef __m512 V;

static inline V v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline V v_add(V a, V b) { return _mm512_add_ps(a, b); }
static inline V v_sub(V a, V b) { return _mm512_sub_ps(a, b); }
static inline V v_mul(V a, V b) { return _mm512_mul_ps(a, b); }
static inline V v_flip(V a, V sign) { return _mm512_xor_ps(a, sign); }
static inline V v_all_bits(uint32_t u) { return _mm512_castsi512_ps(_mm512_set1_epi32((int)u)); }

static inline V from_bf16(__m256i h) { /* each to the upper half of its word */
    const __m512i up = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3,
                                        0, 2, 0, 1, 0, 0, 0);
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaau, up, _mm512_castsi256_si512(h)));
}
static inline __m512i rounded_bf16(V v) { /* the result in the upper half of each word */
    __m512i u = _mm512_castps_si512(v), odd = _mm512_and_epi32(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_mask_mov_epi32(r, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc00000));
}
static inline __m256i rounded_to_bf16(V v) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded_bf16(v), 16)); }
#ifdef ROUNDS_TO_BF16
/* The instruction takes numbers below 2^-126 for zero; a vector that has one is rounded by hand. */
static inline __mmask16 subnormal(V v) { return _mm512_fpclass_ps_mask(v, 0x20); }
#else
static inline __m256i to_bf16(V v) { return rounded_to_bf16(v); }
#endif
static inline V from_f16(__m256i h) { return _mm512_cvtph_ps(h); }
static inline __m256i to_f16(V v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

static inline void load_halves_f32(const float *p, int64_t partner, V *a, V *b) {
    *a = _mm512_loadu_ps(p);
    *b = _mm512_loadu_ps(p + partner);
}
static inline void store_halves_f32(float *p, int64_t partner, V a, V b) {
    _mm512_storeu_ps(p, a);
    _mm512_storeu_ps(p + partner, b);
}
static inline void stream_halves_f32(float *p, int64_t partner, V a, V b) {
    _mm512_stream_ps(p, a);
    _mm512_stream_ps(p + partner, b);
}
#define HALVES(name)                                                                                                  \
    static inline void load_halves_##name(const uint16_t *p, int64_t partner, V *a, V *b) {                           \
        *a = from_##name(_mm256_loadu_si256((const __m256i *)p));                                                     \
        *b = from_##name(_mm256_loadu_si256((const __m256i *)(p + partner)));                                         \
    }                                                                                                                 \
    static inline void store_halves_##name(uint16_t *p, int64_t partner, V a, V b) {                                  \
        _mm256_storeu_si256((__m256i *)p, to_##name(a));                                                              \
        _mm256_storeu_si256((__m256i *)(p + partner), to_##name(b));                                                  \
    }                                                                                                                 \
    static inline void stream_halves_##name(uint16_t *p, int64_t partner, V a, V b) {                                 \
        _mm256_stream_si256((__m256i *)p, to_##name(a));                                                              \
        _mm256_stream_si256((__m256i *)(p + partner), to_##name(b));                                                  \
    }
HALVES(f16)
#ifdef ROUNDS_TO_BF16
static inline void load_halves_bf16(const uint16_t *p, int64_t partner, V *a, V *b) {
    *a = from_bf16(_mm256_loadu_si256((const __m256i *)p));
    *b = from_bf16(_mm256_loadu_si256((const __m256i *)(p + partner)));
}
static inline void round_halves_bf16(V a, V b, __m256i *low, __m256i *high) {
    if (__builtin_expect(subnormal(a) | subnormal(b), 0)) {
        *low = rounded_to_bf16(a);
        *high = rounded_to_bf16(b);
        return;
    }
    __m512i both = (__m512i)_mm512_cvtne2ps_pbh(b, a);
    *low = _mm512_castsi512_si256(both);
    *high = _mm512_extracti64x4_epi64(both, 1);
}
static inline void store_halves_bf16(uint16_t *p, int64_t partner, V a, V b) {
    __m256i low, high;
    round_halves_bf16(a, b, &low, &high);
    _mm256_storeu_si256((__m256i *)p, low);
    _mm256_storeu_si256((__m256i *)(p + partner), high);
}
static inline void stream_halves_bf16(uint16_t *p, int64_t partner, V a, V b) {
    __m256i low, high;
    round_halves_bf16(a, b, &low, &high);
    _mm256_stream_si256((__m256i *)p, low);
    _mm256_stream_si256((__m256i *)(p + partner), high);
}
#else
HALVES(bf16)
#endif

static inline void load_adjacent_f32(const float *p, int64_t partner, V *a, V *b) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    V low = _mm512_loadu_ps(p), high = _mm512_loadu_ps(p + 16);
    (void)partner;
    *a = _mm512_permutex2var_ps(low, even, high);
    *b = _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
}
static inline void zipped_f32(V a, V b, V *low, V *high) {
    const __m512i zip = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *low = _mm512_permutex2var_ps(a, zip, b);
    *high = _mm512_permutex2var_ps(a, _mm512_add_epi32(zip, _mm512_set1_epi32(8)), b);
}
static inline void store_adjacent_f32(float *p, int64_t partner, V a, V b) {
    V low, high;
    (void)partner;
    zipped_f32(a, b, &low, &high);
    _mm512_storeu_ps(p, low);
    _mm512_storeu_ps(p + 16, high);
}
static inline void stream_adjacent_f32(float *p, int64_t partner, V a, V b) {
    V low, high;
    (void)partner;
    zipped_f32(a, b, &low, &high);
    _mm512_stream_ps(p, low);
    _mm512_stream_ps(p + 16, high);
}
/* A pair in half precision is one word of 32 bits. */
static inline void load_adjacent_bf16(const uint16_t *p, int64_t partner, V *a, V *b) {
    __m512i pair = _mm512_loadu_si512(p);
    (void)partner;
    *a = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
    *b = _mm512_castsi512_ps(_mm512_and_epi32(pair, _mm512_set1_epi32((int)0xffff0000u)));
}
static inline __m512i zipped_bf16(V a, V b) {
#ifdef ROUNDS_TO_BF16
    if (__builtin_expect(!(subnormal(a) | subnormal(b)), 1)) {
        const __m512i zip = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                             21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
        return _mm512_permutexvar_epi16(zip, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
#endif
    return _mm512_mask_mov_epi16(_mm512_srli_epi32(rounded_bf16(a), 16), 0xaaaaaaaau, rounded_bf16(b));
}
static inline void load_adjacent_f16(const uint16_t *p, int64_t partner, V *a, V *b) {
    __m512i pair = _mm512_loadu_si512(p);
    (void)partner;
    *a = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pair));
    *b = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pair, 16)));
}
static inline __m512i zipped_f16(V a, V b) {
    return _mm512_or_epi32(_mm512_cvtepu16_epi32(to_f16(a)), _mm512_slli_epi32(_mm512_cvtepu16_epi32(to_f16(b)), 16));
}
#define ADJACENT(name)                                                                                                \
    static inline void store_adjacent_##name(uint16_t *p, int64_t partner, V a, V b) {                                \
        (void)partner;                                                                                                \
        _mm512_storeu_si512(p, zipped_##name(a, b));                                                                  \
    }                                                                                                                 \
    static inline void stream_adjacent_##name(uint16_t *p, int64_t partner, V a, V b) {                               \
        (void)partner;                                                                                                \
        _mm512_stream_si512((__m512i *)p, zipped_##name(a, b));                                                       \
    }
ADJACENT(bf16)
ADJACENT(f16)

#include "rows.h"

typedef __m512d D;
#define D_LANES 8
#define d_all(v) _mm512_set1_pd(v)
#define d_load(p) _mm512_loadu_pd(p)
#define d_mul(a, b) _mm512_mul_pd(a, b)
#define d_fma(a, b, c) _mm512_fmadd_pd(a, b, c)
#define d_fma_less(a, b, c) _mm512_fmsub_pd(a, b, c)
#define d_store_f32(p, v) _mm256_storeu_ps(p, _mm512_cvtpd_ps(v))

static inline void phase_parts(uint64_t id, const int64_t *turns, D *x, D *odd, D *flip_c, D *flip_s) {
    __m512i phase = _mm512_mullo_epi64(_mm512_set1_epi64((int64_t)id), _mm512_loadu_si512(turns));
    __m512i quarter = _mm512_srli_epi64(_mm512_add_epi64(phase, _mm512_set1_epi64((int64_t)1 << 61)), 62);
    __m512i bit = _mm512_set1_epi64(1);
    *x = _mm512_mul_pd(_mm512_cvtepi64_pd(_mm512_sub_epi64(phase, _mm512_slli_epi64(quarter, 62))), d_all(RADIANS));
    *odd = _mm512_castsi512_pd(_mm512_and_si512(quarter, bit));
    *flip_c = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_srli_epi64(_mm512_add_epi64(quarter, bit), 1), 63));
    *flip_s = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_srli_epi64(quarter, 1), 63));
}
static inline D d_choose(D odd, D yes, D no) {
    return _mm512_mask_blend_pd(_mm512_test_epi64_mask(_mm512_castpd_si512(odd), _mm512_castpd_si512(odd)), no, yes);
}
#define d_xor(a, b) _mm512_xor_pd(a, b)

#include "angles.h"

#ifdef ROUNDS_TO_BF16
const kernel_set posenc_avx512_bf16 = {
    POSENC_AVX512_BF16,
#else
const kernel_set posenc_avx512 = {
    POSENC_AVX512,
#endif
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
typedef int posenc_no_avx512;
#endif
