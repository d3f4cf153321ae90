/* amx_emulator.c — see amx_emulator.h. Encodings and operations: Intel SDM volume 2, LDTILECFG, TDPBF16PS, TILELOADD,
 * TILERELEASE, TILESTORED, TILEZERO; VEX prefixes, section 2.3.
 */
#include "tests/support/amx_emulator.h"

#include "ir/tensor.h"

#include <cpuid.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64 };
enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* arch_prctl's ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */

bool amx_is_native(void)
{
    unsigned eax, ebx, ecx, edx;
    const unsigned bf16 = 1U << 22, tile = 1U << 24;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & bf16) && (edx & tile) &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static struct {
    bool configured;
    int rows[TILES], row_bytes[TILES];
    unsigned char tile[TILES][ROWS][ROW_BYTES];
    long multiplications;
} amx;

bool amx_emulator_is_configured(void) { return amx.configured; }

long amx_emulator_take_multiplications(void)
{
    long multiplications = amx.multiplications;
    amx.multiplications = 0;
    return multiplications;
}

typedef struct instruction {
    int prefix; /* pp: 0 = absent, 1 = 66, 2 = F3, 3 = F2 */
    int opcode, mode, reg, rm, vvvv;
    uint64_t address, stride; /* address and stride of a memory operand */
    size_t length;
} instruction;

static uint64_t register_value(const ucontext_t *context, int number)
{
    static const int at[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint64_t)context->uc_mcontext.gregs[at[number]];
}

static int64_t displacement(const unsigned char *bytes, int size)
{
    int32_t wide;
    if (size == 0) return 0;
    if (size == 1) return (int8_t)bytes[0];
    memcpy(&wide, bytes, sizeof wide);
    return wide;
}

/* Returns false if the instruction is outside AMX. */
static bool decode(const unsigned char *at, const ucontext_t *context, instruction *out)
{
    const unsigned char *p = at;
    if (p[0] != 0xC4 || (p[1] & 0x1F) != 2) return false; /* VEX, opcode map 0F38 */
    int index_high = p[1] & 0x40 ? 0 : 8, base_high = p[1] & 0x20 ? 0 : 8;
    instruction in = {.prefix = p[2] & 3, .vvvv = ~(p[2] >> 3) & 15, .opcode = p[3]};
    in.mode = p[4] >> 6;
    in.reg = p[4] >> 3 & 7;
    in.rm = p[4] & 7;
    if (in.opcode != 0x49 && in.opcode != 0x4B && in.opcode != 0x5C) return false;
    p += 5;
    if (in.mode != 3) {
        int base = in.rm, size = in.mode == 1 ? 1 : in.mode == 2 ? 4 : 0;
        bool has_base = true, from_here = in.mode == 0 && in.rm == 5; /* relative to the next instruction */
        if (in.rm == 4) {
            int index = (p[0] >> 3 & 7) | index_high;
            base = p[0] & 7;
            if (index != 4) in.stride = register_value(context, index) << (p[0] >> 6);
            has_base = in.mode != 0 || base != 5;
            p++;
        }
        if (from_here || !has_base) size = 4;
        in.address = (uint64_t)displacement(p, size);
        p += size;
        if (from_here)
            in.address += (uint64_t)(uintptr_t)p;
        else if (has_base)
            in.address += register_value(context, base | base_high);
    }
    in.length = (size_t)(p - at);
    *out = in;
    return true;
}

static bool configure(uint64_t address)
{
    unsigned char bytes[64];
    memcpy(bytes, (const void *)(uintptr_t)address, sizeof bytes);
    if (bytes[0] != 1) return false;
    for (int t = 0; t < TILES; t++) {
        amx.row_bytes[t] = bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8;
        amx.rows[t] = bytes[48 + t];
        if (amx.row_bytes[t] > ROW_BYTES || amx.rows[t] > ROWS) return false;
    }
    memset(amx.tile, 0, sizeof amx.tile);
    amx.configured = true;
    return true;
}

