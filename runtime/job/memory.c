/* memory.c — how much memory one training step needs at its peak, as PyTorch runs it.
 *
 *   weights          fp32: 4 bytes a parameter
 *   gradients        fp32, kept from step to step; a second copy in the buckets that several workers exchange them in
 *                    (DistributedDataParallel, gradient_as_bucket_view=False)
 *   optimizer state  fp32: one tensor for SGD, which has momentum here (mdot_optimizer_load), two for Adam and AdamW
 *   activations      the largest sum of tensors alive at one moment of the forward and backward pass, below
 *   or, if larger    the square roots that the update of Adam and AdamW over lists of tensors holds at once
 *                    (torch/optim/adam.py, _multi_tensor_adam)
 *
 * Activations. The forward pass visits the operators in order, the backward pass in reverse. A tensor lives from its
 * operator to its last reader; where autograd saved it, until the backward pass is through with every operator that
 * saved it; one that several save is there once. A gradient lives from the last reader's backward operation to its own
 * operator's. What an operator saves is what its formula in PyTorch's tools/autograd/derivatives.yaml reads: products,
 * convolutions and normalisations their inputs, ReLU, sigmoid and softmax their result, sums and moves nothing.
 * Transposes and slices are views. Attention is the fused one: it saves its operands and its result, never the scores.
 *
 * Mixed precision. Autocast runs products in fp16 and normalisations, softmax, powers, sums and losses in fp32, and the
 * rest in the widest type of the operands (PyTorch's documentation, "CUDA Op-Specific Behavior"). Where an operator's
 * type is not its operand's, it saves a copy. fp16 copies of weights live through the step.
 *
 * Held to what PyTorch 2.6 saves (torch.autograd.graph.saved_tensors_hooks): the peak is 0 to 1 % above it for 20 timm
 * networks of convolutions, 2 % for BERT with fused attention, 4 % for mixers.
 *
 * Not counted: scores of attention that is written out, dropout, which jobs do not have; and workspaces of cuDNN and
 * cuBLAS, fragmentation and the CUDA context, which rt_fits allows for.
 */
#include "runtime/job/job_model.h"

#include <stdlib.h>
#include <string.h>

enum { WEIGHT_BYTES = 4, HALF_WEIGHT_BYTES = 2 };

/* ---- What operators save --------------------------------------------------------------------------------------------
 */

/* Attention counts as fused. 0: what is not known saves all it touches. */
static bool saves(const mdot_job_operator *op, uint32_t tensors)
{
    return op->facts.saved_fused == 0 || (op->facts.saved_fused & tensors) != 0;
}

static bool has_trait(const mdot_job_operator *op, uint32_t trait)
{
    return (op->facts.traits & trait) != 0;
}

/* ---- One step as intervals -----------------------------------------------------------------------------------------
 */

typedef struct memory_node {
    double bytes;    /* of one sample's result */
    uint32_t root;   /* the operator whose memory the result lies in: itself, but for views */
    uint32_t reader; /* of a root, the last operator that reads it, or itself */
    uint32_t saver;  /* of a root, the first operator that saves it, or NOBODY */
    bool learns;     /* a parameter lies in it or before it: a gradient passes */
    bool half;       /* the result is fp16 */
} memory_node;

enum { NOBODY = UINT32_MAX };

/* Moments 0 … n - 1 are the forward pass, n … 2n - 1 the backward pass. */
typedef struct step {
    const mdot_job *job;
    size_t count;
    bool mixed; /* automatic mixed precision */
    memory_node *nodes;
    double *change; /* by moment: bytes that come to life less those that died before it */
    double input_bytes;
} step;

static size_t backward(const step *s, size_t index)
{
    return 2 * s->count - 1 - index;
}

static void live(step *s, size_t from, size_t to, double bytes)
{
    s->change[from] += bytes;
    s->change[to + 1] -= bytes;
}

static double size_of(const memory_node *node)
{
    return node->half ? node->bytes / 2 : node->bytes;
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
    uint32_t autocast = op->facts.autocast;
    if (!s->mixed || autocast == MDOT_AUTOCAST_FULL) return false;
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
    *node = (memory_node){.bytes = result_bytes(op), .saver = NOBODY, .learns = learns};
    bool view = has_trait(op, MDOT_TRAIT_VIEW) && op->input_count > 0;
    node->root = view ? s->nodes[op->inputs[0]].root : (uint32_t)index;
    node->reader = (uint32_t)index;
    node->half = is_half(s, op);
    for (size_t k = 0; k < op->input_count; k++) s->nodes[s->nodes[op->inputs[k]].root].reader = (uint32_t)index;
}

/* The operand as the operator takes it: itself, or converted, saved or for the moment. */
static void take_operand(step *s, size_t index, const memory_node *operand, bool saved)
{
    uint32_t autocast = s->job->operators[index].facts.autocast;
    bool wants_half = s->mixed && autocast == MDOT_AUTOCAST_HALF, wants_full = autocast == MDOT_AUTOCAST_FULL;
    if ((wants_half && !operand->half) || (wants_full && operand->half)) {
        live(s, index, saved ? backward(s, index) : index, wants_half ? operand->bytes / 2 : operand->bytes);
        return;
    }
    memory_node *root = &s->nodes[operand->root];
    if (saved && root->saver == NOBODY) root->saver = (uint32_t)index;
}

