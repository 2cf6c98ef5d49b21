/* The search of bases: how far distances exclude bases, and which of many distances have the lowest sums. */
#include "witnesses.h"

#include <math.h>
#include <string.h>

#define NARROW 32 /* half a row where a range is short */
#define WIDE 128
#define SHORT_RANGE ((int64_t)1 << 13)
#define UNIT 0x1p-52
#define SHORTER (1 - 1e-9) /* steps are shortened by more than their own rounding */
#define TINY 1e-300        /* keeps quotients of two zeros finite */

enum { DONE = 0, BAD_SIZE = 2, BAD_POINTER = 4, BAD_NUMBER = 7 };

static const witness_kernels *kernels(void) {
#ifdef POSENC_X86
    int level = posenc_level();
    if (level >= POSENC_AVX512) return &posenc_witnesses_avx512;
    if (level == POSENC_AVX2) return &posenc_witnesses_avx2;
#endif
    return &posenc_witnesses_portable;
}

static int64_t padded_of(int64_t pairs) { return (pairs + PADDED - 1) / PADDED * PADDED; }

static void pad(const double *from, int64_t pairs, double *to) {
    memcpy(to, from, (size_t)pairs * sizeof *to);
    for (int64_t i = pairs; i < padded_of(pairs); i++) to[i] = 0;
}

static int within(const double *v, int64_t n, double least, double most) {
    for (int64_t i = 0; i < n; i++)
        if (!(v[i] >= least && v[i] <= most)) return 0;
    return 1;
}

static int sizes_fit(int64_t n, int64_t pairs) { return n >= 0 && pairs >= 1 && pairs <= MOST_PAIRS; }

int posenc_cosine_sums(const double *distances, int64_t n, const double *theta, const double *u, int64_t pairs,
                       double *value, double *slope) {
    double angles[MOST_PAIRS], mean[MOST_PAIRS], slopes[MOST_PAIRS];
    if (!sizes_fit(n, pairs)) return BAD_SIZE;
    if (!n) return DONE;
    if (!distances || !theta || !u || !value || !slope) return BAD_POINTER;
    if (!within(distances, n, 0, (double)MOST_DISTANCE) || !within(theta, pairs, 0, 1)) return BAD_NUMBER;
    const int64_t padded = padded_of(pairs);
    pad(theta, pairs, angles);
    pad(u, pairs, slopes);
    for (int64_t i = 0; i < padded; i++) {
        mean[i] = i < pairs ? 1.0 / (double)pairs : 0;
        slopes[i] /= (double)pairs;
    }
    const witness_kernels *k = kernels();
    for (int64_t j = 0; j < n; j++) k->sums(distances[j], angles, mean, slopes, padded, value + j, slope + j);
    return DONE;
}

/* The bounds of posenc.analysis.base_search.sums.bounds: coefficients of the distance and of its square. */
typedef struct {
    double bend[2], error, slope_error[2];
} bounds;

static bounds bounds_at(double t, const double *theta, const double *u, int64_t pairs, double cosines) {
    bounds b = {{0, 0}, 0, {0, 0}};
    for (int64_t i = 0; i < pairs; i++) {
        double x = u[i] * theta[i], angle = UNIT * (2 + t * u[i]) * theta[i];
        b.bend[0] += u[i] * x;
        b.bend[1] += x * x;
        b.error += angle;
        b.slope_error[0] += x * cosines;
        b.slope_error[1] += x * angle;
    }
    double n = (double)pairs;
    b.bend[0] /= n;
    b.bend[1] /= n;
    b.error /= n;
    b.slope_error[0] /= n;
    b.slope_error[1] /= n;
    return b;
}

/* How far a sum that is negative at t stays so: the root of value + slope h + bend h^2 / 2, errors taken off. */
static double reach_of(double distance, double value, double slope, const bounds *b, double cosines) {
    double v = -value - distance * b->error - cosines;
    if (!(v > 0)) return 0;
    double s = -slope - distance * (b->slope_error[0] + distance * b->slope_error[1]);
    double bend = distance * (b->bend[0] + distance * b->bend[1]), root = sqrt(s * s + 2 * bend * v);
    return SHORTER * (s < 0 ? 2 * v / (root - s + TINY) : (root + s) / (bend + TINY));
}

