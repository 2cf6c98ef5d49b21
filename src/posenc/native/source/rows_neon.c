/* 128-bit vectors of 64-bit Arm: four pairs at a time. */
#include "kernels.h"
#ifdef POSENC_ARM
#include <arm_neon.h>

#include "scalar.h"

#define LANES 4
typedef float32x4_t V;

static inline V v_load(const float *p) { return vld1q_f32(p); }
static inline V v_add(V a, V b) { return vaddq_f32(a, b); }
static inline V v_sub(V a, V b) { return vsubq_f32(a, b); }
static inline V v_mul(V a, V b) { return vmulq_f32(a, b); }
static inline V v_all_bits(uint32_t u) { return vreinterpretq_f32_u32(vdupq_n_u32(u)); }
static inline V v_flip(V a, V sign) {
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(sign)));
}

static inline V from_bf16(uint16x4_t h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
static inline uint16x4_t to_bf16(V v) {
    uint32x4_t u = vreinterpretq_u32_f32(v), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t r = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), r, vdupq_n_u32(0x7fc00000)), 16);
}
static inline V from_f16(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
static inline uint16x4_t to_f16(V v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }

static inline void load_halves_f32(const float *p, int64_t partner, V *a, V *b) {
    *a = vld1q_f32(p);
    *b = vld1q_f32(p + partner);
}
static inline void store_halves_f32(float *p, int64_t partner, V a, V b) {
    vst1q_f32(p, a);
    vst1q_f32(p + partner, b);
}
static inline void load_adjacent_f32(const float *p, int64_t partner, V *a, V *b) {
    float32x4x2_t pair = vld2q_f32(p);
    (void)partner;
    *a = pair.val[0];
    *b = pair.val[1];
}
static inline void store_adjacent_f32(float *p, int64_t partner, V a, V b) {
    float32x4x2_t pair = {{a, b}};
    (void)partner;
    vst2q_f32(p, pair);
}
#define PAIRS(name)                                                                                                   \
    static inline void load_halves_##name(const uint16_t *p, int64_t partner, V *a, V *b) {                           \
        *a = from_##name(vld1_u16(p));                                                                                \
        *b = from_##name(vld1_u16(p + partner));                                                                      \
    }                                                                                                                 \
    static inline void store_halves_##name(uint16_t *p, int64_t partner, V a, V b) {                                  \
        vst1_u16(p, to_##name(a));                                                                                    \
        vst1_u16(p + partner, to_##name(b));                                                                          \
    }                                                                                                                 \
    static inline void load_adjacent_##name(const uint16_t *p, int64_t partner, V *a, V *b) {                         \
        uint16x4x2_t pair = vld2_u16(p);                                                                              \
        (void)partner;                                                                                                \
        *a = from_##name(pair.val[0]);                                                                                \
        *b = from_##name(pair.val[1]);                                                                                \
    }                                                                                                                 \
    static inline void store_adjacent_##name(uint16_t *p, int64_t partner, V a, V b) {                                \
        uint16x4x2_t pair = {{to_##name(a), to_##name(b)}};                                                           \
        (void)partner;                                                                                                \
        vst2_u16(p, pair);                                                                                            \
    }
PAIRS(bf16)
PAIRS(f16)

#include "rows.h"

/* Angles are the compiler's: posenc_portable's functions fill the rest of the set. */
const kernel_set posenc_neon = {
    POSENC_NEON,
    LANES,
    {{halves_f32, adjacent_f32}, {halves_bf16, adjacent_bf16}, {halves_f16, adjacent_f16}},
    {{0, 0}, {0, 0}, {0, 0}},
    0,
    0,
};
#else
typedef int posenc_no_neon;
#endif
