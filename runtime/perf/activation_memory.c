/* activation_memory.c — how much memory the tensors of a forward and backward pass take at its peak, as PyTorch runs it:
 * for one sample, by what decides it. Weights and all that stays from step to step: peak_memory.c.
 *
 * The largest sum of tensors alive at one moment. The forward pass visits the operators in order, the backward pass
 * in reverse. A tensor lives from its operator to its last reader; where autograd saved it, until the backward pass
 * is through with every operator that saved it; one that several save is there once. A gradient lives from the last
 * reader's backward operation to its own operator's. What an operator saves is what its formula in PyTorch's
 * tools/autograd/derivatives.yaml reads: products, convolutions and normalisations their inputs, ReLU, sigmoid and
 * softmax their result, sums and moves nothing. Transposes and slices are views.
 *
 * Attention. Fused, it saves its operands and its result, never the scores. Written out, it saves its operands and
 * the softmax's result, of which autocast keeps an fp16 copy for the product behind it; another tensor of scores is
 * there for the moment, forward the product's result, backward a gradient.
 *
 * Recomputation. Around blocks (torch.utils.checkpoint), what a block saves is there from the moment on at which the
 * backward pass reaches its end; what it reads from outside is saved instead. Selective: operators save what
 * ir/ops_job.def says of them, products their results.
 *
 * Mixed precision. Autocast runs products in half precision and normalisations, softmax, powers, sums and losses in
 * fp32, and the rest in the widest type of the operands (PyTorch's documentation, "CUDA Op-Specific Behavior").
 * Where an operator's type is not its operand's, it saves a copy. In bf16 throughout every tensor takes half.
 *
 * Tensor parallelism. The peak without what is divided (`whole`) and the peak with all of it bound what a part
 * takes: the peak is convex in the divided tensors' size, so that a line between both is never below it.
 *
 * Held to what PyTorch 2.6 saves (torch.autograd.graph.saved_tensors_hooks): the peak is 0 to 1 % above it for 20
 * timm networks of convolutions, 2 % for BERT with fused attention, 4 % for mixers.
 *
 * Not counted: dropout, which jobs do not have; what recomputing needs for the moment beyond what it keeps; and
 * workspaces of cuDNN and cuBLAS, fragmentation and the CUDA context, which rt_fits allows for.
 */
#include "runtime/job/job_model.h"

#include <stdlib.h>
#include <string.h>

static bool has_trait(const mdot_job_operator *op, uint32_t trait)
{
    return (op->traits.traits & trait) != 0;
}

/* ---- One step as intervals -------------------------------------------------------------------------------------- */

enum { NOBODY = UINT32_MAX };

typedef struct memory_node {
    double bytes;       /* of one sample's result */
    uint32_t root;      /* the operator whose memory the result lies in: itself, but for views */
    uint32_t reader;    /* of a root, the last operator that reads it, or itself */
    uint32_t saver;     /* of a root, the first operator that saves it, or NOBODY; where blocks are computed again, the
                        first outside its own block, */
    uint32_t own_saver; /* and the first inside */
    bool learns;        /* a parameter lies in it or before it: a gradient passes */
    bool half;          /* the result takes two bytes an element */
    bool divided;       /* and is left out, as tensor parallelism divides it and others are measured */
} memory_node;

typedef struct extent {
    uint32_t first, last; /* operators of a block */
} extent;

/* Where all that is measured is kept while it is. */
typedef struct room {
    memory_node *nodes;
    double *change;  /* by moment: bytes that come to life less those that died before it */
    extent *extents; /* by number of a block */
} room;

/* Moments 0 … n - 1 are the forward pass, n … 2n - 1 the backward pass. */
typedef struct step {
    const mdot_job *job;
    size_t count;
    rt_activation_type type;
    mdot_attention attention;
    mdot_recompute recompute;
    bool whole_only; /* without what tensor parallelism divides */
    memory_node *nodes;
    double *change;
    const extent *extents;
    double input_bytes;
    size_t peak;     /* the moment of the largest sum */
    size_t owner;    /* whose tensors are being placed */
    double *at_peak; /* what each operator's take at `peak`, which is known then; NULL: it is being found */
} step;

static uint32_t block_of(const step *s, size_t index)
{
    return s->recompute == MDOT_RECOMPUTE_BLOCKS ? s->job->operators[index].block : 0;
}

