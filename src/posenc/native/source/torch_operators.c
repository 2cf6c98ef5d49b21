/* PyTorch's operators, by its stable C interface: its functions are handed in by name, no header of it is read.
 *
 * An operator finds its arguments on a stack of 64-bit words, tensors as handles that it owns, and leaves its results
 * there. What the kernels do not do is refused before anything is read; the Python side then runs the plain path. */
#include <string.h>

#include "kernels.h"

typedef void *tensor;
typedef uint64_t word;

/* In the order of FUNCTIONS in the loader. The last two may be missing: no threads then. */
static struct {
    int32_t (*library)(const char *space, const char *key, const char *file, uint32_t line, void **made);
    int32_t (*implement)(void *library, const char *name, void (*run)(word *, uint64_t, uint64_t));
    int32_t (*data)(tensor, void **);
    int32_t (*sizes)(tensor, int64_t **);
    int32_t (*strides)(tensor, int64_t **);
    int32_t (*dimensions)(tensor, int64_t *);
    int32_t (*dtype)(tensor, int32_t *);
    int32_t (*empty)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, tensor *);
    int32_t (*drop)(tensor);
    void (*require)(_Bool, const char *, const char *, uint32_t, const char *);
    int32_t (*float32)(void);
    int32_t (*bfloat16)(void);
    int32_t (*float16)(void);
    int32_t (*int64)(void);
    int32_t (*parallel)(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void *), void *);
    int32_t (*threads)(uint32_t *);
} api;
static int32_t FLOAT32, BFLOAT16, FLOAT16, INT64;

typedef struct {
    int64_t *size, *stride, dimensions;
    int32_t dtype;
    void *data;
} view;

static int look(tensor t, view *v) {
    return api.dimensions(t, &v->dimensions) || api.sizes(t, &v->size) || api.strides(t, &v->stride) ||
           api.dtype(t, &v->dtype) || api.data(t, &v->data);
}

/* Elements below which a second thread costs more than it brings. */
#define GRAIN 65536

static void piece(int64_t begin, int64_t end, void *r) {
    posenc_rotate_units((const posenc_rotation *)r, begin, end);
}

/* One side after the other: a result may lie where the other side is read, as in a plain loop over both. */
static void rotate_all(const posenc_rotation *r) {
    for (int64_t n = 0; n < r->sides; n++) {
        posenc_rotation one = *r;
        int64_t elements = r->batch * r->side[n].heads * r->tokens * r->width, units;
        uint32_t threads = 1;
        one.sides = 1;
        one.side[0] = r->side[n];
        units = posenc_units(&one);
        if (elements >= 2 * GRAIN && units > 1 && api.parallel && api.threads) api.threads(&threads);
        if (threads < 2 || api.parallel(0, units, GRAIN / (elements / units + 1) + 1, piece, &one))
            posenc_rotate_units(&one, 0, units);
    }
}

/* A layout as one number: bit 0 adjacent pairs, bit 1 backwards, then 20 bits each: first channel, pairs, width. */
static const char *fill(posenc_rotation *r, const view *x, int64_t sides, const view *cos, const view *sin,
                        int64_t layout) {
    memset(r, 0, sizeof *r);
    r->dtype = x->dtype == FLOAT32 ? POSENC_FLOAT32 : x->dtype == BFLOAT16 ? POSENC_BFLOAT16 : POSENC_FLOAT16;
    if (x->dtype != FLOAT32 && x->dtype != BFLOAT16 && x->dtype != FLOAT16) return "q and k are float32 or half";
    if (cos->dtype != FLOAT32 || sin->dtype != FLOAT32) return "cos and sin are float32";
    if (cos->dimensions != 4 || sin->dimensions != 4) return "cos and sin have four dimensions";
    r->sides = sides;
    r->streaming = -1;
    r->batch = x->dimensions == 4 ? x->size[0] : 0;
    r->tokens = x->dimensions == 4 ? x->size[2] : 0;
    r->width = layout >> 42 & 0xfffff;
    r->first = layout >> 2 & 0xfffff;
    r->pairs = layout >> 22 & 0xfffff;
    r->step = layout & 1 ? 2 : 1;
    r->partner = layout & 1 ? 1 : r->pairs ? r->pairs : 1;
    r->inverse = layout >> 1 & 1;
    r->cos = (const float *)cos->data;
    r->sin = (const float *)sin->data;
    if (cos->size[3] != r->pairs) return "cos and sin have a column for each pair";
    if (memcmp(cos->size, sin->size, 4 * sizeof *cos->size)) return "cos and sin have the same shape";
    if (r->pairs > 1 && (cos->stride[3] != 1 || sin->stride[3] != 1)) return "pairs lie side by side";
    if (cos->size[2] != r->tokens || (cos->size[0] != 1 && cos->size[0] != r->batch)) return "cos is for these tokens";
    for (int d = 0; d < 3; d++) {
        if (cos->size[d] > 1 && cos->stride[d] != sin->stride[d]) return "cos and sin have the same strides";
        r->table_stride[d] = cos->size[d] > 1 ? cos->stride[d] : 0;
    }
    for (int64_t n = 0; n < sides; n++, x++) {
        if (x->dimensions != 4 || x->size[3] != r->width) return "q and k are (batch, heads, tokens, head_dim)";
        if (x->size[0] != r->batch || x->size[2] != r->tokens) return "q and k have the same rows and tokens";
        if (n && x->dtype != x[-1].dtype) return "q and k have one dtype";
        if (cos->size[1] != 1 && cos->size[1] != x->size[1]) return "cos is for these heads";
        if (r->width > 1 && x->stride[3] != 1) return "channels lie side by side";
        r->side[n].x = x->data;
        r->side[n].heads = x->size[1];
        memcpy(r->side[n].x_stride, x->stride, sizeof r->side[n].x_stride);
    }
    return 0;
}