int posenc_exclude(const double *distances, int64_t n, double t, double stop, const double *u, int64_t pairs,
                   double cosines, double least, int64_t steps, double *reach, double *end) {
    double exponents[MOST_PAIRS], theta[MOST_PAIRS], mean[MOST_PAIRS], slopes[MOST_PAIRS];
    if (!sizes_fit(n, pairs)) return BAD_SIZE;
    if (!u || !reach || !end || (n && !distances)) return BAD_POINTER;
    if (!within(distances, n, 0, (double)MOST_DISTANCE) || !within(u, pairs, 0, 1)) return BAD_NUMBER;
    if (!(t >= 0 && stop <= 700 && cosines >= 0)) return BAD_NUMBER;
    const witness_kernels *k = kernels();
    const int64_t padded = padded_of(pairs);
    pad(u, pairs, exponents);
    for (int64_t i = 0; i < padded; i++) {
        mean[i] = i < pairs ? 1.0 / (double)pairs : 0;
        slopes[i] = exponents[i] / (double)pairs;
    }
    for (; steps > 0 && t < stop; steps--) {
        double farthest = 0;
        k->powers(t, exponents, padded, theta);
        bounds b = bounds_at(t, theta, exponents, pairs, cosines);
        for (int64_t j = 0; j < n; j++) {
            double value, slope;
            k->sums(distances[j], theta, mean, slopes, padded, &value, &slope);
            reach[j] = reach_of(distances[j], value, slope, &b, cosines);
            if (reach[j] > farthest) farthest = reach[j];
        }
        if (!(farthest >= least) || t + farthest == t) break;
        t += farthest;
    }
    *end = t;
    return DONE;
}

static int64_t half_of(int64_t length) { return length <= SHORT_RANGE ? NARROW : WIDE; }

/* Where the tables of one call lie in its work: columns, cosines and sines of a block of rows and of the steps from its
 * first row to the others, then the same columns and rows in float32. */
typedef struct {
    int64_t half, stride;
    double *columns, *c, *s, *step_c, *step_s;
    float *columns_f32, *c_f32, *s_f32;
} tables;

int64_t posenc_lowest_work(int64_t pairs, int64_t length) {
    if (!sizes_fit(0, pairs) || length < 1) return -1;
    return 3 * half_of(length) * pairs + 5 * BLOCK * padded_of(pairs);
}

static tables tables_of(const posenc_lows *l) {
    tables t = {half_of(l->length), padded_of(l->pairs), l->work, 0, 0, 0, 0, 0, 0, 0};
    const int64_t columns = 2 * t.half * l->pairs, rows = BLOCK * t.stride;
    t.c = t.columns + columns;
    t.s = t.c + rows;
    t.step_c = t.s + rows;
    t.step_s = t.step_c + rows;
    t.columns_f32 = (float *)(t.step_s + rows);
    t.c_f32 = t.columns_f32 + columns;
    t.s_f32 = t.c_f32 + rows;
    /* rows past the last of a block are multiplied, though no result of theirs counts */
    memset(t.c, 0, (size_t)(2 * rows) * sizeof *t.c);
    memset(t.c_f32, 0, (size_t)(2 * rows) * sizeof *t.c_f32);
    return t;
}

/* A heap with the highest score on top. */
static void sift_down(posenc_lows *l, int64_t at, double score, int64_t distance) {
    for (int64_t child; (child = 2 * at + 1) < l->found; at = child) {
        if (child + 1 < l->found && l->scores[child + 1] > l->scores[child]) child++;
        if (l->scores[child] <= score) break;
        l->scores[at] = l->scores[child];
        l->distances[at] = l->distances[child];
    }
    l->scores[at] = score;
    l->distances[at] = distance;
}

