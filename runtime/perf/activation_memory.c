/* activation_memory.c — the peak tensor memory in a forward and backward pass as PyTorch runs it, per sample, for each
 * combination of activation type, attention and recomputation. peak_memory.c covers weights and all other memory that
 * stays allocated from step to step.
 *
 * The peak is the largest sum of tensors alive at one moment. The forward pass visits the operators in order, the
 * backward pass in reverse. A tensor lives from its operator to the last reader. If autograd saved it, it lives until
 * the backward pass has finished with every operator that saved it. A tensor that several operators save counts once. A
 * gradient lives from the last reader's backward operation to its own operator's. An operator saves the tensors that
 * its formula in PyTorch's tools/autograd/derivatives.yaml reads. For example, matmuls, convolutions and normalisations
 * save inputs; ReLU, sigmoid and softmax save the result; sums and moves save nothing. Transposes and slices are views.
 *
 * Attention. Fused attention saves operands and result, but no scores. Decomposed attention saves operands and the
 * softmax's result; autocast keeps an fp16 copy of the latter for the next matmul. Another score tensor is alive
 * temporarily: the matmul's result in the forward pass and a gradient in the backward pass.
 *
 * Recomputation. In recomputed blocks (torch.utils.checkpoint), saved tensors are alive once the backward pass reaches
 * the block's end. The tensors that the block reads from outside are saved instead. The same holds for operators in a
 * block that the program itself checkpoints. With selective recomputation, operators save the tensors listed in
 * ir/ops_job.def, and matmuls save their results.
 *
 * Mixed precision. Autocast runs matmuls in half precision, normalisations, softmax, powers, sums and losses in fp32,
 * and other operators in the widest operand type (PyTorch's documentation, "CUDA Op-Specific Behavior"). An operator in
 * another type than its operand saves a copy. In pure bf16, every tensor takes half the bytes.
 *
 * Tensor parallelism. The peak without sharded tensors (`whole`) and the peak with all of them bound a shard's peak.
 * The peak is convex in the size of sharded tensors, so that a line between both is an upper bound.
 *
 * Inference. Without gradients, no operator saves tensors, so that each lives up to the last reader.
 *
 * Loss. A chunked cross-entropy converts an eighth of the logits at a time. A fused one has a part of the logits and
 * their gradient, and computes the matmul's gradients in the forward pass.
 *
 * The result was compared with the tensors that PyTorch 2.6 saves (torch.autograd.graph.saved_tensors_hooks). The peak
 * is 0 to 1 % above it for 20 timm networks with convolutions, 2 % for BERT with fused attention and 4 % for mixers.
 *
 * The peak excludes dropout, which jobs lack, and temporary memory for recomputation beyond the kept tensors.
 * reserved_memory.c adds workspaces for cuDNN and cuBLAS, fragmentation and the CUDA context. */
#include "runtime/perf/activation_memory.h"
#include "runtime/job/configuration.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/operator_traits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NO_OPERATOR = UINT32_MAX };

typedef struct memory_node {
    double bytes;        /* bytes of the result for one sample */
    uint32_t root;       /* operator that owns the result's memory: the operator itself, unless it is a view */
    uint32_t reader;     /* for a root, the last operator that reads it, or the root itself */
    uint32_t saver;      /* for a root, the first operator that saves it, or NO_OPERATOR; if blocks are recomputed, the
                         * first one outside its own block */
    uint32_t own_saver;  /* for a root, the first saving operator inside its own block, or NO_OPERATOR */
    bool needs_gradient; /* this operator or one before it has parameters, so a gradient passes */
    bool half;           /* the result takes two bytes per element */
    bool loss;           /* between the logits' matmul, which is included, and the cross-entropy */
    bool sharded;        /* excluded from this measurement because tensor parallelism shards it */
} memory_node;

typedef struct extent {
    uint32_t first, last; /* first and last operator of a block */
} extent;

/* Scratch memory for one measurement. */
typedef struct scratch {
    memory_node *nodes;
    double *change;  /* indexed by moment: bytes allocated at it less bytes freed before it */
    extent *extents; /* indexed by block number */
} scratch;

