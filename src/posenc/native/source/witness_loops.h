/* Cosines, sines and their sums in float64, written once for every set of vector instructions.
 *
 * The file that includes this has named D, D_LANES, TILE_ROWS, TILE_VECTORS and the d_ operations.
 *
 * Errors, in absolute terms. An angle x = high + low is taken apart as k quarter turns and a rest r: k times the first
 * 28 bits of pi/2 is exact for k < 2^25, and so is its difference from high; k times the next 28 bits is exact, k times
 * what is left is below 2^-32. Three roundings of numbers below 2 remain: r is right to 3 * 2^-53. Taylor's series to
 * the terms r^15 and r^16 leave less than 2^-54 within an eighth of a turn, and their evaluation less than 2^-52: a
 * cosine or sine is right to 2^-51. */
#ifndef D_LANES
#error "define the vectors first"
#endif

#define MAGIC 0x1.8p52 /* a number plus this has the nearest integer in its lowest bits */
#define QUARTERS 0.636619772367581343 /* 2 / pi */
#define HALF_PI_1 0x1.921fb54p+0
#define HALF_PI_2 0x1.10b461p-30
#define HALF_PI_3 0x1.a62633145c06ep-58
#define LOG2_E 1.4426950408889634
#define LN2_1 0x1.62e42feep-1
#define LN2_2 0x1.a39ef35793c76p-33

/* 1/3!, 1/4! ... with the signs of sine and cosine; of exp(-r) they are those of 1/n!. */
#define F3 (1.0 / 6)
#define F4 (1.0 / 24)
#define F5 (1.0 / 120)
#define F6 (1.0 / 720)
#define F7 (1.0 / 5040)
#define F8 (1.0 / 40320)
#define F9 (1.0 / 362880)
#define F10 (1.0 / 3628800)
#define F11 (1.0 / 39916800)
#define F12 (1.0 / 479001600)
#define F13 (1.0 / 6227020800.0)
#define F14 (1.0 / 87178291200.0)
#define F15 (1.0 / 1307674368000.0)
#define F16 (1.0 / 20922789888000.0)

#define NEXT(p, z, term) p = d_fma(p, z, d_all(term))

static inline void cos_sin(D high, D low, D *c, D *s) {
    const D one = d_all(1.0), magic = d_all(MAGIC);
    D bits = d_fma(d_add(high, low), d_all(QUARTERS), magic), k = d_sub(bits, magic);
    D r = d_less_product(high, k, d_all(HALF_PI_1));
    r = d_add(d_less_product(r, k, d_all(HALF_PI_2)), low);
    r = d_less_product(r, k, d_all(HALF_PI_3));
    D z = d_mul(r, r), p = d_all(-F15), q = d_all(F16);
    NEXT(p, z, F13);
    NEXT(q, z, -F14);
    NEXT(p, z, -F11);
    NEXT(q, z, F12);
    NEXT(p, z, F9);
    NEXT(q, z, -F10);
    NEXT(p, z, -F7);
    NEXT(q, z, F8);
    NEXT(p, z, F5);
    NEXT(q, z, -F6);
    NEXT(p, z, -F3);
    NEXT(q, z, F4);
    NEXT(q, z, -0.5);
    D sine = d_fma(d_mul(r, z), p, r), cosine = d_fma(q, z, one), odd = d_lowest_bit(bits);
    *c = d_xor(d_choose(odd, sine, cosine), d_second_bit(d_add(bits, one)));
    *s = d_xor(d_choose(odd, cosine, sine), d_second_bit(bits));
}

/* exp(-y) for 0 <= y <= 700, within one unit in the last place: 2^-k exp(-r), |r| <= ln(2) / 2, where k times the first
 * part of ln 2 is exact and Taylor's series to r^13 leave 2^-57. */
static void powers(double t, const double *u, int64_t padded, double *theta) {
    const D time = d_all(t), magic = d_all(MAGIC), one = d_all(1.0);
    for (int64_t i = 0; i < padded; i += D_LANES) {
        D y = d_mul(time, d_load(u + i)), bits = d_fma(y, d_all(LOG2_E), magic), k = d_sub(bits, magic);
        D r = d_less_product(d_less_product(y, k, d_all(LN2_1)), k, d_all(LN2_2)), p = d_all(-F13);
        NEXT(p, r, F12);
        NEXT(p, r, -F11);
        NEXT(p, r, F10);
        NEXT(p, r, -F9);
        NEXT(p, r, F8);
        NEXT(p, r, -F7);
        NEXT(p, r, F6);
        NEXT(p, r, -F5);
        NEXT(p, r, F4);
        NEXT(p, r, -F3);
        NEXT(p, r, 0.5);
        p = d_sub(one, d_less_product(r, d_mul(r, r), p)); /* 1 - (r - r^2 p) */
        d_store(theta + i, d_mul(p, d_two_to_minus(bits)));
    }
}

static void turns(double distance, const double *theta, int64_t padded, double *c, double *s) {
    const D at = d_all(distance);
    /* the first 28 bits of theta times a number of 25 bits are exact, and so is the rest times it */
    for (int64_t i = 0; i < padded; i += D_LANES) {
        D all = d_load(theta + i), first = d_first_bits(all), cosine, sine;
        cos_sin(d_mul(at, first), d_mul(at, d_sub(all, first)), &cosine, &sine);
        d_store(c + i, cosine);
        d_store(s + i, sine);
    }
}

