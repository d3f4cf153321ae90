/* reserved_memory.c — memory beyond tensors that a training process takes, usable memory of a GPU, and the interval of
 * the tensor peak.
 *
 * The constants are documented sizes where a source exists, and otherwise the middle of a stated range.
 *
 *   rounding     PyTorch's caching allocator rounds sizes to 512 bytes. It takes segments of 2 MiB for tensors up to 1
 *                MiB, 20 MiB for tensors up to 10 MiB, and multiples of 2 MiB for larger ones
 *                (c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallBuffer, kLargeBuffer, kRoundLarge). One
 *                segment of each small kind is partly free. Temporary tensors leave gaps that later ones do not fill:
 *                2 to 15 %. Tensors that live through the training lose only the segments' rounding. The update in
 *                mixed precision copies gradients into a flat tensor and converts it to fp32. Both take segments of
 *                their own: BLOOM's notes state 54 GB for 18 billion parameters on eight GPUs, including 13 for these.
 *                A loss converts half-precision logits to fp32, and the logits may be freed before the fp32 tensors
 *                are largest. The logits' segment is too small for those tensors, so that it stays unused
 *   context      CUDA context and loaded kernels, as nvidia-smi shows them for an idle process: 250 to 350 MiB for
 *                Pascal and Volta, 350 to 500 for Turing to Ada, 450 to 650 for Hopper and Blackwell. It depends on the
 *                driver, too. Before 1.13, PyTorch loaded all kernels at once instead of at first use
 *                (CUDA_MODULE_LOADING=LAZY): BLOOM's notes state 1271 MiB on a V100 and 1573 MiB on an A100
 *   workspace    cuBLAS: PyTorch keeps one per thread handle, 2 * 4 MiB + 8 * 16 KiB, and 32 MiB from Hopper on
 *                (aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize). Two threads compute: forward
 *                pass and autograd. cuDNN chooses convolution algorithms with workspaces up to some 100 MiB
 *   collectives  NCCL: each communicator has a buffer per channel and peer: 4 MiB for the protocol Simple, 4.7 MiB
 *                for LL128 and 0.5 MiB for LL (src/init.cc, DEFAULT_BUFFSIZE, DEFAULT_LL128_BUFFSIZE,
 *                DEFAULT_LL_BUFFSIZE). Rings receive from one peer per channel, trees from one peer with two GPUs, or
 *                from two peers with more. NCCL before 2.22, which came with PyTorch up to 2.6, connects both when it
 *                creates a communicator. For example, a communicator between two A100s has 544 MB, and between four
 *                688 MB (NVIDIA/nccl issue 964). Later versions connect at first use. Each dimension has a
 *                communicator, all GPUs together have one, a model's GPUs in a tensor-parallel pipeline have one for
 *                the gradient norm, and the first and the last stage have one for a tied table's gradients. All-to-all
 *                connects every pair of GPUs in a node over all channels: 3.3 GB on eight H100s, with 32 channels
 *                (NVIDIA/nccl issue 1685)
 *
 * Usable memory. The driver keeps 1 to 2 % of the nominal memory: torch.cuda.get_device_properties reports 39.4 of 40
 * GiB (A100), 79.1 of 80 (H100), 23.7 of 24 (RTX 3090), 15.8 of 16 (V100). Data-center cards with GDDR memory keep
 * another sixteenth for error correction, which is enabled by default: 14.6 to 14.8 of 16 GiB (T4), 22.1 of 24 (A10G,
 * L4), 44.4 of 48 (L40S). HBM has extra bits for error correction. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"

#include <math.h>
#include <string.h>

#define MIB 0x1p20
#define GIB 0x1p30

static const double persistent_rounding = 0.005, temporary_fragmentation = 0.06, partial_segments = 22 * MIB;
static const double first_turing = 7.5, first_ampere = 8.0, first_hopper = 9.0;
static const double all_kernels = 1271 * MIB, ampere_all_kernels = 1573 * MIB;
static const double old_context = 300 * MIB, turing_context = 420 * MIB, hopper_context = 540 * MIB;
static const double cublas_workspace = 8.125 * MIB, hopper_cublas_workspace = 32 * MIB, cudnn_workspace = 128 * MIB;
static const double channel_buffers = (4 + 4.6875 + 0.5) * MIB;
static const double offered_by_driver = 0.985, without_error_correction = 15.0 / 16;
enum { FIRST_LAZY_KERNELS = 113, FIRST_LAZY_CONNECTIONS = 207 }; /* versions of PyTorch */
enum { CUBLAS_THREADS = 2, NVLINK_CHANNELS = 24, HOPPER_CHANNELS = 32, PCIE_CHANNELS = 4 };

