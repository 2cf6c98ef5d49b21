/* What each set of vector instructions supplies; one table of functions is in use at a time. */
#ifndef POSENC_KERNELS_H
#define POSENC_KERNELS_H

#include "posenc.h"

/* Turn n rows. Strides in bytes for x and y, in floats for the table; flip is 0 or the sign bit for sines. */
typedef void (*rows_function)(const char *x, char *y, const float *c, const float *s, int64_t n, int64_t x_step,
                              int64_t y_step, int64_t c_step, int64_t pairs, int64_t partner, uint32_t flip);

typedef struct {
    int level;
    int64_t lanes;
    rows_function rows[3][2];     /* dtype; pairs (i, i + partner), pairs (2i, 2i + 1) */
    rows_function streamed[3][2]; /* the same past the caches, aligned; NULL where there is none */
    void (*cos_sin)(const int64_t *ids, int64_t n, const int64_t *turns, int64_t pairs, double gain, float *c,
                    float *s);
    void (*add_angles)(const double *ac, const double *as, const double *jc, const double *js, int64_t n, int64_t pairs,
                       float *c, float *s);
} kernel_set;

extern const kernel_set posenc_portable;
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define POSENC_X86 1
extern const kernel_set posenc_avx2, posenc_avx512, posenc_avx512_bf16;
#elif defined(__aarch64__) && defined(__GNUC__)
#define POSENC_ARM 1
extern const kernel_set posenc_neon;
#endif

const kernel_set *posenc_kernels(void);

#endif
