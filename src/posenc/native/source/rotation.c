/* Which instructions run, what may run at all, and in which order memory is walked. */
#include <stddef.h>
#include <string.h>

#include "kernels.h"
#include "scalar.h"

static const kernel_set *in_use = 0;

static const kernel_set *of_level(int level) {
    if (level == POSENC_PORTABLE) return &posenc_portable;
#ifdef POSENC_X86
    __builtin_cpu_init();
    if (level == POSENC_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c"))
        return &posenc_avx2;
    if (level >= POSENC_AVX512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) {
        if (level == POSENC_AVX512) return &posenc_avx512;
        if (level == POSENC_AVX512_BF16 && __builtin_cpu_supports("avx512bf16")) return &posenc_avx512_bf16;
    }
#endif
#ifdef POSENC_ARM
    if (level == POSENC_NEON) return &posenc_neon;
#endif
    return 0;
}

int posenc_best_level(void) {
    for (int level = POSENC_AVX512_BF16; level > POSENC_PORTABLE; level--)
        if (of_level(level)) return level;
    return POSENC_PORTABLE;
}

const kernel_set *posenc_kernels(void) {
    if (!in_use) in_use = of_level(posenc_best_level());
    return in_use;
}

int posenc_abi(void) { return POSENC_ABI; }
int posenc_level(void) { return posenc_kernels()->level; }
int posenc_use_level(int level) {
    const kernel_set *found = of_level(level);
    if (found) in_use = found;
    return found == 0;
}

enum {
    DONE,
    BAD_DTYPE,
    BAD_SIZE,
    BAD_LAYOUT,
    BAD_POINTER,
    BAD_ROW,
    BAD_OVERLAP,
};

const char *posenc_message(int status) {
    static const char *const messages[] = {
        "done",
        "the dtype is float32, bfloat16 or float16",
        "sizes are not negative, and queries and keys are one side or two",
        "the pairs lie within the head and share no channel",
        "an array is missing",
        "a position is no row of the table",
        "the result overlaps itself or its input otherwise than in place",
    };
    return status >= 0 && status <= BAD_OVERLAP ? messages[status] : "unknown status";
}

static int64_t bytes_of(int64_t dtype) { return dtype == POSENC_FLOAT32 ? 4 : 2; }

/* First and one past the last byte that a side's input or result touches. */
static void extent(const posenc_rotation *r, int64_t heads, const int64_t *stride, const char *base, const char **low,
                   const char **high) {
    const int64_t size[3] = {r->batch, heads, r->tokens}, item = bytes_of(r->dtype);
    *low = base;
    *high = base + r->width * item;
    for (int d = 0; d < 3; d++) {
        int64_t reach = (size[d] - 1) * stride[d] * item;
        if (reach < 0) *low += reach;
        else *high += reach;
    }
}

/* Whether two different rows of the result would share memory. Strides that nest are enough; others are refused. */
static int nests(const posenc_rotation *r, const posenc_side *side) {
    int64_t size[3] = {r->batch, side->heads, r->tokens}, stride[3], inner = r->width;
    for (int d = 0; d < 3; d++) stride[d] = side->out_stride[d] < 0 ? -side->out_stride[d] : side->out_stride[d];
    for (int left = 3; left > 0; left--) {
        int least = -1;
        for (int d = 0; d < 3; d++)
            if (size[d] > 1 && (least < 0 || stride[d] < stride[least])) least = d;
        if (least < 0) return 1;
        if (stride[least] < inner) return 0;
        inner = stride[least] * (size[least] - 1) + inner;
        size[least] = 1;
    }
    return 1;
}

static int same_strides(const posenc_side *side) {
    return memcmp(side->x_stride, side->out_stride, sizeof side->x_stride) == 0;
}

int posenc_check(const posenc_rotation *r) {
    if (r->dtype < POSENC_FLOAT32 || r->dtype > POSENC_FLOAT16) return BAD_DTYPE;
    if (r->sides < 1 || r->sides > 2 || r->batch < 0 || r->tokens < 0 || r->width < 0) return BAD_SIZE;
    if (r->first < 0 || r->pairs < 0 || r->step < 1 || r->partner < 1) return BAD_LAYOUT;
    if (r->pairs > r->width || r->first > r->width || r->step > r->width || r->partner > r->width) return BAD_LAYOUT;
    if (r->pairs) {
        int64_t last = r->first + (r->pairs - 1) * r->step + r->partner;
        if (last >= r->width) return BAD_LAYOUT;
        /* channels first + i step and first + j step + partner coincide when partner = (i - j) step */
        if (r->partner % r->step == 0 && r->partner / r->step < r->pairs) return BAD_LAYOUT;
    }
    if (!r->cos || !r->sin) return BAD_POINTER;
    for (int64_t n = 0; n < r->sides; n++) {
        const posenc_side *side = &r->side[n];
        const char *x, *x_end, *y, *y_end;
        if (side->heads < 0) return BAD_SIZE;
        if (!r->batch || !r->tokens || !side->heads || !r->width) continue;
        if (!side->x || !side->out) return BAD_POINTER;
        if (!nests(r, side)) return BAD_OVERLAP;
        extent(r, side->heads, side->x_stride, (const char *)side->x, &x, &x_end);
        extent(r, side->heads, side->out_stride, (const char *)side->out, &y, &y_end);
        if (x < y_end && y < x_end && !(side->x == side->out && same_strides(side))) return BAD_OVERLAP;
    }
    if (r->ids) {
        for (int64_t b = 0; b < r->batch; b++)
            for (int64_t t = 0; t < r->tokens; t++) {
                int64_t id = r->ids[b * r->id_stride[0] + t * r->id_stride[1]];
                if (id < 0 || id >= r->rows) return BAD_ROW;
            }
    }
    return DONE;
}

static int64_t size_of(const posenc_rotation *r, const posenc_side *side) {
    return r->batch * side->heads * r->tokens * r->width * bytes_of(r->dtype);
}

/* Results that leave the caches anyway go past them, which saves reading what is about to be overwritten. */
static int large(const posenc_rotation *r, const posenc_side *side) { return size_of(r, side) >= 4 << 20; }

/* Memory is walked in its own order, where the processor reads ahead; there tokens follow one another within a head,
 * unless the heads of a token do. What the nearest caches hold is walked a few tokens at a time, head after head, so
 * that their cosines stay next to the processor. */
static int in_order(const posenc_rotation *r, const posenc_side *side) { return size_of(r, side) > 512 << 10; }

static int64_t tokens_at_a_time(const posenc_rotation *r, const posenc_side *side) {
    return in_order(r, side) ? 128 : 32;
}

static int64_t blocks_of(const posenc_rotation *r, const posenc_side *side) {
    int64_t step = tokens_at_a_time(r, side);
    return (r->tokens + step - 1) / step;
}

static int heads_inside(const posenc_rotation *r, const posenc_side *side) {
    return r->tokens > 1 && side->heads > 1 && side->x_stride[1] < side->x_stride[2];
}

static int64_t units_of(const posenc_rotation *r, const posenc_side *side) {
    return r->batch * blocks_of(r, side) * (heads_inside(r, side) ? 1 : side->heads);
}

int64_t posenc_units(const posenc_rotation *r) {
    return units_of(r, &r->side[0]) + (r->sides > 1 ? units_of(r, &r->side[1]) : 0);
}

static int aligned(const posenc_rotation *r, const posenc_side *side, const kernel_set *k) {
    const int64_t item = bytes_of(r->dtype), vector = k->lanes * (r->step == 2 && item == 2 ? 4 : item);
    if (r->pairs % k->lanes || (r->step == 1 && (r->partner * item) % vector)) return 0;
    if (((uintptr_t)side->out + (uintptr_t)(r->first * item)) % (uintptr_t)vector) return 0;
    for (int d = 0; d < 3; d++)
        if ((side->out_stride[d] * item) % vector) return 0;
    return 1;
}

static rows_function chosen(const posenc_rotation *r, const posenc_side *side) {
    const kernel_set *k = posenc_kernels();
    const int adjacent = r->step == 2 && r->partner == 1;
    if (r->step != 1 && !adjacent) return 0;
    int wanted = r->streaming < 0 ? large(r, side) : r->streaming > 0;
    rows_function past = k->streamed[r->dtype][adjacent];
    return wanted && past && side->x != side->out && aligned(r, side, k) ? past : k->rows[r->dtype][adjacent];
}

#define LOOSE(type, get, put)                                                                                         \
    for (int64_t i = 0; i < r->pairs; i++) {                                                                          \
        type *p = (type *)y + i * r->step;                                                                            \
        float a = get(p), b = get(p + r->partner), sin = flipped(s[i], flip);                                         \
        put(p, a * c[i] - b * sin);                                                                                   \
        put(p + r->partner, b * c[i] + a * sin);                                                                      \
    }

/* Any other layout: the row is copied and turned where it lies. */
static void loose_row(const posenc_rotation *r, char *y, const float *c, const float *s, uint32_t flip) {
    if (r->dtype == POSENC_FLOAT32) LOOSE(float, get_f32, put_f32)
    else if (r->dtype == POSENC_BFLOAT16) LOOSE(uint16_t, get_bf16, put_bf16)
    else LOOSE(uint16_t, get_f16, put_f16)
}

/* n rows that follow each other by fixed steps. */
static void run(const posenc_rotation *r, rows_function rows, const char *x, char *y, const float *c, const float *s,
                int64_t n, int64_t x_step, int64_t y_step, int64_t c_step) {
    const int64_t item = bytes_of(r->dtype), begin = r->first * item;
    const uint32_t flip = r->inverse ? 0x80000000u : 0;
    const int packed = r->step == 2 || r->partner == r->pairs;
    if (x != y && !(rows && packed)) {
        for (int64_t i = 0; i < n; i++) memcpy(y + i * y_step, x + i * x_step, (size_t)(r->width * item));
    } else if (x != y && 2 * r->pairs < r->width) {
        const int64_t end = begin + 2 * r->pairs * item, rest = r->width * item - end;
        for (int64_t i = 0; i < n; i++) {
            if (begin) memcpy(y + i * y_step, x + i * x_step, (size_t)begin);
            if (rest) memcpy(y + i * y_step + end, x + i * x_step + end, (size_t)rest);
        }
    }
    if (rows) {
        rows(x + begin, y + begin, c, s, n, x_step, y_step, c_step, r->pairs, r->partner, flip);
        return;
    }
    for (int64_t i = 0; i < n; i++) loose_row(r, y + i * y_step + begin, c + i * c_step, s + i * c_step, flip);
}

static void run_unit(const posenc_rotation *r, const posenc_side *side, rows_function rows, int64_t unit) {
    const int64_t item = bytes_of(r->dtype), blocks = blocks_of(r, side), step = tokens_at_a_time(r, side);
    const int64_t *xs = side->x_stride, *ys = side->out_stride, *ts = r->table_stride;
    const int inside = heads_inside(r, side);
    const int64_t heads = inside ? 1 : side->heads;
    int64_t batch, head, block;
    if (in_order(r, side)) { /* batch, head, block */
        block = unit % blocks;
        head = unit / blocks % heads;
        batch = unit / blocks / heads;
    } else { /* batch, block, head */
        head = unit % heads;
        block = unit / heads % blocks;
        batch = unit / heads / blocks;
    }
    int64_t t = block * step, end = t + step < r->tokens ? t + step : r->tokens;
    const char *x = (const char *)side->x + (batch * xs[0] + head * xs[1]) * item;
    char *y = (char *)side->out + (batch * ys[0] + head * ys[1]) * item;
    int64_t table = (r->ids ? 0 : batch * ts[0]) + head * ts[1];
    if (!inside && !r->ids) {
        run(r, rows, x + t * xs[2] * item, y + t * ys[2] * item, r->cos + table + t * ts[2], r->sin + table + t * ts[2],
            end - t, xs[2] * item, ys[2] * item, ts[2]);
        return;
    }
    for (; t < end; t++) {
        int64_t row = r->ids ? r->ids[batch * r->id_stride[0] + t * r->id_stride[1]] : t, at = table + row * ts[2];
        run(r, rows, x + t * xs[2] * item, y + t * ys[2] * item, r->cos + at, r->sin + at, inside ? side->heads : 1,
            xs[1] * item, ys[1] * item, ts[1]);
    }
}

void posenc_rotate_units(const posenc_rotation *r, int64_t begin, int64_t end) {
    int64_t before = 0;
    for (int64_t n = 0; n < r->sides; n++) {
        const posenc_side *side = &r->side[n];
        int64_t units = units_of(r, side), from = begin - before, to = end - before;
        rows_function rows = chosen(r, side);
        if (r->width)
            for (int64_t u = from < 0 ? 0 : from; u < units && u < to; u++) run_unit(r, side, rows, u);
        before += units;
    }
#ifdef POSENC_X86
    __builtin_ia32_sfence(); /* streamed rows are visible to whoever waits for this piece */
#endif
}

int posenc_rotate(const posenc_rotation *r) {
    int status = posenc_check(r);
    if (status == DONE) posenc_rotate_units(r, 0, posenc_units(r));
    return status;
}

int posenc_cos_sin(const int64_t *ids, int64_t n, const int64_t *turns, int64_t pairs, double gain, float *cos,
                   float *sin) {
    if (n < 0 || pairs < 0) return BAD_SIZE;
    if (!n || !pairs) return DONE;
    if (!ids || !turns || !cos || !sin) return BAD_POINTER;
    const kernel_set *k = posenc_kernels();
    (k->cos_sin ? k : &posenc_portable)->cos_sin(ids, n, turns, pairs, gain, cos, sin);
    return DONE;
}

int posenc_add_angles(const double *start_cos, const double *start_sin, const double *step_cos, const double *step_sin,
                      int64_t steps, int64_t pairs, int64_t rows, float *cos, float *sin) {
    if (steps < 1 || pairs < 0 || rows < 0) return BAD_SIZE;
    if (!pairs || !rows) return DONE;
    if (!start_cos || !start_sin || !step_cos || !step_sin || !cos || !sin) return BAD_POINTER;
    const kernel_set *k = posenc_kernels();
    if (!k->add_angles) k = &posenc_portable;
    for (int64_t a = 0; a * steps < rows; a++) {
        int64_t n = rows - a * steps < steps ? rows - a * steps : steps, at = a * steps * pairs;
        k->add_angles(start_cos + a * pairs, start_sin + a * pairs, step_cos, step_sin, n, pairs, cos + at, sin + at);
    }
    return DONE;
}