/* What the operator saves; 0: what is not known saves all it touches. */
static bool saves(const step *s, const mdot_job_operator *op, uint32_t tensors)
{
    uint32_t saved = op->traits.saved_fused;
    if (s->attention == MDOT_ATTENTION_EAGER) saved = op->traits.saved_written;
    if (s->recompute == MDOT_RECOMPUTE_SELECTIVE) saved = op->traits.saved_recomputed;
    return saved == 0 || (saved & tensors) != 0;
}

static size_t backward(const step *s, size_t index)
{
    return 2 * s->count - 1 - index;
}

static void live(step *s, size_t from, size_t to, double bytes)
{
    s->change[from] += bytes;
    s->change[to + 1] -= bytes;
    if (s->at_peak != NULL && from <= s->peak && s->peak <= to) s->at_peak[s->owner] += bytes;
}

/* What an operator keeps from its forward operation for its backward one. Where its block is computed again, it is
 * there when that is. */
static void keep_until(step *s, size_t index, double bytes)
{
    uint32_t block = block_of(s, index);
    live(s, index, block > 0 ? index : backward(s, index), bytes);
    if (block > 0) live(s, backward(s, s->extents[block].last), backward(s, index), bytes);
}

static double size_of(const memory_node *node)
{
    return node->divided ? 0 : node->half ? node->bytes / 2 : node->bytes;
}

static void save(step *s, memory_node *root, uint32_t saver)
{
    uint32_t own = block_of(s, root->root), theirs = block_of(s, saver);
    if (theirs > 0 && theirs != own && s->extents[theirs].first > root->root) saver = s->extents[theirs].first;
    uint32_t *kept = own > 0 && own == theirs ? &root->own_saver : &root->saver;
    if (*kept == NOBODY || saver < *kept) *kept = saver;
}

/* A convolution with its normalisation writes its own result and the normalised one. */
static double result_bytes(const mdot_job_operator *op)
{
    double written = op->per_sample[MDOT_PHASE_FORWARD].bytes_written;
    return op->setting[MDOT_SETTING_NORMALISED] != 0 ? written / 2 : written;
}

/* What an operator reads that no other gives: the samples. A normalisation reads its data twice more. */
static double sample_bytes(const mdot_job_operator *op, const memory_node *node)
{
    if (op->input_count > 0 || op->setting[MDOT_SETTING_INPUTS] == 0 || has_trait(op, MDOT_TRAIT_PICKS)) return 0;
    double read = op->per_sample[MDOT_PHASE_FORWARD].bytes_read;
    if (op->setting[MDOT_SETTING_NORMALISED] != 0) read -= 2 * node->bytes;
    return read > 0 ? read : 0;
}

static bool is_half(const step *s, const mdot_job_operator *op)
{
    uint32_t autocast = op->traits.autocast;
    if (s->type == RT_ACTIVATION_BF16) return true;
    if (s->type == RT_ACTIVATION_FP32 || autocast == MDOT_AUTOCAST_FULL) return false;
    if (autocast == MDOT_AUTOCAST_HALF) return true;
    if (op->input_count == 0 || (op->parameters > 0 && autocast != MDOT_AUTOCAST_DATA)) return false;
    for (size_t k = 0; k < op->input_count; k++) {
        if (!s->nodes[op->inputs[k]].half) return false;
    }
    return true;
}

static void describe(step *s, size_t index)
{
    const mdot_job_operator *op = &s->job->operators[index];
    memory_node *node = &s->nodes[index];
    /* a parameter that several operators share is counted at the first; each has a weight gradient */
    bool learns = op->parameters > 0 || op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
    for (size_t k = 0; k < op->input_count; k++) learns = learns || s->nodes[op->inputs[k]].learns;
    *node = (memory_node){.bytes = result_bytes(op), .saver = NOBODY, .own_saver = NOBODY, .learns = learns};
    rt_role role = (rt_role)s->job->division.role[index];
    node->divided = s->whole_only && (role == RT_ROLE_SHARDED || role == RT_ROLE_COLUMNS);
    bool view = has_trait(op, MDOT_TRAIT_VIEW) && op->input_count > 0;
    node->root = view ? s->nodes[op->inputs[0]].root : (uint32_t)index;
    node->reader = (uint32_t)index;
    node->half = is_half(s, op);
    for (size_t k = 0; k < op->input_count; k++) {
        memory_node *root = &s->nodes[s->nodes[op->inputs[k]].root];
        root->reader = (uint32_t)index;
        if (block_of(s, index) > 0 && block_of(s, index) != block_of(s, root->root)) save(s, root, (uint32_t)index);
    }
}