/* Fresh memory in the order of the input: batch, heads, tokens; or batch, tokens, heads where the input has that. */
static int fresh(posenc_rotation *r, int64_t n, const view *x, tensor *made) {
    posenc_side *side = &r->side[n];
    const int inside = r->tokens > 1 && side->heads > 1 && x->stride[1] < x->stride[2];
    int64_t row = r->width ? r->width : 1, tokens = r->tokens ? r->tokens : 1, heads = side->heads ? side->heads : 1;
    int64_t stride[4] = {heads * tokens * row, inside ? row : tokens * row, inside ? heads * row : row, 1};
    if (api.empty(4, x->size, stride, x->dtype, 0, -1, made)) return 1;
    memcpy(side->out_stride, stride, sizeof side->out_stride);
    return api.data(*made, &side->out);
}

static void fail(const char *why, tensor *owned, int n) {
    for (int i = 0; i < n; i++)
        if (owned[i]) api.drop(owned[i]);
    api.require(0, "posenc", "rotate", 0, why); /* does not return */
}

/* n inputs, then cos, sin, layout -> n results */
static void rotate_fresh(word *stack, int sides) {
    tensor owned[6] = {0};
    view v[4];
    posenc_rotation r;
    const int inputs = sides + 2;
    const char *why = 0;
    memcpy(owned, stack, (size_t)inputs * sizeof(tensor));
    for (int i = 0; i < inputs; i++)
        if (look(owned[i], &v[i])) fail("a tensor without plain memory", owned, inputs);
    why = fill(&r, v, sides, &v[sides], &v[sides + 1], (int64_t)stack[inputs]);
    for (int n = 0; n < sides && !why; n++)
        if (fresh(&r, n, &v[n], &owned[inputs + n])) why = "no memory";
    if (!why) {
        int status = posenc_check(&r);
        if (status) why = posenc_message(status);
    }
    if (why) fail(why, owned, inputs + sides);
    rotate_all(&r);
    for (int i = 0; i < inputs; i++) api.drop(owned[i]);
    for (int n = 0; n < sides; n++) stack[n] = (word)(uintptr_t)owned[inputs + n];
}

/* n inputs, then cos, sin, n results, layout */
static void rotate_into(word *stack, int sides) {
    tensor owned[6];
    view v[6];
    posenc_rotation r;
    const int inputs = 2 * sides + 2;
    const char *why = 0;
    memcpy(owned, stack, (size_t)inputs * sizeof(tensor));
    for (int i = 0; i < inputs; i++)
        if (look(owned[i], &v[i])) fail("a tensor without plain memory", owned, inputs);
    why = fill(&r, v, sides, &v[sides], &v[sides + 1], (int64_t)stack[inputs]);
    for (int n = 0; n < sides && !why; n++) {
        const view *out = &v[sides + 2 + n];
        if (out->dimensions != 4 || memcmp(out->size, v[n].size, 4 * sizeof *out->size) || out->dtype != v[n].dtype ||
            (r.width > 1 && out->stride[3] != 1)) {
            why = "results have the shape and dtype of q and k, channels side by side";
            break;
        }
        r.side[n].out = out->data;
        memcpy(r.side[n].out_stride, out->stride, sizeof r.side[n].out_stride);
    }
    if (!why) {
        int status = posenc_check(&r);
        if (status) why = posenc_message(status);
    }
    if (why) fail(why, owned, inputs);
    rotate_all(&r);
    for (int i = 0; i < inputs; i++) api.drop(owned[i]);
}