static double sum_of(const rt_memory *m) { return m->weights + m->gradients + m->optimizer + m->activations; }

static uint64_t whole_bytes(double bytes) { return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX; }

static bool is_before(const mdot_configuration *c, uint32_t version) { return c->torch != 0 && c->torch < version; }

static double context_bytes(const rt_configuration *configuration)
{
    const mdot_gpu *gpu = &configuration->gpu;
    if (is_before(&configuration->c, FIRST_LAZY_KERNELS))
        return gpu->compute_capability < first_ampere ? all_kernels : ampere_all_kernels;
    if (gpu->compute_capability < first_turing) return old_context;
    return gpu->compute_capability < first_hopper ? turing_context : hopper_context;
}

static double workspace_bytes(const mdot_job *job, const mdot_gpu *gpu)
{
    double cublas = gpu->compute_capability < first_hopper ? cublas_workspace : hopper_cublas_workspace;
    return CUBLAS_THREADS * cublas + (job->analysis->totals.is_convolutional ? cudnn_workspace : 0);
}

/* Segment bytes that the update takes although the pass has freed more. Flat gradients are large tensors, and free
 * segment parts come from many smaller tensors. */
static double flat_segment(const rt_memory *memory)
{
    double sum = memory->pass + memory->flat;
    return sum > sum_of(memory) ? sum - sum_of(memory) : 0;
}

/* Number of peers from which each channel of a communicator receives, among `gpus` GPUs; 0 without a communicator. */
static double peers_of(const mdot_configuration *c, double gpus)
{
    if (gpus <= 1) return 0;
    double ring = 1, tree = gpus > 2 ? 2 : 1;
    return is_before(c, FIRST_LAZY_CONNECTIONS) ? ring + tree : ring;
}

/* Sends between stages connect two GPUs. */
static double peers_of_pipeline(const mdot_job *job, const mdot_configuration *c)
{
    if (c->pipeline_parallel == 1) return 0;
    bool splits_model = c->tensor_parallel > 1;
    bool is_tied = job->analysis->sharding.tied.all[RT_PIPELINE_AFTER] > 0;
    return (is_tied ? 2 : 1) * peers_of(c, 2) +
           (splits_model ? peers_of(c, (double)c->tensor_parallel * c->pipeline_parallel) : 0);
}

/* Segment bytes of half-precision logits, which a loss on fp32 copies has freed at the peak. At least three fp32
 * tensors of equal size exist then: log-probabilities and two gradients. */
static double freed_logits(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_memory *memory)
{
    const rt_activation_case *activation_case = &resolved->activation_case;
    size_t matmul = job->analysis->totals.logits;
    if (matmul == 0 || activation_case->type == RT_ACTIVATION_FP32 || activation_case->loss != MDOT_LOSS_WHOLE)
        return 0;
    bool is_sharded = job->analysis->sharding.role[matmul - 1] == RT_ROLE_COLUMNS;
    const mdot_job_operator *op = &job->operators[matmul - 1];
    double sample = op->per_sample[MDOT_PHASE_FORWARD].bytes_written +
                    (double)resolved->configuration.micro_batch * op->per_square[MDOT_PHASE_FORWARD].bytes_written;
    double parts = (is_sharded ? resolved->shard.tensor : 1) * resolved->sequence;
    double full = (double)resolved->configuration.micro_batch * sample / parts;
    double tensors = full > 0 ? memory->logits / full : 0;
    bool with_half = fabs(tensors - rint(tensors)) >= 0.25; /* the logits are half as large as an fp32 tensor */
    return tensors > 2.75 && !with_half ? full / 2 : 0;
}

