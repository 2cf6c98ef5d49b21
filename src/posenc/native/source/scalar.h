/* One number at a time: the ends of rows that fill no vector, and everything on processors without a kernel set. */
#ifndef POSENC_SCALAR_H
#define POSENC_SCALAR_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float v) { uint32_t u; memcpy(&u, &v, 4); return u; }
static inline float float_of(uint32_t u) { float v; memcpy(&v, &u, 4); return v; }
static inline float flipped(float v, uint32_t flip) { return float_of(bits_of(v) ^ flip); }

static inline float get_f32(const float *p) { return *p; }
static inline void put_f32(float *p, float v) { *p = v; }

static inline float get_bf16(const uint16_t *p) { return float_of((uint32_t)*p << 16); }
static inline void put_bf16(uint16_t *p, float v) { /* to nearest, ties to even */
    uint32_t u = bits_of(v);
    *p = (u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0 : (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

static inline float get_f16(const uint16_t *p) {
    uint32_t h = *p, sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, fraction = h & 1023;
    if (exponent == 31) return float_of(sign | 0x7f800000u | (fraction << 13));
    if (exponent == 0) { /* fraction * 2^-24 */
        float v = (float)fraction * 5.9604644775390625e-8f;
        return float_of(bits_of(v) | sign);
    }
    return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
}
static inline void put_f16(uint16_t *p, float v) { /* to nearest, ties to even */
    uint32_t u = bits_of(v), sign = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
    if (m > 0x7f800000u) { *p = (uint16_t)(sign | 0x7e00u); return; }
    if (m >= 0x477ff000u) { *p = (uint16_t)(sign | 0x7c00u); return; } /* 65520 and beyond */
    if (m < 0x38800000u) { /* below 2^-14: adding 0.5 leaves multiples of 2^-24 in the last bits, rounded */
        *p = (uint16_t)(sign | (bits_of(float_of(m) + 0.5f) - 0x3f000000u));
        return;
    }
    *p = (uint16_t)(sign | ((m - 0x38000000u + 0xfffu + ((m >> 13) & 1)) >> 13));
}

/* cos and sin of a phase in 2^-64 turns: the nearest quarter turn, then Taylor's series within an eighth of a turn. */
#define RADIANS (6.283185307179586476925286766559 / 0x1p64)
#define S3 (-1.0 / 6)
#define S5 (1.0 / 120)
#define S7 (-1.0 / 5040)
#define S9 (1.0 / 362880)
#define S11 (-1.0 / 39916800)
#define S13 (1.0 / 6227020800.0)
#define C2 (-1.0 / 2)
#define C4 (1.0 / 24)
#define C6 (-1.0 / 720)
#define C8 (1.0 / 40320)
#define C10 (-1.0 / 3628800)
#define C12 (1.0 / 479001600)
#define C14 (-1.0 / 87178291200.0)

static inline void cos_sin_of(uint64_t phase, double *c, double *s) {
    uint64_t quarter = (phase + ((uint64_t)1 << 61)) >> 62;
    double x = (double)(int64_t)(phase - (quarter << 62)) * RADIANS, z = x * x;
    double sine = x + x * z * (S3 + z * (S5 + z * (S7 + z * (S9 + z * (S11 + z * S13)))));
    double cosine = 1 + z * (C2 + z * (C4 + z * (C6 + z * (C8 + z * (C10 + z * (C12 + z * C14))))));
    double a = quarter & 1 ? sine : cosine, b = quarter & 1 ? cosine : sine;
    *c = (quarter + 1) & 2 ? -a : a;
    *s = quarter & 2 ? -b : b;
}

#endif