/* Moments 0 … n - 1 are the forward pass, moments n … 2n - 1 the backward pass. */
typedef struct step {
    const mdot_job *job;
    const rt_sharding *sharding;
    size_t count;
    rt_activation_case which;
    bool whole_only; /* exclude the tensors that tensor parallelism shards */
    memory_node *nodes;
    double *change;
    const extent *extents;
    size_t logits;       /* 1 + index of the matmul that writes the logits; 0: none */
    double logits_share; /* fraction of the logits and logit copies that exist at once */
    double copies_share;
    double input_bytes;
    size_t peak;        /* moment of the largest sum */
    rt_batch_term term; /* for fill_case */
    size_t owner;       /* operator whose tensors are being placed */
    double *at_peak;    /* bytes of each operator's tensors at `peak`, which is then known; NULL while the peak is being
                      * searched */
} step;

static uint32_t block_of(const step *s, size_t index)
{
    const mdot_job_operator *op = &s->job->operators[index];
    if (s->which.recompute == MDOT_RECOMPUTE_BLOCKS) return op->block;
    bool by_program = s->which.recompute == MDOT_RECOMPUTE_NOTHING && (op->flags & MDOT_OPERATOR_RECOMPUTED) != 0;
    return by_program ? op->block : 0;
}

/* True if the operator saves these tensors. A mask of 0 marks an unknown operator, which saves every tensor it
 * touches. */
static bool saves(const step *s, const mdot_job_operator *op, uint32_t tensors)
{
    uint32_t saved = op->traits.saved_fused;
    if (s->which.attention == MDOT_ATTENTION_EAGER) saved = op->traits.saved_written;
    if (s->which.recompute == MDOT_RECOMPUTE_SELECTIVE) saved = op->traits.saved_recomputed;
    return saved == 0 || (saved & tensors) != 0;
}

static size_t backward(const step *s, size_t index) { return 2 * s->count - 1 - index; }

static void add_lifetime(step *s, size_t first, size_t end, double bytes)
{
    s->change[first] += bytes;
    s->change[end + 1] -= bytes;
    if (s->at_peak != NULL && first <= s->peak && s->peak <= end) s->at_peak[s->owner] += bytes;
}

/* Bytes that an operator keeps from the forward operation for the backward one. In a recomputed block, they are alive
 * from the recomputation on. */
static void keep_for_backward(step *s, size_t index, double bytes)
{
    uint32_t block = block_of(s, index);
    add_lifetime(s, index, block > 0 ? index : backward(s, index), bytes);
    if (block > 0) add_lifetime(s, backward(s, s->extents[block].last), backward(s, index), bytes);
}

static double size_of(const memory_node *node)
{
    return node->sharded ? 0 : node->half ? node->bytes / 2 : node->bytes;
}

/* Bytes of a copy of the tensor in its loss, relative to the tensor. A tensor between the logits and the loss is such a
 * copy itself. */
static double copied_share(const step *s, const memory_node *node)
{
    return node->root + 1 == s->logits ? s->copies_share / s->logits_share : 1;
}

static void record_saver(step *s, memory_node *root, uint32_t saver)
{
    uint32_t block = block_of(s, root->root), theirs = block_of(s, saver);
    if (theirs > 0 && theirs != block && s->extents[theirs].first > root->root) saver = s->extents[theirs].first;
    uint32_t *first_saver = block > 0 && block == theirs ? &root->own_saver : &root->saver;
    if (saver < *first_saver) *first_saver = saver; /* NO_OPERATOR is larger than any */
}

/* A convolution fused with a normalisation writes two results: the convolution's and the normalised one. */
static double result_bytes(const mdot_job_operator *op)
{
    double written = op->per_sample[MDOT_PHASE_FORWARD].bytes_written;
    return op->setting[MDOT_SETTING_NORMALISED] != 0 ? written / 2 : written;
}

