/* One number at a time. */
#include <string.h>

#include "witnesses.h"

typedef double D;
#define D_LANES 1
#define TILE_ROWS 2
#define TILE_VECTORS 4

static inline uint64_t bits_of_double(double v) { uint64_t u; memcpy(&u, &v, 8); return u; }
static inline double double_of_bits(uint64_t u) { double v; memcpy(&v, &u, 8); return v; }

#define d_all(v) (v)
#define d_load(p) (*(p))
#define d_store(p, v) (*(p) = (v))
#define d_add(a, b) ((a) + (b))
#define d_sub(a, b) ((a) - (b))
#define d_mul(a, b) ((a) * (b))
#define d_fma(a, b, c) ((a) * (b) + (c))
#define d_less_product(a, b, c) ((a) - (b) * (c))
#define d_absolute(a) double_of_bits(bits_of_double(a) & ~((uint64_t)1 << 63))
#define d_any_below(a, b) ((a) < (b))
#define d_xor(a, b) double_of_bits(bits_of_double(a) ^ bits_of_double(b))
#define d_lowest_bit(a) double_of_bits(bits_of_double(a) << 63)
#define d_second_bit(a) double_of_bits((bits_of_double(a) & 2) << 62)
#define d_choose(odd, yes, no) (bits_of_double(odd) >> 63 ? (yes) : (no))
#define d_first_bits(a) double_of_bits(bits_of_double(a) >> 25 << 25)
#define d_two_to_minus(a) double_of_bits(((uint64_t)1023 << 52) - (bits_of_double(a) << 52))

#include "witness_loops.h"

const witness_kernels posenc_witnesses_portable = WITNESS_KERNELS;
