/* The plain C interface: rotations of queries and keys, cosines and sines of positions, tables by angle addition.
 *
 * No Python and no PyTorch header is needed. Every function checks before it reads what it was handed a pointer to,
 * and returns a status (0: done); nothing is allocated and nothing is kept but the chosen vector instructions. */
#ifndef POSENC_H
#define POSENC_H

#include <stdint.h>

#define POSENC_ABI 1

#if defined(_WIN32)
#define POSENC_API __declspec(dllexport)
#else
#define POSENC_API __attribute__((visibility("default")))
#endif

enum { POSENC_FLOAT32 = 0, POSENC_BFLOAT16 = 1, POSENC_FLOAT16 = 2 };
enum { POSENC_PORTABLE = 0, POSENC_NEON = 1, POSENC_AVX2 = 2, POSENC_AVX512 = 3, POSENC_AVX512_BF16 = 4 };

/* Queries or keys: (batch, heads, tokens, width), channels side by side. Strides in elements: batch, head, token. */
typedef struct {
    const void *x;
    void *out; /* x itself with the same strides turns in place; otherwise the two do not overlap */
    int64_t heads;
    int64_t x_stride[3], out_stride[3];
} posenc_side;

/* Pair i is channels first + i * step and first + i * step + partner; other channels are copied. */
typedef struct {
    int64_t dtype;
    int64_t sides; /* 1, or 2: queries and keys */
    posenc_side side[2];
    int64_t batch, tokens, width;
    int64_t first, pairs, step, partner;
    const float *cos, *sin;   /* (batch, head, token, pairs), pairs side by side */
    int64_t table_stride[3];  /* batch, head, token (or row of the table); 0 where shared */
    const int64_t *ids;       /* (batch, tokens) rows of the table; NULL: the token itself */
    int64_t id_stride[2];     /* batch, token */
    int64_t rows;             /* of the table, when there are ids */
    int64_t inverse;          /* turn back */
    int64_t streaming;        /* 1: past the caches, 0: through them, -1: past them when the result is large */
} posenc_rotation;

POSENC_API int posenc_abi(void);
POSENC_API int posenc_level(void);           /* the vector instructions in use */
POSENC_API int posenc_best_level(void);      /* the best that this processor has and this library was built with */
POSENC_API int posenc_use_level(int level);  /* choose lower ones; nonzero when they are not there */
POSENC_API const char *posenc_message(int status);

POSENC_API int posenc_check(const posenc_rotation *r);
POSENC_API int posenc_rotate(const posenc_rotation *r);
/* The same in pieces, after posenc_check: units begin to end of posenc_units; pieces may run side by side. */
POSENC_API int64_t posenc_units(const posenc_rotation *r);
POSENC_API void posenc_rotate_units(const posenc_rotation *r, int64_t begin, int64_t end);

/* cos and sin of ids[n] * turns[pairs] with the gain; turns in 2^-64 of a turn, (n, pairs) results side by side. */
POSENC_API int posenc_cos_sin(const int64_t *ids, int64_t n, const int64_t *turns, int64_t pairs, double gain,
                              float *cos, float *sin);

/* Row a * steps + j of the tables is the angle of start a plus that of step j: cos(a + j), sin(a + j), float64 in. */
POSENC_API int posenc_add_angles(const double *start_cos, const double *start_sin, const double *step_cos,
                                 const double *step_sin, int64_t steps, int64_t pairs, int64_t rows, float *cos,
                                 float *sin);

/* Sums of cosines kappa(D) = mean of cos(D theta), theta = exp(-t u), for the search of bases; sizes up to 2048 pairs,
 * distances of at most 2^24, theta and u between 0 and 1. Beside the rounding of theta and of D theta, a mean of
 * cosines is right to (16 + pairs) * 2^-52: each cosine to 2^-51, the sum in any order. */

/* kappa and its derivative by t, mean of u x sin(x) with x = D theta, at n distances. */
POSENC_API int posenc_cosine_sums(const double *distances, int64_t n, const double *theta, const double *u,
                                  int64_t pairs, double *value, double *slope);

/* Go from t as far as the distances exclude bases, in at most so many steps of at least `least`, or past stop; end is
 * where, reach how far beyond the last t looked at each sum stays negative. cosines bounds the error of a mean. */
POSENC_API int posenc_exclude(const double *distances, int64_t n, double t, double stop, const double *u,
                              int64_t pairs, double cosines, double least, int64_t steps, double *reach, double *end);

/* The lowest scores below a limit among the distances start <= D < start + length, 1 <= D <= last, of some ranges. */
typedef struct {
    const double *theta;
    int64_t pairs;
    const int64_t *starts;
    int64_t ranges, length, last;
    int64_t per_distance; /* 1: scores are (kappa - offset) / D, 0: kappa */
    double offset, limit; /* the limit falls to the highest of `most` scores */
    int64_t most, found;  /* found is what an earlier call left here, or 0 */
    double *scores;
    int64_t *distances;
    double *work;
    int64_t room; /* at least posenc_lowest_work numbers */
} posenc_lows;

POSENC_API int64_t posenc_lowest_work(int64_t pairs, int64_t length);
POSENC_API int posenc_lowest(posenc_lows *lows);

#endif