/* Sample bytes: inputs from outside the graph. A normalisation reads its data twice more. */
static double sample_bytes(const mdot_job_operator *op, const memory_node *node)
{
    if (op->input_count > 0 || op->setting[MDOT_SETTING_INPUTS] == 0 || rt_has_trait(op, MDOT_TRAIT_PICKS)) return 0;
    double read = op->per_sample[MDOT_PHASE_FORWARD].bytes_read;
    if (op->setting[MDOT_SETTING_NORMALISED] != 0) read -= 2 * node->bytes;
    return fmax(read, 0);
}

static bool is_half(const step *s, const mdot_job_operator *op)
{
    uint32_t autocast = op->traits.autocast;
    if (s->which.type == RT_ACTIVATION_BF16) return true;
    if (s->which.type == RT_ACTIVATION_FP32 || autocast == MDOT_AUTOCAST_FULL) return false;
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
    /* A parameter that several operators share is counted at the first, but each has a weight gradient. */
    bool needs_gradient = op->parameters > 0 || op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops > 0;
    for (size_t k = 0; k < op->input_count; k++)
        needs_gradient = needs_gradient || s->nodes[op->inputs[k]].needs_gradient;
    needs_gradient = needs_gradient && (op->flags & MDOT_OPERATOR_STOPS_GRADIENT) == 0 && !s->which.is_inference;
    *node = (memory_node){
        .bytes = result_bytes(op), .saver = NO_OPERATOR, .own_saver = NO_OPERATOR, .needs_gradient = needs_gradient};
    rt_role role = (rt_role)s->sharding->role[index];
    node->sharded = s->whole_only && (role == RT_ROLE_SHARDED || role == RT_ROLE_COLUMNS);
    bool view = rt_has_trait(op, MDOT_TRAIT_VIEW) && op->input_count > 0;
    node->root = view ? s->nodes[op->inputs[0]].root : (uint32_t)index;
    node->reader = (uint32_t)index;
    node->loss = index + 1 == s->logits || (op->input_count > 0 && s->nodes[op->inputs[0]].loss);
    if (node->loss) node->bytes *= node->root + 1 == s->logits ? s->logits_share : s->copies_share;
    node->half = is_half(s, op);
    for (size_t k = 0; k < op->input_count; k++) {
        memory_node *root = &s->nodes[s->nodes[op->inputs[k]].root];
        root->reader = (uint32_t)index;
        if (block_of(s, index) > 0 && block_of(s, index) != block_of(s, root->root))
            record_saver(s, root, (uint32_t)index);
    }
}

/* The operand in the operator's type. It is used as it is, or as a converted copy that is saved or temporary. */
static void take_operand(step *s, size_t index, const memory_node *operand, bool saved)
{
    uint32_t autocast = s->job->operators[index].traits.autocast;
    bool mixed = s->which.type == RT_ACTIVATION_AMP;
    bool wants_half = mixed && autocast == MDOT_AUTOCAST_HALF, wants_full = mixed && autocast == MDOT_AUTOCAST_FULL;
    if ((wants_half && !operand->half) || (wants_full && operand->half)) {
        double bytes = operand->sharded ? 0 : wants_half ? operand->bytes / 2 : operand->bytes;
        bytes *= copied_share(s, operand);
        if (saved)
            keep_for_backward(s, index, bytes);
        else
            add_lifetime(s, index, index, bytes);
        return;
    }
    if (saved) record_saver(s, &s->nodes[operand->root], (uint32_t)index);
}

static bool saves_operand(const step *s, const mdot_job_operator *op, const memory_node *node)
{
    if (!node->needs_gradient) return false;
    /* The gradient of a matmul's operand needs only the parameters. */
    bool is_frozen =
        op->frozen_parameters > 0 && op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_read == 0; /* at most a bias */
    if (is_frozen && rt_uses_tensor_cores(op) && op->input_count <= 1) return false;
    if (saves(s, op, MDOT_SAVES_INPUTS)) return true;
    return saves(s, op, MDOT_SAVES_FACTORS) && (op->input_count > 1 || op->parameters > 0);
}