static void keep(posenc_lows *l, double score, int64_t distance) {
    if (l->found < l->most) {
        int64_t at = l->found++;
        for (int64_t parent; at > 0 && l->scores[parent = (at - 1) / 2] < score; at = parent) {
            l->scores[at] = l->scores[parent];
            l->distances[at] = l->distances[parent];
        }
        l->scores[at] = score;
        l->distances[at] = distance;
    } else sift_down(l, 0, score, distance);
    if (l->found == l->most && l->scores[0] < l->limit) l->limit = l->scores[0];
}

static void consider(posenc_lows *l, double value, int64_t distance, int64_t first, int64_t stop) {
    if (distance < first || distance >= stop) return;
    double score = l->per_distance ? (value - l->offset) / (double)distance : value;
    if (score < l->limit) keep(l, score, distance);
}

/* What a sum in a row of distances must be below to matter. */
static double row_limit(const posenc_lows *l, double centre, double half) {
    if (!l->per_distance) return l->limit;
    return l->offset + l->limit * (l->limit > 0 ? centre + half : centre - half);
}

static void fill_tables(const posenc_lows *l, const witness_kernels *k, const double *theta, const tables *t) {
    enum { SMALL = 8 };
    double c[MOST_PAIRS], s[MOST_PAIRS], c_start[MOST_PAIRS], s_start[MOST_PAIRS];
    const int64_t w = k->columns, wide = 2 * w;
    for (int64_t j = 0; j < SMALL; j++) /* the place of steps, not yet needed */
        k->turns((double)j, theta, t->stride, t->step_c + j * t->stride, t->step_s + j * t->stride);
    for (int64_t j = 0; j < t->half; j++) {
        const int64_t small = j % SMALL * t->stride;
        if (j % SMALL == 0) k->turns((double)j, theta, t->stride, c_start, s_start);
        k->add(c_start, s_start, t->step_c + small, t->step_s + small, t->stride, c, s);
        double *to = t->columns + j / w * w * 2 * l->pairs + j % w;
        for (int64_t i = 0; i < l->pairs; i++, to += 2 * w) {
            to[0] = c[i];
            to[w] = s[i];
        }
        float *to_f32 = t->columns_f32 + j / wide * wide * 2 * l->pairs + j % wide;
        for (int64_t i = 0; k->filter && i < l->pairs; i++, to_f32 += 2 * wide) {
            to_f32[0] = (float)c[i];
            to_f32[wide] = (float)s[i];
        }
    }
    for (int64_t r = 0; r < BLOCK; r++)
        k->turns((double)(r * (2 * t->half - 1)), theta, t->stride, t->step_c + r * t->stride,
                 t->step_s + r * t->stride);
}

/* Cosines and sines of the centres of some rows, which carry the weights. */
static void fill_rows(const posenc_lows *l, const witness_kernels *k, const double *theta, const tables *t,
                      int64_t centre, int64_t count) {
    double c[MOST_PAIRS], s[MOST_PAIRS];
    k->turns((double)centre, theta, t->stride, c, s);
    for (int64_t i = 0; i < t->stride; i++) {
        c[i] = i < l->pairs ? c[i] / (double)l->pairs : 0;
        s[i] /= (double)l->pairs;
    }
    for (int64_t r = 0; r < count; r++) {
        const int64_t at = r * t->stride;
        k->add(c, s, t->step_c + at, t->step_s + at, t->stride, t->c + at, t->s + at);
    }
    for (int64_t i = 0; k->filter && i < count * t->stride; i++) {
        t->c_f32[i] = (float)t->c[i];
        t->s_f32[i] = (float)t->s[i];
    }
}

