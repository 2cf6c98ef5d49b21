/* Sums of cosines over many distances, for the search of bases: what each set of vector instructions supplies.
 *
 * Rows of pairs are padded with zeros to a multiple of PADDED numbers. Angles are at most 2^25 radians. */
#ifndef POSENC_WITNESSES_H
#define POSENC_WITNESSES_H

#include "kernels.h"

#define PADDED 8
#define MOST_PAIRS 2048
#define MOST_DISTANCE ((int64_t)1 << 24)
#define BLOCK 24 /* rows of distances that are multiplied with all columns, a multiple of every `rows` */

typedef struct {
    int64_t rows, columns; /* of one tile: what is kept in registers */
    /* theta = exp(-t u) */
    void (*powers)(double t, const double *u, int64_t padded, double *theta);
    /* cos and sin of distance * theta, the product exact */
    void (*turns)(double distance, const double *theta, int64_t padded, double *c, double *s);
    /* cos and sin of sums of two angles */
    void (*add)(const double *ca, const double *sa, const double *cb, const double *sb, int64_t padded, double *c,
                double *s);
    /* sum of mean * cos(x) and of slopes * x sin(x), x = distance * theta rounded once */
    void (*sums)(double distance, const double *theta, const double *mean, const double *slopes, int64_t padded,
                 double *value, double *slope);
    /* 0 where a tile of twice as many columns certainly has nothing below the limits, by float32; may be missing */
    int (*filter)(const float *c, const float *s, int64_t stride, const float *columns, int64_t pairs,
                  const float *limits);
    /* even and odd of `rows` rows and `columns` columns, kappa(c -+ j) = even +- odd; written, and 1, where some
     * even - |odd| is below the limit of its row */
    int (*tile)(const double *c, const double *s, int64_t stride, const double *columns, int64_t pairs,
                const double *limits, double *even, double *odd);
} witness_kernels;

extern const witness_kernels posenc_witnesses_portable;
#ifdef POSENC_X86
extern const witness_kernels posenc_witnesses_avx2, posenc_witnesses_avx512;
#endif

#endif