/* The operand as the operator takes it: itself, or converted, saved or for the moment. */
static void take_operand(step *s, size_t index, const memory_node *operand, bool saved)
{
    uint32_t autocast = s->job->operators[index].traits.autocast;
    bool mixed = s->type == RT_ACTIVATION_AMP;
    bool wants_half = mixed && autocast == MDOT_AUTOCAST_HALF, wants_full = mixed && autocast == MDOT_AUTOCAST_FULL;
    if ((wants_half && !operand->half) || (wants_full && operand->half)) {
        double bytes = operand->divided ? 0 : wants_half ? operand->bytes / 2 : operand->bytes;
        if (saved)
            keep_until(s, index, bytes);
        else
            live(s, index, index, bytes);
        return;
    }
    if (saved) save(s, &s->nodes[operand->root], (uint32_t)index);
}

static bool saves_operand(const step *s, const mdot_job_operator *op, const memory_node *node)
{
    if (!node->learns) return false;
    /* the gradient of a product's operand takes the parameters alone */
    bool is_frozen = op->frozen_parameters > 0 && op->parameters == 0;
    if (is_frozen && rt_uses_tensor_cores(op) && op->input_count <= 1) return false;
    if (saves(s, op, MDOT_SAVES_INPUTS)) return true;
    return saves(s, op, MDOT_SAVES_FACTORS) && (op->input_count > 1 || op->parameters > 0);
}

/* Scores of an attention that is written out. */
static void keep_scores(step *s, size_t index, const memory_node *node)
{
    double fp32 = rt_score_bytes(&s->job->operators[index]);
    if (s->attention != MDOT_ATTENTION_EAGER || node->divided || fp32 == 0) return;
    bool mixed = s->type == RT_ACTIVATION_AMP;
    double of_products = s->type == RT_ACTIVATION_FP32 ? fp32 : fp32 / 2;
    double softmax = s->type == RT_ACTIVATION_BF16 ? fp32 / 2 : fp32;
    double kept = softmax + (mixed ? of_products : 0);
    live(s, index, index, of_products);
    if (!node->learns || s->recompute == MDOT_RECOMPUTE_SELECTIVE) {
        live(s, index, index, kept);
        if (!node->learns) return;
        live(s, backward(s, index), backward(s, index), kept);
    } else {
        keep_until(s, index, kept);
    }
    live(s, backward(s, index), backward(s, index), softmax);
}

/* What the operator itself keeps for its backward operation, and what that needs for the moment. */
static void keep(step *s, size_t index)
{
    const mdot_job_operator *op = &s->job->operators[index];
    const memory_node *node = &s->nodes[index];
    bool saved = saves_operand(s, op, node);
    for (size_t k = 0; k < op->input_count; k++) take_operand(s, index, &s->nodes[op->inputs[k]], saved);
    double samples = sample_bytes(op, node);
    s->input_bytes += samples;
    if (s->at_peak != NULL) s->at_peak[index] += samples;
    if (saved && s->type == RT_ACTIVATION_AMP && op->traits.autocast == MDOT_AUTOCAST_HALF)
        keep_until(s, index, samples / 2);
    keep_scores(s, index, node);
    if (!node->learns) return;
    if (saves(s, op, MDOT_SAVES_RESULT)) save(s, &s->nodes[node->root], (uint32_t)index);
    double reserve = op->traits.reserve * size_of(node);
    bool indexed = (op->traits.saved_fused & MDOT_SAVES_INDICES) != 0 && saves(s, op, MDOT_SAVES_INDICES);
    if (indexed && !node->divided) reserve += 2 * node->bytes;
    if (op->setting[MDOT_SETTING_NORMALISED] != 0) {
        /* the map before the normalisation; the normalised one can be computed again from it */
        if (s->recompute != MDOT_RECOMPUTE_SELECTIVE) reserve += size_of(node);
        live(s, backward(s, index), backward(s, index), size_of(node)); /* the gradient between the two */
    }
    keep_until(s, index, reserve);
}

static void place_tensor(step *s, size_t index)
{
    const memory_node *node = &s->nodes[index];
    if (node->root != index) return;
    live(s, index, node->saver == NOBODY ? node->reader : backward(s, node->saver), size_of(node));
    if (node->own_saver != NOBODY)
        live(s, backward(s, s->extents[block_of(s, index)].last), backward(s, node->own_saver), size_of(node));
    if (node->learns) live(s, backward(s, node->reader), backward(s, index), size_of(node));
}

/* A tensor that several operators read gets a gradient from each; those behind the first are added to it. */
static void place_summands(step *s, size_t index)
{
    const mdot_job_operator *op = &s->job->operators[index];
    if (s->nodes[index].root != index) return;
    for (size_t k = 0; k < op->input_count; k++) {
        const memory_node *operand = &s->nodes[op->inputs[k]];
        bool first = s->nodes[operand->root].reader == index;
        if (operand->learns && !first) live(s, backward(s, index), backward(s, index), size_of(operand));
    }
}

