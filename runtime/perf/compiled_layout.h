/* compiled_layout.h — the layout in which torch.compile runs the convolutions of a job. */
#ifndef RT_COMPILED_LAYOUT_H
#define RT_COMPILED_LAYOUT_H

#include "runtime/job/job_model.h"

/* Does the compiler run the job's convolutions with channels last (NHWC), whatever layout its inputs have? */
bool rt_compiles_in_nhwc(const mdot_job *job, mdot_mode mode);

#endif