/* One tile of rows and columns j and following, distances first <= D < stop, the rows' centres from `centre` on. */
static void lowest_of_tile(posenc_lows *l, const witness_kernels *k, const tables *t, int64_t row, int64_t rows,
                           int64_t j, const double *limits, int64_t centre, int64_t first, int64_t stop) {
    enum { LARGEST = 64 };
    double even[LARGEST], odd[LARGEST];
    const int64_t at = row * t->stride;
    if (!k->tile(t->c + at, t->s + at, t->stride, t->columns + j * 2 * l->pairs, l->pairs, limits, even, odd)) return;
    for (int64_t r = 0; r < rows; r++, centre += 2 * t->half - 1)
        for (int64_t m = 0; m < k->columns; m++) {
            const int64_t e = r * k->columns + m;
            consider(l, even[e] - odd[e], centre + j + m, first, stop);
            if (j + m) consider(l, even[e] + odd[e], centre - j - m, first, stop);
        }
}

/* A block of rows of 2 half - 1 distances around their centres, the first from `begin` on. */
static void lowest_of_block(posenc_lows *l, const witness_kernels *k, const tables *t, int64_t begin, int64_t count,
                            int64_t first, int64_t stop) {
    /* float32: both factors rounded, and at most pairs + 1 roundings of sums of at most 1 */
    const double error = (double)(l->pairs + 8) * 0x1p-24;
    const int64_t wide = k->filter ? 2 * k->columns : k->columns, width = 2 * t->half - 1;
    double limits[BLOCK];
    float limits_f32[BLOCK];
    for (int64_t j = 0; j < t->half; j += wide)
        for (int64_t r = 0; r < count; r += k->rows) {
            const int64_t centre = begin + r * width + t->half - 1, at = r * t->stride;
            const int64_t rows = r + k->rows < count ? k->rows : count - r;
            for (int64_t i = 0; i < k->rows; i++) {
                limits[i] = r + i < count ? row_limit(l, (double)(centre + i * width), (double)t->half) : -INFINITY;
                limits_f32[i] = (float)(limits[i] + error);
            }
            if (k->filter && !k->filter(t->c_f32 + at, t->s_f32 + at, t->stride, t->columns_f32 + j * 2 * l->pairs,
                                        l->pairs, limits_f32))
                continue;
            for (int64_t part = j; part < j + wide; part += k->columns)
                lowest_of_tile(l, k, t, r, rows, part, limits, centre, first, stop);
        }
}

int posenc_lowest(posenc_lows *l) {
    double theta[MOST_PAIRS];
    if (!sizes_fit(l->ranges, l->pairs) || l->length < 1 || l->last < 0 || l->last > MOST_DISTANCE) return BAD_SIZE;
    if (l->most < 1 || l->found < 0 || l->found > l->most) return BAD_SIZE;
    if (l->room < posenc_lowest_work(l->pairs, l->length)) return BAD_SIZE;
    if (!l->theta || !l->starts || !l->scores || !l->distances || !l->work) return BAD_POINTER;
    if (!within(l->theta, l->pairs, 0, 1)) return BAD_NUMBER;
    for (int64_t n = 0; n < l->ranges; n++)
        if (l->starts[n] < 0) return BAD_NUMBER;
    const witness_kernels *k = kernels();
    const tables t = tables_of(l);
    const int64_t block = BLOCK * (2 * t.half - 1);
    pad(l->theta, l->pairs, theta);
    fill_tables(l, k, theta, &t);
    for (int64_t n = 0; n < l->ranges; n++) {
        const int64_t first = l->starts[n] ? l->starts[n] : 1;
        int64_t stop = l->last + 1;
        if (first >= stop) continue;
        if (stop - l->starts[n] > l->length) stop = l->starts[n] + l->length;
        /* from the far end, where scores for each distance are lowest */
        for (int64_t at = (stop - first - 1) / block; first < stop && at >= 0; at--) {
            const int64_t begin = first + at * block, rows = (stop - begin + 2 * t.half - 2) / (2 * t.half - 1);
            const int64_t count = rows < BLOCK ? rows : BLOCK;
            fill_rows(l, k, theta, &t, begin + t.half - 1, count);
            lowest_of_block(l, k, &t, begin, count, first, stop);
        }
    }
    return DONE;
}
