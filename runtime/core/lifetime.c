/* lifetime.c — a predictor lives until it is closed and its last context is destroyed. */
#include "runtime/core/loader.h"
#include "runtime/core/objects.h"

void rt_device_close(mdot_predictor *predictor)
{
    if (predictor->device != NULL) predictor->device_ops->close(predictor->device);
    predictor->device = NULL;
}

/* A predictor is const and immutable to its users. The reference count is internal. */
static mdot_predictor *own(const mdot_predictor *predictor) { return (mdot_predictor *)(uintptr_t)predictor; }

void rt_predictor_keep(const mdot_predictor *predictor)
{
    atomic_fetch_add_explicit(&own(predictor)->references, 1, memory_order_relaxed);
}

void rt_predictor_release(const mdot_predictor *predictor)
{
    mdot_predictor *p = own(predictor);
    if (atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) > 1) return;
    rt_device_close(p);
    rt_artefact_release(&p->library->artefact);
    rt_allocator allocator = p->allocator;
    if (!rt_validates_handles()) rt_free(&allocator, p);
}

void mdot_predictor_close(mdot_predictor *predictor)
{
    if (predictor != NULL && rt_handle_unregister(predictor, RT_PREDICTOR, __func__)) rt_predictor_release(predictor);
}
