/* The loops, written once for every set of vector instructions.
 *
 * The file that includes this has named its vectors: V of LANES floats with add, sub, mul, flip; and for each dtype
 * and kind of pairs load (a, b of LANES pairs) and store. Products and sums are rounded one by one, never fused, so
 * that every set of instructions, and PyTorch's own operations, give the same bits. */
#ifndef LANES
#error "define the vectors first"
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#ifndef WIDE /* no way of its own for more than one vector of bfloat16 at a time */
#define WIDE 0
#define WIDE_HALVES_BF16 UNUSED
#define WIDE_STREAMED_BF16 UNUSED
#endif
#define UNUSED(x, y, partner, c, s, sign)

/* The usual numbers of pairs are known to the compiler, which then leaves no loop within a row. wide turns wide_pairs
 * at a time, as far as a row has that many; 0 pairs for none. */
#define ROWS(name, type, load, store, get, put, adjacent, wide_pairs, wide)                                           \
    INLINE void name##_of(const char *x0, char *y0, const float *c, const float *s, int64_t n, int64_t x_step,        \
                          int64_t y_step, int64_t c_step, const int64_t pairs, int64_t partner, uint32_t flip) {      \
        const int64_t whole = pairs - pairs % LANES, stride = (adjacent) ? 2 : 1;                                     \
        const int64_t widely = (wide_pairs) ? pairs - pairs % ((wide_pairs) ? (wide_pairs) : 1) : 0;                  \
        const V sign = v_all_bits(flip);                                                                              \
        for (; n > 0; n--, x0 += x_step, y0 += y_step, c += c_step, s += c_step) {                                    \
            const type *x = (const type *)x0;                                                                         \
            type *y = (type *)y0;                                                                                     \
            for (int64_t i = 0; i < widely; i += (wide_pairs)) {                                                      \
                wide(x + i, y + i, partner, c + i, s + i, sign);                                                      \
            }                                                                                                         \
            for (int64_t i = widely; i < whole; i += LANES) {                                                         \
                V a, b, cos = v_load(c + i), sin = v_flip(v_load(s + i), sign);                                       \
                load(x + stride * i, partner, &a, &b);                                                                \
                store(y + stride * i, partner, v_sub(v_mul(a, cos), v_mul(b, sin)),                                   \
                      v_add(v_mul(b, cos), v_mul(a, sin)));                                                           \
            }                                                                                                         \
            for (int64_t i = whole; i < pairs; i++) {                                                                 \
                float a = get(x + stride * i), b = get(x + stride * i + partner), sin = flipped(s[i], flip);          \
                put(y + stride * i, a * c[i] - b * sin);                                                              \
                put(y + stride * i + partner, b * c[i] + a * sin);                                                    \
            }                                                                                                         \
        }                                                                                                             \
    }                                                                                                                 \
    static void name(const char *x, char *y, const float *c, const float *s, int64_t n, int64_t x_step,               \
                     int64_t y_step, int64_t c_step, int64_t pairs, int64_t partner, uint32_t flip) {                 \
        if (pairs == 32) name##_of(x, y, c, s, n, x_step, y_step, c_step, 32, partner, flip);                         \
        else if (pairs == 64) name##_of(x, y, c, s, n, x_step, y_step, c_step, 64, partner, flip);                    \
        else name##_of(x, y, c, s, n, x_step, y_step, c_step, pairs, partner, flip);                                  \
    }

ROWS(halves_f32, float, load_halves_f32, store_halves_f32, get_f32, put_f32, 0, 0, UNUSED)
ROWS(halves_bf16, uint16_t, load_halves_bf16, store_halves_bf16, get_bf16, put_bf16, 0, WIDE, WIDE_HALVES_BF16)
ROWS(halves_f16, uint16_t, load_halves_f16, store_halves_f16, get_f16, put_f16, 0, 0, UNUSED)
ROWS(adjacent_f32, float, load_adjacent_f32, store_adjacent_f32, get_f32, put_f32, 1, 0, UNUSED)
ROWS(adjacent_bf16, uint16_t, load_adjacent_bf16, store_adjacent_bf16, get_bf16, put_bf16, 1, 0, UNUSED)
ROWS(adjacent_f16, uint16_t, load_adjacent_f16, store_adjacent_f16, get_f16, put_f16, 1, 0, UNUSED)
#ifdef STREAMS
ROWS(streamed_f32, float, load_halves_f32, stream_halves_f32, get_f32, put_f32, 0, 0, UNUSED)
ROWS(streamed_bf16, uint16_t, load_halves_bf16, stream_halves_bf16, get_bf16, put_bf16, 0, WIDE, WIDE_STREAMED_BF16)
ROWS(streamed_f16, uint16_t, load_halves_f16, stream_halves_f16, get_f16, put_f16, 0, 0, UNUSED)
ROWS(streamed_adjacent_f32, float, load_adjacent_f32, stream_adjacent_f32, get_f32, put_f32, 1, 0, UNUSED)
ROWS(streamed_adjacent_bf16, uint16_t, load_adjacent_bf16, stream_adjacent_bf16, get_bf16, put_bf16, 1, 0, UNUSED)
ROWS(streamed_adjacent_f16, uint16_t, load_adjacent_f16, stream_adjacent_f16, get_f16, put_f16, 1, 0, UNUSED)
#endif