static void load(int tile, uint64_t address, uint64_t stride)
{
    memset(amx.tile[tile], 0, sizeof amx.tile[tile]);
    for (int r = 0; r < amx.rows[tile]; r++)
        memcpy(amx.tile[tile][r], (const void *)(uintptr_t)(address + (uint64_t)r * stride),
               (size_t)amx.row_bytes[tile]);
}

static void store(int tile, uint64_t address, uint64_t stride)
{
    for (int r = 0; r < amx.rows[tile]; r++)
        memcpy((void *)(uintptr_t)(address + (uint64_t)r * stride), amx.tile[tile][r], (size_t)amx.row_bytes[tile]);
}

/* Converts a tile's elements to f32. The two elements of each pair go to `even` and `odd`. */
static void widen(int tile, float even[ROWS][ROWS], float odd[ROWS][ROWS])
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < ROWS; c++) {
            uint16_t pair[2];
            memcpy(pair, &amx.tile[tile][r][4 * c], sizeof pair);
            even[r][c] = ir_bf16_to_f32(pair[0]);
            odd[r][c] = ir_bf16_to_f32(pair[1]);
        }
}

/* Every processor that runs AMX kernels has FMA. The attribute makes fmaf an instruction rather than a call. */
__attribute__((target("fma"))) static void multiply_add(int sums, int left, int right)
{
    float left_even[ROWS][ROWS], left_odd[ROWS][ROWS], right_even[ROWS][ROWS], right_odd[ROWS][ROWS];
    widen(left, left_even, left_odd);
    widen(right, right_even, right_odd);
    for (int m = 0; m < amx.rows[sums]; m++)
        for (int n = 0; n < amx.row_bytes[sums] / 4; n++) {
            float even = 0, odd = 0, sum;
            for (int k = 0; k < amx.row_bytes[left] / 4; k++) {
                even = fmaf(left_even[m][k], right_even[k][n], even);
                odd = fmaf(left_odd[m][k], right_odd[k][n], odd);
            }
            memcpy(&sum, &amx.tile[sums][m][4 * n], sizeof sum);
            sum += even + odd;
            memcpy(&amx.tile[sums][m][4 * n], &sum, sizeof sum);
        }
    amx.multiplications++;
}

static bool is_register(const instruction *in) { return in->mode == 3; }

/* Returns false if the processor would refuse the instruction. */
static bool execute(const instruction *in)
{
    if (in->opcode == 0x49 && in->prefix == 0 && !is_register(in)) return configure(in->address);
    if (!amx.configured) return false;
    if (in->opcode == 0x49 && in->prefix == 0) {
        amx.configured = false;
    } else if (in->opcode == 0x49 && in->prefix == 3 && is_register(in)) {
        memset(amx.tile[in->reg], 0, sizeof amx.tile[in->reg]);
    } else if (in->opcode == 0x4B && in->prefix == 3 && !is_register(in)) {
        load(in->reg, in->address, in->stride);
    } else if (in->opcode == 0x4B && in->prefix == 2 && !is_register(in)) {
        store(in->reg, in->address, in->stride);
    } else if (in->opcode == 0x5C && in->prefix == 2 && is_register(in)) {
        if (in->reg == in->rm || in->reg == in->vvvv || in->rm == in->vvvv || in->vvvv >= TILES) return false;
        multiply_add(in->reg, in->rm, in->vvvv);
    } else {
        return false;
    }
    return true;
}

static void on_illegal_instruction(int number, siginfo_t *info, void *user)
{
    ucontext_t *context = user;
    instruction in;
    (void)info;
    const unsigned char *at = (const unsigned char *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    if (!decode(at, context, &in) || !execute(&in)) {
        signal(number, SIG_DFL); /* the instruction runs again, and the default action ends the program */
        return;
    }
    context->uc_mcontext.gregs[REG_RIP] += (greg_t)in.length;
}

void amx_emulator_install(void)
{
    struct sigaction action = {.sa_sigaction = on_illegal_instruction, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGILL, &action, NULL) != 0) {
        perror("sigaction");
        exit(1);
    }
}
