/* The same where the processor rounds to bfloat16 itself. */
#define ROUNDS_TO_BF16 1
#include "rows_avx512.c"