/* Scores of a decomposed attention. */
static void save_scores(step *s, size_t index, const memory_node *node)
{
    double fp32 = rt_score_bytes(&s->job->operators[index]);
    if (s->which.attention != MDOT_ATTENTION_EAGER || node->sharded || fp32 == 0) return;
    bool mixed = s->which.type == RT_ACTIVATION_AMP;
    double scores = s->which.type == RT_ACTIVATION_FP32 ? fp32 : fp32 / 2;
    double softmax = s->which.type == RT_ACTIVATION_BF16 ? fp32 / 2 : fp32;
    double saved = softmax + (mixed ? scores : 0);
    add_lifetime(s, index, index, scores);
    if (!node->needs_gradient || s->which.recompute == MDOT_RECOMPUTE_SELECTIVE) {
        add_lifetime(s, index, index, saved);
        if (!node->needs_gradient) return;
        add_lifetime(s, backward(s, index), backward(s, index), saved);
    } else {
        keep_for_backward(s, index, saved);
    }
    add_lifetime(s, backward(s, index), backward(s, index), softmax);
}

/* PyTorch's cross-entropy keeps log-probabilities. The backward operation makes their gradient before the logits'
 * gradient. */
static void save_probabilities(step *s, size_t index)
{
    const mdot_job_operator *op = &s->job->operators[index];
    if (!rt_is_cross_entropy(op) || op->input_count == 0) return;
    const memory_node *logits = &s->nodes[op->inputs[0]];
    if (!logits->needs_gradient || logits->sharded) return;
    double bytes = s->which.type == RT_ACTIVATION_BF16 ? logits->bytes / 2 : logits->bytes;
    bytes *= copied_share(s, logits);
    keep_for_backward(s, index, bytes);
    add_lifetime(s, backward(s, index), backward(s, index), bytes);
}

/* Bytes that the operator keeps for the backward operation, and temporary bytes of the latter. */
static void save_for_backward(step *s, size_t index)
{
    const mdot_job_operator *op = &s->job->operators[index];
    const memory_node *node = &s->nodes[index];
    bool saved = saves_operand(s, op, node);
    for (size_t k = 0; k < op->input_count; k++) take_operand(s, index, &s->nodes[op->inputs[k]], saved);
    double samples = sample_bytes(op, node);
    s->input_bytes += samples;
    if (s->at_peak != NULL) s->at_peak[index] += samples;
    if (saved && s->which.type == RT_ACTIVATION_AMP && op->traits.autocast == MDOT_AUTOCAST_HALF)
        keep_for_backward(s, index, samples / 2);
    save_scores(s, index, node);
    save_probabilities(s, index);
    if (!node->needs_gradient) return;
    if (saves(s, op, MDOT_SAVES_RESULT)) record_saver(s, &s->nodes[node->root], (uint32_t)index);
    double reserve = op->traits.reserve * size_of(node);
    bool indexed = (op->traits.saved_fused & MDOT_SAVES_INDICES) != 0 && saves(s, op, MDOT_SAVES_INDICES);
    if (indexed && !node->sharded) reserve += 2 * node->bytes;
    if (op->setting[MDOT_SETTING_NORMALISED] != 0) {
        /* The map before the normalisation. The normalised map can be recomputed from it. */
        if (s->which.recompute != MDOT_RECOMPUTE_SELECTIVE) reserve += size_of(node);
        add_lifetime(s, backward(s, index), backward(s, index), size_of(node)); /* gradient between the two */
    }
    keep_for_backward(s, index, reserve);
}

static void add_tensor_lifetimes(step *s, size_t index)
{
    const memory_node *node = &s->nodes[index];
    if (node->root != index) return;
    add_lifetime(s, index, node->saver == NO_OPERATOR ? node->reader : backward(s, node->saver), size_of(node));
    if (node->own_saver != NO_OPERATOR)
        add_lifetime(s, backward(s, s->extents[block_of(s, index)].last), backward(s, node->own_saver), size_of(node));
    if (node->needs_gradient) add_lifetime(s, backward(s, node->reader), backward(s, index), size_of(node));
}