/* The angles of a, with its weight, plus those of b. */
static void add(const double *ca, const double *sa, const double *cb, const double *sb, int64_t padded, double *c,
                double *s) {
    for (int64_t i = 0; i < padded; i += D_LANES) {
        const D x = d_load(ca + i), y = d_load(sa + i), cosine = d_load(cb + i), sine = d_load(sb + i);
        d_store(c + i, d_less_product(d_mul(x, cosine), y, sine));
        d_store(s + i, d_fma(y, cosine, d_mul(x, sine)));
    }
}

static void sums(double distance, const double *theta, const double *mean, const double *slopes, int64_t padded,
                 double *value, double *slope) {
    const D at = d_all(distance), none = d_all(0.0);
    D v = none, v_slope = none;
    for (int64_t i = 0; i < padded; i += D_LANES) {
        D x = d_mul(at, d_load(theta + i)), cosine, sine;
        cos_sin(x, none, &cosine, &sine);
        v = d_fma(cosine, d_load(mean + i), v);
        v_slope = d_fma(d_mul(x, sine), d_load(slopes + i), v_slope);
    }
    double all[D_LANES], all_slopes[D_LANES];
    d_store(all, v);
    d_store(all_slopes, v_slope);
    *value = all[0];
    *slope = all_slopes[0];
    for (int n = 1; n < D_LANES; n++) {
        *value += all[n];
        *slope += all_slopes[n];
    }
}

#ifdef F_LANES
/* Whether some even - |odd| may be below its limit, to which the error of all that is done in float32 was added. */
static int filter(const float *c, const float *s, int64_t stride, const float *columns, int64_t pairs,
                  const float *limits) {
    F p[TILE_ROWS][TILE_VECTORS], q[TILE_ROWS][TILE_VECTORS];
    for (int r = 0; r < TILE_ROWS; r++)
        for (int v = 0; v < TILE_VECTORS; v++) p[r][v] = q[r][v] = f_all(0.0f);
    for (int64_t i = 0; i < pairs; i++, columns += 2 * TILE_VECTORS * F_LANES) {
        F cosine[TILE_ROWS], sine[TILE_ROWS];
        for (int r = 0; r < TILE_ROWS; r++) cosine[r] = f_all(c[r * stride + i]);
        for (int v = 0; v < TILE_VECTORS; v++) {
            const F column = f_load(columns + v * F_LANES);
            for (int r = 0; r < TILE_ROWS; r++) p[r][v] = f_fma(cosine[r], column, p[r][v]);
        }
        for (int r = 0; r < TILE_ROWS; r++) sine[r] = f_all(s[r * stride + i]);
        for (int v = 0; v < TILE_VECTORS; v++) {
            const F column = f_load(columns + (TILE_VECTORS + v) * F_LANES);
            for (int r = 0; r < TILE_ROWS; r++) q[r][v] = f_fma(sine[r], column, q[r][v]);
        }
    }
    int low = 0;
    for (int r = 0; r < TILE_ROWS; r++)
        for (int v = 0; v < TILE_VECTORS; v++)
            low |= f_any_below(f_sub(p[r][v], f_absolute(q[r][v])), f_all(limits[r]));
    return low;
}
#else
#define filter 0
#endif

/* Columns come as TILE_VECTORS vectors of cosines, then of sines, for one pair after the other. */
static int tile(const double *c, const double *s, int64_t stride, const double *columns, int64_t pairs,
                const double *limits, double *even, double *odd) {
    D p[TILE_ROWS][TILE_VECTORS], q[TILE_ROWS][TILE_VECTORS];
    for (int r = 0; r < TILE_ROWS; r++)
        for (int v = 0; v < TILE_VECTORS; v++) p[r][v] = q[r][v] = d_all(0.0);
    for (int64_t i = 0; i < pairs; i++, columns += 2 * TILE_VECTORS * D_LANES) {
        D column[2 * TILE_VECTORS];
        for (int v = 0; v < 2 * TILE_VECTORS; v++) column[v] = d_load(columns + v * D_LANES);
        for (int r = 0; r < TILE_ROWS; r++) {
            const D cosine = d_all(c[r * stride + i]), sine = d_all(s[r * stride + i]);
            for (int v = 0; v < TILE_VECTORS; v++) {
                p[r][v] = d_fma(cosine, column[v], p[r][v]);
                q[r][v] = d_fma(sine, column[TILE_VECTORS + v], q[r][v]);
            }
        }
    }
    int low = 0;
    for (int r = 0; r < TILE_ROWS; r++)
        for (int v = 0; v < TILE_VECTORS; v++)
            low |= d_any_below(d_sub(p[r][v], d_absolute(q[r][v])), d_all(limits[r]));
    if (!low) return 0;
    for (int r = 0; r < TILE_ROWS; r++)
        for (int v = 0; v < TILE_VECTORS; v++) {
            d_store(even + (r * TILE_VECTORS + v) * D_LANES, p[r][v]);
            d_store(odd + (r * TILE_VECTORS + v) * D_LANES, q[r][v]);
        }
    return 1;
}

#define WITNESS_KERNELS {TILE_ROWS, TILE_VECTORS * D_LANES, powers, turns, add, sums, filter, tile}