static bool saves_operand(const mdot_job_operator *op, const memory_node *node)
{
    if (!node->learns) return false;
    if (saves(op, MDOT_SAVES_INPUTS)) return true;
    return saves(op, MDOT_SAVES_FACTORS) && (op->input_count > 1 || op->parameters > 0);
}

/* What the operator itself keeps for its backward operation, and what that needs for the moment. */
static void keep(step *s, size_t index)
{
    const mdot_job_operator *op = &s->job->operators[index];
    const memory_node *node = &s->nodes[index];
    bool saved = saves_operand(op, node);
    for (size_t k = 0; k < op->input_count; k++) take_operand(s, index, &s->nodes[op->inputs[k]], saved);
    double samples = sample_bytes(op, node);
    s->input_bytes += samples;
    if (saved && s->mixed && op->facts.autocast == MDOT_AUTOCAST_HALF) live(s, index, backward(s, index), samples / 2);
    if (!node->learns) return;
    memory_node *root = &s->nodes[node->root];
    if (saves(op, MDOT_SAVES_RESULT) && root->saver == NOBODY) root->saver = (uint32_t)index;
    double reserve = op->facts.reserve * size_of(node);
    if ((op->facts.saved_fused & MDOT_SAVES_INDICES) != 0) reserve += 2 * node->bytes;
    if (op->setting[MDOT_SETTING_NORMALISED] != 0) {
        reserve += size_of(node);
        live(s, backward(s, index), backward(s, index), size_of(node)); /* the gradient between the two */
    }
    live(s, index, backward(s, index), reserve);
}

static void place_tensor(step *s, size_t index)
{
    const memory_node *node = &s->nodes[index];
    if (node->root != index) return;
    live(s, index, node->saver == NOBODY ? node->reader : backward(s, node->saver), size_of(node));
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

static double largest_sum(const step *s)
{
    double now = s->input_bytes, largest = now;
    for (size_t moment = 0; moment < 2 * s->count; moment++) {
        now += s->change[moment];
        if (now > largest) largest = now;
    }
    return largest;
}

static double measure(const mdot_job *job, bool mixed, memory_node *nodes, double *change)
{
    step s = {.job = job, .count = job->info.operator_count, .mixed = mixed, .nodes = nodes, .change = change};
    memset(change, 0, (2 * s.count + 1) * sizeof *change);
    for (size_t i = 0; i < s.count; i++) describe(&s, i);
    for (size_t i = 0; i < s.count; i++) keep(&s, i);
    for (size_t i = 0; i < s.count; i++) {
        place_tensor(&s, i);
        place_summands(&s, i);
    }
    return largest_sum(&s);
}

bool rt_job_measure_memory(mdot_job *job)
{
    size_t count = job->info.operator_count;
    memory_node *nodes = calloc(count, sizeof *nodes);
    double *change = calloc(2 * count + 1, sizeof *change);
    bool allocated = nodes != NULL && change != NULL;
    if (allocated) {
        job->memory.activation_bytes = measure(job, false, nodes, change);
        job->memory.half_activation_bytes = measure(job, true, nodes, change);
        for (size_t i = 0; i < count; i++) {
            if (job->operators[i].facts.autocast == MDOT_AUTOCAST_HALF)
                job->memory.half_weight_bytes += HALF_WEIGHT_BYTES * job->operators[i].parameters;
        }
    }
    free(nodes);
    free(change);
    return allocated;
}

/* ---- A configuration -----------------------------------------------------------------------------------------------
 */

uint64_t rt_peak_memory_bytes(const mdot_job *job, const mdot_configuration *configuration)
{
    double weights = WEIGHT_BYTES * job->info.parameters;
    bool adam = configuration->optimizer != MDOT_OPTIMIZER_SGD;
    double kept = weights * (2 + (adam ? 2 : 1) + (configuration->gpu_count > 1 ? 1 : 0));
    double passing = (double)configuration->batch;
    if (configuration->precision == MDOT_PRECISION_AMP) {
        passing = passing * job->memory.half_activation_bytes + job->memory.half_weight_bytes;
    } else {
        passing *= job->memory.activation_bytes;
    }
    double update = adam ? weights : 0;
    double peak = kept + (passing > update ? passing : update);
    return peak < 0x1p64 ? (uint64_t)peak : UINT64_MAX;
}

/* What a training job cannot have: a sixteenth, which error correction takes where it is kept in GDDR memory, and
 * fragmentation elsewhere; and half a gibibyte for the CUDA context, the libraries' code and their workspaces. */
bool rt_fits(uint64_t peak_memory_bytes, double memory_gib)
{
    double usable_gib = memory_gib * 15 / 16 - 0.5;
    return (double)peak_memory_bytes <= usable_gib * 0x1p30;
}