static double find_peak(step *s)
{
    double now = s->input_bytes, largest = now;
    for (size_t moment = 0; moment < 2 * s->count; moment++) {
        now += s->change[moment];
        if (now <= largest) continue;
        largest = now;
        s->peak = moment;
    }
    return largest;
}

/* The step's other fields are set. */
static void place_all(step *s)
{
    s->input_bytes = 0;
    memset(s->change, 0, (2 * s->count + 1) * sizeof *s->change);
    for (size_t i = 0; i < s->count; i++) describe(s, i);
    for (s->owner = 0; s->owner < s->count; s->owner++) keep(s, s->owner);
    for (s->owner = 0; s->owner < s->count; s->owner++) {
        place_tensor(s, s->owner);
        place_summands(s, s->owner);
    }
}

static double measure(step *s)
{
    s->at_peak = NULL;
    place_all(s);
    return find_peak(s);
}

/* What each operator's tensors take at the peak, added to `bytes` with a weight. */
static void measure_each(step *s, double weight, double *room_for_each, double *bytes)
{
    s->peak = 0;
    measure(s);
    memset(room_for_each, 0, s->count * sizeof *room_for_each);
    s->at_peak = room_for_each;
    place_all(s);
    for (size_t i = 0; i < s->count; i++) bytes[i] += weight * room_for_each[i];
}

/* ---- All of them ------------------------------------------------------------------------------------------------ */

static void find_extents(const mdot_job *job, extent *extents)
{
    for (uint32_t b = 0; b <= job->info.block_count; b++) extents[b] = (extent){UINT32_MAX, 0};
    for (size_t i = 0; i < job->info.operator_count; i++) {
        extent *own = &extents[job->operators[i].block];
        if (own->first == UINT32_MAX) own->first = (uint32_t)i;
        own->last = (uint32_t)i;
    }
}

static void measure_all(mdot_job *job, const room *r)
{
    step s = {
        .job = job, .count = job->info.operator_count, .nodes = r->nodes, .change = r->change, .extents = r->extents};
    bool divides = job->division.common > 0;
    for (int type = 0; type < RT_ACTIVATION_TYPES; type++) {
        for (int attention = 0; attention < RT_ATTENTIONS; attention++) {
            for (int recompute = 0; recompute < RT_RECOMPUTATIONS; recompute++) {
                s.type = (rt_activation_type)type;
                s.attention = (mdot_attention)attention;
                s.recompute = (mdot_recompute)recompute;
                rt_activations *out = &job->activations[type][attention][recompute];
                s.whole_only = false;
                out->all = out->whole = measure(&s);
                s.whole_only = true;
                if (divides) out->whole = measure(&s);
            }
        }
    }
}

/* False: memory ran out. */
static bool make_room(const mdot_job *job, room *r)
{
    size_t count = job->info.operator_count;
    *r = (room){calloc(count, sizeof *r->nodes), calloc(2 * count + 1, sizeof *r->change),
                calloc((size_t)job->info.block_count + 1, sizeof *r->extents)};
    bool allocated = r->nodes != NULL && r->change != NULL && r->extents != NULL;
    if (allocated) find_extents(job, r->extents);
    return allocated;
}

static void free_room(const room *r)
{
    free(r->nodes);
    free(r->change);
    free(r->extents);
}

bool rt_job_measure_activations(mdot_job *job)
{
    room r;
    bool allocated = make_room(job, &r);
    if (allocated) measure_all(job, &r);
    free_room(&r);
    return allocated;
}

bool rt_job_shard_activations(const mdot_job *job, const rt_activation_case *which, double tensor, double *out_bytes)
{
    size_t count = job->info.operator_count;
    double *each = calloc(count, sizeof *each);
    room r;
    bool allocated = make_room(job, &r) && each != NULL;
    if (allocated) {
        step s = {.job = job,
                  .count = count,
                  .type = which->type,
                  .attention = which->attention,
                  .recompute = which->recompute,
                  .nodes = r.nodes,
                  .change = r.change,
                  .extents = r.extents};
        memset(out_bytes, 0, count * sizeof *out_bytes);
        measure_each(&s, 1 / tensor, each, out_bytes);
        s.whole_only = true;
        if (tensor > 1) measure_each(&s, 1 - 1 / tensor, each, out_bytes);
    }
    free_room(&r);
    free(each);
    return allocated;
}
