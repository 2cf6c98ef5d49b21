/* 512-bit vectors: eight numbers at a time. */
#include "witnesses.h"
#ifdef POSENC_X86
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,fma")
#endif
#include <immintrin.h>

typedef __m512d D;
#define D_LANES 8
#define TILE_ROWS 4
#define TILE_VECTORS 2

#define d_bits(a) _mm512_castpd_si512(a)
#define d_of_bits(a) _mm512_castsi512_pd(a)
#define d_all(v) _mm512_set1_pd(v)
#define d_load(p) _mm512_loadu_pd(p)
#define d_store(p, v) _mm512_storeu_pd(p, v)
#define d_add(a, b) _mm512_add_pd(a, b)
#define d_sub(a, b) _mm512_sub_pd(a, b)
#define d_mul(a, b) _mm512_mul_pd(a, b)
#define d_fma(a, b, c) _mm512_fmadd_pd(a, b, c)
#define d_less_product(a, b, c) _mm512_fnmadd_pd(b, c, a)
#define d_absolute(a) _mm512_abs_pd(a)
#define d_any_below(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define d_xor(a, b) _mm512_xor_pd(a, b)
#define d_lowest_bit(a) d_of_bits(_mm512_slli_epi64(d_bits(a), 63))
#define d_second_bit(a) _mm512_and_pd(d_of_bits(_mm512_slli_epi64(d_bits(a), 62)), d_all(-0.0))
#define d_choose(odd, yes, no) _mm512_mask_blend_pd(_mm512_movepi64_mask(d_bits(odd)), no, yes)
#define d_first_bits(a) d_of_bits(_mm512_slli_epi64(_mm512_srli_epi64(d_bits(a), 25), 25))
#define d_two_to_minus(a) d_of_bits(_mm512_sub_epi64(d_bits(d_all(1.0)), _mm512_slli_epi64(d_bits(a), 52)))

typedef __m512 F;
#define F_LANES 16
#define f_all(v) _mm512_set1_ps(v)
#define f_load(p) _mm512_loadu_ps(p)
#define f_sub(a, b) _mm512_sub_ps(a, b)
#define f_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define f_absolute(a) _mm512_abs_ps(a)
#define f_any_below(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)

#include "witness_loops.h"

const witness_kernels posenc_witnesses_avx512 = WITNESS_KERNELS;

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int posenc_no_witnesses_avx512;
#endif