static void op_rotate(word *s, uint64_t in, uint64_t out) { (void)in; (void)out; rotate_fresh(s, 2); }
static void op_rotate_one(word *s, uint64_t in, uint64_t out) { (void)in; (void)out; rotate_fresh(s, 1); }
static void op_rotate_into(word *s, uint64_t in, uint64_t out) { (void)in; (void)out; rotate_into(s, 2); }
static void op_rotate_one_into(word *s, uint64_t in, uint64_t out) { (void)in; (void)out; rotate_into(s, 1); }

typedef struct {
    const int64_t *ids, *turns;
    int64_t pairs;
    double gain;
    float *cos, *sin;
} angles;

static void angles_piece(int64_t begin, int64_t end, void *context) {
    const angles *a = (const angles *)context;
    posenc_cos_sin(a->ids + begin, end - begin, a->turns, a->pairs, a->gain, a->cos + begin * a->pairs,
                   a->sin + begin * a->pairs);
}

/* ids (batch, heads, tokens), turns (..., pairs), gain -> cos, sin (batch, heads, tokens, pairs) */
static void op_cos_sin(word *stack, uint64_t in, uint64_t out) {
    tensor owned[4] = {0};
    view ids, turns;
    angles a;
    (void)in;
    (void)out;
    memcpy(owned, stack, 2 * sizeof(tensor));
    memcpy(&a.gain, stack + 2, sizeof a.gain);
    if (look(owned[0], &ids) || look(owned[1], &turns)) fail("a tensor without plain memory", owned, 2);
    if (ids.dtype != INT64 || turns.dtype != INT64 || ids.dimensions != 3 || turns.dimensions < 1)
        fail("ids (batch, heads, tokens) and turns (..., pairs) are int64", owned, 2);
    for (int64_t d = 0; d < turns.dimensions - 1; d++)
        if (turns.size[d] != 1) fail("turns are the same for all positions", owned, 2);
    int64_t dense = 1, pairs = turns.size[turns.dimensions - 1], stride[4];
    const int64_t size[4] = {ids.size[0], ids.size[1], ids.size[2], pairs};
    for (int d = 2; d >= 0; d--) {
        if (ids.size[d] > 1 && ids.stride[d] != dense) fail("ids lie side by side", owned, 2);
        dense *= ids.size[d];
    }
    if (pairs > 1 && turns.stride[turns.dimensions - 1] != 1) fail("turns lie side by side", owned, 2);
    stride[3] = 1;
    for (int d = 2; d >= 0; d--) stride[d] = stride[d + 1] * (size[d + 1] ? size[d + 1] : 1);
    for (int i = 2; i < 4; i++)
        if (api.empty(4, size, stride, FLOAT32, 0, -1, &owned[i])) fail("no memory", owned, 4);
    a.ids = (const int64_t *)ids.data;
    a.turns = (const int64_t *)turns.data;
    a.pairs = pairs;
    api.data(owned[2], (void **)&a.cos);
    api.data(owned[3], (void **)&a.sin);
    uint32_t threads = 1;
    if (api.parallel && api.threads && dense * pairs >= GRAIN) api.threads(&threads);
    if (threads < 2 || api.parallel(0, dense, GRAIN / 4 / (pairs + 1) + 1, angles_piece, &a))
        angles_piece(0, dense, &a);
    api.drop(owned[0]);
    api.drop(owned[1]);
    stack[0] = (word)(uintptr_t)owned[2];
    stack[1] = (word)(uintptr_t)owned[3];
}

/* Hand in PyTorch's functions and register the operators for the CPU; 0 when that worked. */
POSENC_API int posenc_register(void *const *functions, int64_t count) {
    static const struct {
        const char *name;
        void (*run)(word *, uint64_t, uint64_t);
    } operators[] = {
        {"rotate", op_rotate},
        {"rotate_one", op_rotate_one},
        {"rotate_into", op_rotate_into},
        {"rotate_one_into", op_rotate_one_into},
        {"cos_sin", op_cos_sin},
    };
    void *library = 0;
    if (count * (int64_t)sizeof *functions != (int64_t)sizeof api) return -1;
    memcpy(&api, functions, sizeof api);
    FLOAT32 = api.float32();
    BFLOAT16 = api.bfloat16();
    FLOAT16 = api.float16();
    INT64 = api.int64();
    int32_t error = api.library("posenc", "CPU", "posenc", 0, &library);
    for (size_t i = 0; !error && i < sizeof operators / sizeof *operators; i++)
        error = api.implement(library, operators[i].name, operators[i].run);
    return error; /* the library lives as long as the process */
}
