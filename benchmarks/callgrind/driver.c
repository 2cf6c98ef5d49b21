/* The kernel's own driver: fixed work without a clock, whose instructions callgrind counts.
 *
 *   driver <layout 0|1> <dtype 0|1|2> <rounds>
 *
 * Rounds that differ by one between two runs give the instructions of one rotation, start-up left out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "posenc.h"

enum { HEADS = 8, TOKENS = 64, WIDTH = 128, PAIRS = WIDTH / 2 };

int main(int count, char **arguments) {
    if (count != 4) return 2;
    const int adjacent = atoi(arguments[1]), dtype = atoi(arguments[2]), rounds = atoi(arguments[3]);
    const size_t elements = (size_t)HEADS * TOKENS * WIDTH;
    float *cos = aligned_alloc(64, TOKENS * PAIRS * 4), *sin = aligned_alloc(64, TOKENS * PAIRS * 4);
    char *x = aligned_alloc(64, elements * 4), *y = aligned_alloc(64, elements * 4);
    memset(x, 0x3c, elements * 4);
    for (int i = 0; i < TOKENS * PAIRS; i++) {
        cos[i] = 0.5f + (float)(i % 7) * 0.05f;
        sin[i] = 0.25f - (float)(i % 5) * 0.1f;
    }
    posenc_rotation r = {0};
    r.dtype = dtype;
    r.sides = 1;
    r.batch = 1;
    r.tokens = TOKENS;
    r.width = WIDTH;
    r.pairs = PAIRS;
    r.step = adjacent ? 2 : 1;
    r.partner = adjacent ? 1 : PAIRS;
    r.cos = cos;
    r.sin = sin;
    r.table_stride[2] = PAIRS;
    r.side[0].x = x;
    r.side[0].out = y;
    r.side[0].heads = HEADS;
    const int64_t strides[3] = {(int64_t)elements, TOKENS * WIDTH, WIDTH};
    memcpy(r.side[0].x_stride, strides, sizeof strides);
    memcpy(r.side[0].out_stride, strides, sizeof strides);
    int status = 0;
    for (int i = 0; i < rounds && !status; i++) status = posenc_rotate(&r);
    printf("%d %d\n", posenc_level(), status);
    return status;
}
