/* data_set.c — tensors in files, laid out as in ONNX's tests: input_0.pb, input_1.pb, … in a folder. */
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"

#include <sys/stat.h>

mdot_status co_read_tensors(ir_arena *arena, const char *folder, const char *kind, const ir_tensor **out_tensors,
                            int *out_count, mdot_error *err)
{
    int count = 0;
    for (; count < CO_MAX_TENSORS; count++) {
        const char *path = ir_arena_printf(arena, "%s/%s_%d.pb", folder, kind, count), *name;
        struct stat info;
        if (path == NULL) return BS_OUT_OF_MEMORY(err, "%s", folder);
        if (stat(path, &info) != 0) break;
        ir_tensor *tensor;
        BS_TRY(fe_read_tensor(path, arena, &tensor, &name, err));
        out_tensors[count] = tensor;
    }
    *out_count = count;
    return MDOT_OK;
}

const ir_tensor *co_reinterpret(ir_arena *arena, const ir_tensor *stored, mdot_dtype declared)
{
    if (stored->dtype != MDOT_DTYPE_U16 || declared != MDOT_DTYPE_BF16) return stored;
    ir_tensor *tensor = IR_NEW(arena, ir_tensor);
    if (tensor == NULL) return stored;
    *tensor = *stored;
    tensor->dtype = declared;
    return tensor;
}

int64_t co_solve_length(const ir_type *type, const ir_tensor *tensor)
{
    int64_t length = 0;
    if (type->rank != tensor->rank) return -1;
    for (int i = 0; i < type->rank; i++) {
        ir_dim dim = type->dim[i];
        int64_t rest = tensor->dims[i] - dim.offset;
        if (!ir_dim_is_affine(dim)) return -1;
        if (dim.scale == 0) {
            if (rest != 0) return -1;
            continue;
        }
        if (rest % dim.scale != 0 || rest / dim.scale < 1) return -1;
        if (length != 0 && rest / dim.scale != length) return -1;
        length = rest / dim.scale;
    }
    return length;
}
