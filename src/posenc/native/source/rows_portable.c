/* No vector instructions of its own: what any C compiler makes of the loops. */
#include "kernels.h"
#include "scalar.h"

#define LANES 1
typedef float V;

static inline V v_load(const float *p) { return *p; }
static inline V v_add(V a, V b) { return a + b; }
static inline V v_sub(V a, V b) { return a - b; }
static inline V v_mul(V a, V b) { return a * b; }
static inline V v_all_bits(uint32_t u) { return float_of(u); }
static inline V v_flip(V a, V sign) { return flipped(a, bits_of(sign)); }

#define PAIRS(kind, name, type)                                                                                       \
    static inline void load_##kind##_##name(const type *p, int64_t partner, V *a, V *b) {                             \
        *a = get_##name(p);                                                                                           \
        *b = get_##name(p + partner);                                                                                 \
    }                                                                                                                 \
    static inline void store_##kind##_##name(type *p, int64_t partner, V a, V b) {                                    \
        put_##name(p, a);                                                                                             \
        put_##name(p + partner, b);                                                                                   \
    }
PAIRS(halves, f32, float)
PAIRS(halves, bf16, uint16_t)
PAIRS(halves, f16, uint16_t)
PAIRS(adjacent, f32, float)
PAIRS(adjacent, bf16, uint16_t)
PAIRS(adjacent, f16, uint16_t)

#include "rows.h"

static void cos_sin_rows(const int64_t *ids, int64_t n, const int64_t *turns, int64_t pairs, double gain, float *c,
                         float *s) {
    for (; n > 0; n--, ids++, c += pairs, s += pairs) {
        for (int64_t i = 0; i < pairs; i++) {
            double cosine, sine;
            cos_sin_of((uint64_t)*ids * (uint64_t)turns[i], &cosine, &sine);
            c[i] = (float)(cosine * gain);
            s[i] = (float)(sine * gain);
        }
    }
}

static void add_angle_rows(const double *ac, const double *as, const double *jc, const double *js, int64_t n,
                           int64_t pairs, float *c, float *s) {
    for (; n > 0; n--, jc += pairs, js += pairs, c += pairs, s += pairs) {
        for (int64_t i = 0; i < pairs; i++) {
            c[i] = (float)(ac[i] * jc[i] - as[i] * js[i]);
            s[i] = (float)(as[i] * jc[i] + ac[i] * js[i]);
        }
    }
}

const kernel_set posenc_portable = {
    POSENC_PORTABLE,
    LANES,
    {{halves_f32, adjacent_f32}, {halves_bf16, adjacent_bf16}, {halves_f16, adjacent_f16}},
    {{0, 0}, {0, 0}, {0, 0}},
    cos_sin_rows,
    add_angle_rows,
};
