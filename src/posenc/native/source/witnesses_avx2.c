/* 256-bit vectors: four numbers at a time. */
#include "witnesses.h"
#ifdef POSENC_X86
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#include <immintrin.h>

typedef __m256d D;
#define D_LANES 4
#define TILE_ROWS 3
#define TILE_VECTORS 2

#define d_bits(a) _mm256_castpd_si256(a)
#define d_of_bits(a) _mm256_castsi256_pd(a)
#define d_all(v) _mm256_set1_pd(v)
#define d_load(p) _mm256_loadu_pd(p)
#define d_store(p, v) _mm256_storeu_pd(p, v)
#define d_add(a, b) _mm256_add_pd(a, b)
#define d_sub(a, b) _mm256_sub_pd(a, b)
#define d_mul(a, b) _mm256_mul_pd(a, b)
#define d_fma(a, b, c) _mm256_fmadd_pd(a, b, c)
#define d_less_product(a, b, c) _mm256_fnmadd_pd(b, c, a)
#define d_absolute(a) _mm256_andnot_pd(d_all(-0.0), a)
#define d_any_below(a, b) _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ))
#define d_xor(a, b) _mm256_xor_pd(a, b)
#define d_lowest_bit(a) d_of_bits(_mm256_slli_epi64(d_bits(a), 63))
#define d_second_bit(a) _mm256_and_pd(d_of_bits(_mm256_slli_epi64(d_bits(a), 62)), d_all(-0.0))
#define d_choose(odd, yes, no) _mm256_blendv_pd(no, yes, odd)
#define d_first_bits(a) d_of_bits(_mm256_slli_epi64(_mm256_srli_epi64(d_bits(a), 25), 25))
#define d_two_to_minus(a) d_of_bits(_mm256_sub_epi64(d_bits(d_all(1.0)), _mm256_slli_epi64(d_bits(a), 52)))

typedef __m256 F;
#define F_LANES 8
#define f_all(v) _mm256_set1_ps(v)
#define f_load(p) _mm256_loadu_ps(p)
#define f_sub(a, b) _mm256_sub_ps(a, b)
#define f_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define f_absolute(a) _mm256_andnot_ps(f_all(-0.0f), a)
#define f_any_below(a, b) _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ))

#include "witness_loops.h"

const witness_kernels posenc_witnesses_avx2 = WITNESS_KERNELS;

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int posenc_no_witnesses_avx2;
#endif