/* A tensor with several readers gets a gradient from each. The gradients after the first are added to it. */
static void add_summand_lifetimes(step *s, size_t index)
{
    const mdot_job_operator *op = &s->job->operators[index];
    if (s->nodes[index].root != index) return;
    for (size_t k = 0; k < op->input_count; k++) {
        const memory_node *operand = &s->nodes[op->inputs[k]];
        bool first = s->nodes[operand->root].reader == index;
        if (operand->needs_gradient && !first)
            add_lifetime(s, backward(s, index), backward(s, index), size_of(operand));
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

/* Requires all other fields of the step. */
static void build_timeline(step *s)
{
    s->input_bytes = 0;
    memset(s->change, 0, (2 * s->count + 1) * sizeof *s->change);
    for (size_t i = 0; i < s->count; i++) describe(s, i);
    for (s->owner = 0; s->owner < s->count; s->owner++) save_for_backward(s, s->owner);
    for (s->owner = 0; s->owner < s->count; s->owner++) {
        add_tensor_lifetimes(s, s->owner);
        add_summand_lifetimes(s, s->owner);
    }
}

static double measure(step *s)
{
    s->at_peak = NULL;
    build_timeline(s);
    return find_peak(s);
}

/* A vertex of the upper hull of (gradients, bytes) over all moments. A sum of activations and gradients, at any batch,
 * is largest at a vertex. */
typedef struct vertex {
    double gradients, bytes;
    size_t moment;
} vertex;

/* Twice the area of the triangle; at most 0 if b lies on or below the line from a to c. */
static double area_below(const vertex *a, const vertex *b, const vertex *c)
{
    return (b->bytes - a->bytes) * (c->gradients - a->gradients) -
           (c->bytes - a->bytes) * (b->gradients - a->gradients);
}

/* Appends a moment, with at least as many gradients as all before it, to a hull of `count` vertices. If the hull is
 * full, the vertex that contributes least is dropped. Returns the new count. */
static size_t append_vertex(vertex *hull, size_t count, vertex vertex_added)
{
    while (count > 0 && hull[count - 1].bytes <= vertex_added.bytes) count--;
    if (count > 0 && hull[count - 1].gradients >= vertex_added.gradients) return count;
    while (count > 1 && area_below(&hull[count - 2], &hull[count - 1], &vertex_added) <= 0) count--;
    hull[count++] = vertex_added;
    if (count <= RT_ACTIVATION_MOMENTS) return count;
    size_t minimum = 1;
    for (size_t i = 2; i + 1 < count; i++)
        if (area_below(&hull[i - 1], &hull[i], &hull[i + 1]) <
            area_below(&hull[minimum - 1], &hull[minimum], &hull[minimum + 1]))
            minimum = i;
    memmove(&hull[minimum], &hull[minimum + 1], (count - minimum - 1) * sizeof *hull);
    return count - 1;
}

/* Fills the moments, and `whole`. Requires `all` and a built timeline of all tensors. If some tensors are sharded,
 * replaces the timeline by one of the whole tensors. The first moment has the latter's peak, because the sum of both
 * peaks' parts bounds a shard's peak. */
static void find_moments(step *s, bool can_shard, rt_activations *out)
{
    vertex hull[RT_ACTIVATION_MOMENTS + 1];
    size_t count = 0, n = s->count;
    double now = s->input_bytes, trained = 0, with_gradient = 0;
    for (size_t i = 0; i < n && !s->which.is_inference; i++) trained += rt_dense_parameters(&s->job->operators[i]);
    for (size_t moment = 0; moment < 2 * n; moment++) {
        now += s->change[moment];
        size_t node = moment < n ? moment : 2 * n - 1 - moment;
        /* A fused loss computes the matmul's gradients in the forward pass. */
        bool is_early = s->which.loss == MDOT_LOSS_FUSED && node + 1 == s->logits;
        if (is_early == (moment < n)) with_gradient += rt_dense_parameters(&s->job->operators[node]);
        count = append_vertex(hull, count, (vertex){trained > 0 ? with_gradient / trained : 0, now, moment});
    }
    for (size_t i = 0; i < count; i++)
        out->moments[i] = (rt_activation_moment){.all = hull[i].bytes,
                                                 .whole = hull[i].bytes,
                                                 .gradients = hull[i].gradients,
                                                 .moment = (uint32_t)hull[i].moment};
    out->moment_count = count;
    out->whole = out->all;
    if (!can_shard) return;
    s->whole_only = true;
    out->moments[0].whole = out->whole = measure(s);
    now = s->input_bytes;
    for (size_t moment = 0, i = 1; i < count; moment++) {
        now += s->change[moment];
        if (moment == hull[i].moment) out->moments[i++].whole = now;
    }
}

/* Adds the bytes of each operator's tensors at the peak, times `weight`, to `bytes`. */
static void measure_each(step *s, double weight, double *by_operator, double *bytes)
{
    s->peak = 0;
    measure(s);
    memset(by_operator, 0, s->count * sizeof *by_operator);
    s->at_peak = by_operator;
    build_timeline(s);
    for (size_t i = 0; i < s->count; i++) bytes[i] += weight * by_operator[i];
}

/* Selects a case, and the logits that exist at once. */
static void select_case(step *s, rt_activation_case selected)
{
    s->which = selected;
    s->copies_share = rt_loss_part(s->job, s->logits, selected.loss);
    s->logits_share = selected.loss == MDOT_LOSS_FUSED ? s->copies_share : 1;
}

static step step_of(const mdot_job *job, const rt_sharding *sharding, size_t logits, const scratch *r)
{
    return (step){.job = job,
                  .sharding = sharding,
                  .count = job->info.operator_count,
                  .logits = logits,
                  .logits_share = 1,
                  .copies_share = 1,
                  .nodes = r->nodes,
                  .change = r->change,
                  .extents = r->extents};
}

static void find_extents(const mdot_job *job, extent *extents)
{
    for (uint32_t b = 0; b <= job->info.block_count; b++) extents[b] = (extent){.first = UINT32_MAX};
    for (size_t i = 0; i < job->info.operator_count; i++) {
        extent *block_extent = &extents[job->operators[i].block];
        if (block_extent->first == UINT32_MAX) block_extent->first = (uint32_t)i;
        block_extent->last = (uint32_t)i;
    }
}

static void measure_case(step *s, rt_activation_case measured, rt_activations *out)
{
    select_case(s, measured);
    s->whole_only = false;
    out->all = measure(s);
    find_moments(s, s->sharding->common > 0, out);
}

static void set_term(rt_activation_moment *m, rt_batch_term term, bool whole_only, double bytes)
{
    if (term == RT_TERM_SAMPLE) {
        if (!whole_only) m->all = bytes;
        m->whole = bytes;
        return;
    }
    if (!whole_only) *(term == RT_TERM_SQUARE ? &m->square : &m->step) = (float)bytes;
    *(term == RT_TERM_SQUARE ? &m->whole_square : &m->whole_step) = (float)bytes;
}

/* Fills the step's term of moments that are known, first of all tensors, then of the whole ones. */
static void fill_case(step *s, rt_activation_case measured, rt_activations *out)
{
    select_case(s, measured);
    s->at_peak = NULL;
    for (int pass = 0; pass < (s->sharding->common > 0 ? 2 : 1); pass++) {
        s->whole_only = pass > 0;
        build_timeline(s);
        double now = s->input_bytes;
        for (size_t moment = 0; moment < 2 * s->count; moment++) {
            now += s->change[moment];
            for (size_t i = 0; i < out->moment_count; i++)
                if (out->moments[i].moment == moment) set_term(&out->moments[i], s->term, s->whole_only, now);
        }
    }
}

typedef void (*visitor)(step *s, rt_activation_case measured, rt_activations *out);

static void visit_all(step *s, visitor visit, rt_activation_table *out_table)
{
    rt_activation_case measured;
    for (int type = 0; type < RT_ACTIVATION_TYPES; type++) {
        for (int attention = MDOT_ATTENTION_EAGER; attention <= MDOT_ATTENTION_FLASH; attention++) {
            for (int recompute = 0; recompute < RT_RECOMPUTATIONS; recompute++) {
                measured = (rt_activation_case){.type = (rt_activation_type)type,
                                                .attention = (mdot_attention)attention,
                                                .recompute = (mdot_recompute)recompute};
                visit(s, measured, &out_table->of[type][attention][recompute]);
                for (int loss = 1; loss < RT_LOSSES && s->logits > 0; loss++) {
                    measured.loss = (mdot_loss)loss;
                    visit(s, measured, &out_table->with_loss[loss - 1][type][attention][recompute]);
                }
            }
            measured = (rt_activation_case){
                .type = (rt_activation_type)type, .attention = (mdot_attention)attention, .is_inference = true};
            visit(s, measured, &out_table->inference[type][attention]);
        }
        out_table->inference[type][MDOT_ATTENTION_PROGRAM] = out_table->inference[type][MDOT_ATTENTION_FLASH];
        memcpy(out_table->of[type][MDOT_ATTENTION_PROGRAM], out_table->of[type][MDOT_ATTENTION_FLASH],
               sizeof out_table->of[type][MDOT_ATTENTION_PROGRAM]);
    }
}

/* Returns false if memory runs out. */
static bool make_scratch(const mdot_job *job, scratch *r)
{
    size_t count = job->info.operator_count;
    *r = (scratch){calloc(count, sizeof *r->nodes), calloc(2 * count + 1, sizeof *r->change),
                   calloc((size_t)job->info.block_count + 1, sizeof *r->extents)};
    bool allocated = r->nodes != NULL && r->change != NULL && r->extents != NULL;
    if (allocated) find_extents(job, r->extents);
    return allocated;
}

static void free_scratch(const scratch *r)
{
    free(r->nodes);
    free(r->change);
    free(r->extents);
}

rt_activation_type rt_activation_type_of(mdot_precision precision)
{
    if (rt_is_autocast(precision)) return RT_ACTIVATION_AMP;
    return rt_is_half(precision) ? RT_ACTIVATION_BF16 : RT_ACTIVATION_FP32;
}

bool rt_measure_activations(const mdot_job *job, const rt_sharding *sharding, size_t logits,
                            rt_activation_table *out_table)
{
    scratch r;
    bool allocated = make_scratch(job, &r);
    step s = step_of(job, sharding, logits, &r);
    if (allocated) visit_all(&s, measure_case, out_table);
    free_scratch(&r);
    return allocated;
}

bool rt_measure_activation_term(const mdot_job *job, const rt_sharding *sharding, size_t logits, rt_batch_term term,
                                rt_activation_table *table)
{
    scratch r;
    bool allocated = make_scratch(job, &r);
    step s = step_of(job, sharding, logits, &r);
    s.term = term;
    if (allocated) visit_all(&s, fill_case, table);
    free_scratch(&r);
    return allocated;
}

bool rt_shard_activations(const mdot_job *job, const rt_sharding *sharding, size_t logits,
                          const rt_activation_case *measured, double tensor, double *out_bytes)
{
    size_t count = job->info.operator_count;
    double *by_operator = calloc(count, sizeof *by_operator);
    scratch r;
    bool allocated = make_scratch(job, &r) && by_operator != NULL;
    if (allocated) {
        step s = step_of(job, sharding, logits, &r);
        select_case(&s, *measured);
        memset(out_bytes, 0, count * sizeof *out_bytes);
        measure_each(&s, 1 / tensor, by_operator, out_bytes);
        s.whole_only = true;
        if (tensor > 1) measure_each(&s, 1 - 1 / tensor, by_operator, out_bytes);
    }
    free_scratch(&r);
    free(by_operator);
    return allocated;
}
