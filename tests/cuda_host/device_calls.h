/* device_calls.h — the emulator's plain C functions, called by compiled kernels. device.h and hooks.c use them. `line`
 * is the synchronising source line; `pc` is a code address in the kernel. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Static __shared__ variables have their own section (hooks.c). */
#define CH_SHARED_SECTION "ch_static_shared"
typedef struct ch_section {
    char *begin, *end;
} ch_section;
void ch_module_section(ch_section *out); /* defined once in every module */

/* ---- machine.c --------------------------------------------------------------------------------------------------- */

enum { CH_THREAD_INDEX, CH_BLOCK_INDEX, CH_BLOCK_EXTENT, CH_GRID_EXTENT };
typedef struct ch_index {
    unsigned x, y, z;
} ch_index;
ch_index ch_position(int which);
void *ch_dynamic_shared(void);
void ch_syncthreads(int line);
/* A barrier for the blocks of a cluster, a block's rank in it, and an address of another block's shared memory. */
void ch_cluster_barrier(int line);
int ch_cluster_rank(void);
void *ch_in_block(void *address, int block, int line);
void ch_access(const void *address, size_t bytes, int writes, const void *pc);
void ch_misuse(const char *what, const void *pc);
/* a barrier inside another synchronisation */
void ch_barrier(int line);
/* waits if the thread has seen the same value twice */
void ch_poll(const void *flag, uint32_t value, const char *what, int line);
void ch_wake_pollers(const void *flag);

/* ---- warp.c ------------------------------------------------------------------------------------------------------ */

void ch_syncwarp(uint32_t mask, int line);
typedef enum ch_shuffle { CH_SHUFFLE_IDX, CH_SHUFFLE_UP, CH_SHUFFLE_DOWN, CH_SHUFFLE_XOR } ch_shuffle;
uint32_t ch_shfl(ch_shuffle how, uint32_t mask, uint32_t value, unsigned operand, unsigned width, int line);
uint32_t ch_ballot(uint32_t mask, int predicate, int line);
typedef enum ch_element { CH_BF16, CH_F16 } ch_element;
/* d = a b + c of mma.sync.m16n8k{8,16}, with registers as in the PTX ISA. */
void ch_mma(ch_element element, int k, float *d, const uint32_t *a, const uint32_t *b, const float *c, int line);
/* Packs two elements, rounded to nearest even. The first goes into the low half. */
uint32_t ch_pack(ch_element element, float low, float high);
/* ldmatrix.m8n8.x{1,2,4}[.trans].b16 */
void ch_ldmatrix(uint32_t *registers, int matrices, int transposed, const void *row, int line);

/* ---- copy.c ------------------------------------------------------------------------------------------------------ */

/* cp.async of 4, 8 or 16 bytes. `source_bytes` come from memory, the rest are zeros. */
void ch_copy_async(void *to, const void *from, int bytes, int source_bytes, int line);
void ch_copy_commit(int line);
void ch_copy_wait(int pending_groups, int line);
void ch_copy_wait_all(int line);

/* ---- atomic.c ---------------------------------------------------------------------------------------------------- */

typedef enum ch_order { CH_RELAXED = 0, CH_ACQUIRE = 1, CH_RELEASE = 2, CH_ACQ_REL = 3 } ch_order;
typedef enum ch_atomic { CH_ATOMIC_ADD, CH_ATOMIC_ADD_F32, CH_ATOMIC_MAX_U32, CH_ATOMIC_EXCHANGE } ch_atomic;
uint32_t ch_atomic_rmw(ch_atomic what, ch_order order, uint32_t *address, uint32_t operand, int line);
uint32_t ch_load_flag(ch_order order, const uint32_t *address, int line);
void ch_store_flag(ch_order order, uint32_t *address, uint32_t value, int line);
void ch_threadfence(int line);
/* A barrier for all blocks: __syncthreads, one release that counts the block, an acquire of all, __syncthreads. The
 * counter only grows; the barrier passes at `target`. */
void ch_grid_barrier(uint32_t *counter, uint32_t target, int line);

#ifdef __cplusplus
}
#endif
