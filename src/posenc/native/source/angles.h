/* Cosines and sines of positions, and tables by angle addition; written once for every set of vector instructions.
 *
 * The file that includes this has named D, D_LANES and the d_ operations of float64 vectors, and phase_parts, which
 * splits id * turns into quarter turns and an angle of at most an eighth of a turn in radians. */
#ifndef D_LANES
#error "define the vectors first"
#endif

static void cos_sin_rows(const int64_t *ids, int64_t n, const int64_t *turns, int64_t pairs, double gain, float *c,
                         float *s) {
    const int64_t whole = pairs - pairs % D_LANES;
    const D one = d_all(1.0), g = d_all(gain);
    for (; n > 0; n--, ids++, c += pairs, s += pairs) {
        uint64_t id = (uint64_t)*ids;
        for (int64_t i = 0; i < whole; i += D_LANES) {
            D x, odd, flip_c, flip_s;
            phase_parts(id, turns + i, &x, &odd, &flip_c, &flip_s);
            D z = d_mul(x, x), p = d_all(S13), q = d_all(C14);
            p = d_fma(p, z, d_all(S11));
            q = d_fma(q, z, d_all(C12));
            p = d_fma(p, z, d_all(S9));
            q = d_fma(q, z, d_all(C10));
            p = d_fma(p, z, d_all(S7));
            q = d_fma(q, z, d_all(C8));
            p = d_fma(p, z, d_all(S5));
            q = d_fma(q, z, d_all(C6));
            p = d_fma(p, z, d_all(S3));
            q = d_fma(q, z, d_all(C4));
            D sine = d_fma(d_mul(x, z), p, x);
            D cosine = d_fma(d_fma(q, z, d_all(C2)), z, one);
            d_store_f32(c + i, d_mul(d_xor(d_choose(odd, sine, cosine), flip_c), g));
            d_store_f32(s + i, d_mul(d_xor(d_choose(odd, cosine, sine), flip_s), g));
        }
        for (int64_t i = whole; i < pairs; i++) {
            double cosine, sine;
            cos_sin_of(id * (uint64_t)turns[i], &cosine, &sine);
            c[i] = (float)(cosine * gain);
            s[i] = (float)(sine * gain);
        }
    }
}

/* n rows after one start: cos(a + j) = cos a cos j - sin a sin j, sin(a + j) = sin a cos j + cos a sin j. The usual
 * numbers of pairs are known to the compiler, which then keeps the start in registers. */
static inline void add_angle_rows_of(const double *restrict ac, const double *restrict as, const double *restrict jc,
                                     const double *restrict js, int64_t n, const int64_t pairs, float *restrict c,
                                     float *restrict s) {
    const int64_t whole = pairs - pairs % D_LANES;
    for (; n > 0; n--, jc += pairs, js += pairs, c += pairs, s += pairs) {
        for (int64_t i = 0; i < whole; i += D_LANES) {
            D ca = d_load(ac + i), sa = d_load(as + i), cj = d_load(jc + i), sj = d_load(js + i);
            d_store_f32(c + i, d_fma_less(ca, cj, d_mul(sa, sj)));
            d_store_f32(s + i, d_fma(sa, cj, d_mul(ca, sj)));
        }
        for (int64_t i = whole; i < pairs; i++) {
            c[i] = (float)(ac[i] * jc[i] - as[i] * js[i]);
            s[i] = (float)(as[i] * jc[i] + ac[i] * js[i]);
        }
    }
}

static void add_angle_rows(const double *ac, const double *as, const double *jc, const double *js, int64_t n,
                           int64_t pairs, float *c, float *s) {
    if (pairs == 64) add_angle_rows_of(ac, as, jc, js, n, 64, c, s);
    else if (pairs == 32) add_angle_rows_of(ac, as, jc, js, n, 32, c, s);
    else add_angle_rows_of(ac, as, jc, js, n, pairs, c, s);
}