static double collective_bytes(const mdot_job *job, const rt_configuration *configuration)
{
    const mdot_configuration *c = &configuration->c;
    const mdot_gpu *gpu = &configuration->gpu;
    bool over_nvlink = gpu->nvlink_gbps > 0 && c->link != MDOT_LINK_PCIE;
    double channels = !over_nvlink                             ? PCIE_CHANNELS
                      : gpu->compute_capability < first_hopper ? NVLINK_CHANNELS
                                                               : HOPPER_CHANNELS;
    if (c->servers > 0) return 0;
    int dimensions = (c->data_parallel > 1) + (c->tensor_parallel > 1) + (c->pipeline_parallel > 1);
    double rings = peers_of(c, c->data_parallel) + peers_of(c, c->tensor_parallel) + peers_of_pipeline(job, c) +
                   (dimensions > 1 ? peers_of(c, c->gpu_count) : 0);
    double of_node = (double)c->gpu_count / c->node_count;
    double peers = fmin(c->expert_parallel, fmax(of_node, 2)) - 1;
    return (rings + peers) * channels * channel_buffers;
}

rt_reserved rt_reserve_memory(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_memory *memory)
{
    const rt_configuration *configuration = &resolved->configuration;
    double persistent = memory->weights + memory->gradients + memory->optimizer;
    return (rt_reserved){.rounding = persistent_rounding * persistent + temporary_fragmentation * memory->activations +
                                     partial_segments + flat_segment(memory) + freed_logits(job, resolved, memory),
                         .context = context_bytes(configuration),
                         .workspace = workspace_bytes(job, &configuration->gpu),
                         .collectives = collective_bytes(job, configuration)};
}

uint64_t rt_sum_reserved(const rt_memory *memory, const rt_reserved *reserved)
{
    return whole_bytes(sum_of(memory) + reserved->rounding + reserved->context + reserved->workspace +
                       reserved->collectives);
}

/* Is error correction enabled by default in memory that stores its bits beside the data? RTX workstation cards ship
 * with it disabled. */
static bool corrects_in_line(const char *gpu)
{
    static const char *const names[] = {"T4", "A10", "A10G", "A40", "L4", "L20", "L40", "L40S"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(gpu, names[i]) == 0) return true;
    return false;
}

uint64_t rt_usable_memory(const mdot_gpu *gpu)
{
    bool is_reduced = gpu->name != NULL && corrects_in_line(gpu->name);
    return whole_bytes(gpu->memory_gib * GIB * offered_by_driver * (is_reduced ? without_error_correction : 1));
}

typedef enum memory_source {
#define MEMORY_ERROR(source, below, above) SOURCE_##source,
#include "runtime/perf/memory_error.def"
    SOURCE_COUNT
} memory_source;

static memory_source source_of(const mdot_job *job)
{
    return job->program != NULL && job->program->program.recorded_count > 0 ? SOURCE_RECORDED : SOURCE_OPERATORS;
}

rt_memory_interval rt_memory_within(const mdot_job *job, const rt_memory *memory)
{
    static const struct {
        double below, above;
    } errors[SOURCE_COUNT] = {
#define MEMORY_ERROR(source, below, above) {below, above},
#include "runtime/perf/memory_error.def"
    };
    memory_source source = source_of(job);
    double peak = sum_of(memory), minimum = memory->weights + memory->optimizer;
    const mdot_job_check *check = job->program != NULL ? &job->program->program.check : NULL;
    bool is_checked = check != NULL && check->recorded_peak > 0 && check->predicted_peak > 0;
    double recorded = is_checked ? check->recorded_peak / check->predicted_peak : 1; /* lies inside */
    double lower = peak * fmin(1 - errors[source].below, recorded),
           upper = peak * fmax(1 + errors[source].above, recorded);
    return (rt_memory_interval){whole_bytes(fmax(lower, minimum)), whole_bytes(upper)};
}
